//! Windows change while clients load a small, nearly full drive with all kinds of commands: no
//! command waits for an impossible event, and none waits long.

use block::nvme::{Budget, Events, PlmConfig, Thresholds, WindowSelect};
use block::{Block, BlockDevice};
use drives::ssd::specimens::small;
use drives::ssd::{PlmRules, Precondition, Ssd, SsdProfile};
use runtime::{Handle, Nanos, Rng, Runtime};

use crate::harness::ClientIo;
use crate::load::set;

const TRIALS: u64 = 16;
const COMMANDS: u64 = 3_000;
/// More than the longest NDWIN plus the time to make room for a buffer on a drive of four dies.
const LONGEST: Nanos = Nanos::from_millis(1_000);

/// Returns a small drive with random window rules.
fn profile(rng: &mut Rng) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.buffer.has_capacitors = rng.chance(0.5);
    profile.buffer.bytes = 4_096 * (20 + rng.below(200));
    let windows = profile.plm.as_mut().expect("it has windows");
    windows.rules = if rng.chance(0.5) { PlmRules::Vigil } else { PlmRules::Standard };
    windows.dtwin_time_max_ms = 1 + rng.below(50);
    windows.ndwin_time_min_low_ms = rng.below(20);
    windows.dtwin_reads_typical = if rng.chance(0.5) { 0 } else { rng.below(500) };
    windows.dtwin_writes_typical = rng.below(40);
    profile
}

/// Selects random windows, forever.
async fn choose_windows(handle: Handle, ssd: Ssd) {
    let mut rng = handle.rng("windows");
    loop {
        let begun = handle.now();
        let to = if rng.chance(0.6) { WindowSelect::Dtwin } else { WindowSelect::Ndwin };
        ssd.select_window(set(1), to).await.expect("the mode is on");
        let took = handle.now() - begun;
        assert!(took < LONGEST, "{to:?} took {took}");
        handle.sleep(Nanos(rng.below(5_000_000))).await;
    }
}

async fn client(handle: Handle, ssd: Ssd, mut rng: Rng, commands: u64) {
    for _ in 0..commands {
        let begun = handle.now();
        let (first, blocks) = (rng.below(13_900), 1 + rng.below(60).min(rng.below(60)));
        let done = match rng.below(20) {
            0 => ssd.flush(set(1)).await,
            1 => ssd.discard(set(1), first, blocks).await,
            2..12 => {
                let data = vec![Block::new(&[1]); blocks as usize];
                ssd.client_write(set(1), first, data).await
            }
            _ => ssd.client_read(set(1), first, blocks as u32).await.map(drop),
        };
        let took = handle.now() - begun;
        assert!(done.is_ok() && took < LONGEST, "{done:?} after {took}");
        if rng.chance(0.3) {
            handle.sleep(Nanos(rng.below(3_000_000))).await;
        }
    }
}

#[test]
fn no_command_waits_for_ever() {
    for seed in 0..TRIALS {
        println!("seed {seed}");
        let (rt, mut rng) = (Runtime::new(seed), Rng::new(seed));
        let profile = profile(&mut rng);
        let conditions =
            [Precondition::Empty, Precondition::Sequential(1.0), Precondition::Random(1.0)];
        let ssd = Ssd::new(&rt.handle(), &profile, conditions[rng.below(3) as usize]);
        let (handle, clients) = (rt.handle(), 1 + rng.below(40));
        rt.block_on(async move {
            let left = Budget { reads: 5, writes: 5, time_ms: 5 };
            let thresholds = Thresholds { events: Events::ALL, left };
            let config = PlmConfig { enabled: true, thresholds };
            ssd.configure_plm(set(1), config).await.expect("it has windows");
            handle.spawn("windows", choose_windows(handle.clone(), ssd.clone()));
            let running: Vec<_> = (0..clients)
                .map(|number| {
                    let rng = handle.rng(&format!("client {number}"));
                    let client = client(handle.clone(), ssd.clone(), rng, COMMANDS / clients);
                    handle.spawn("client", client)
                })
                .collect();
            for client in running {
                client.await;
            }
            let stats = ssd.report(set(1)).expect("it exists").firmware;
            assert!(stats.windows_entered > 0, "{stats:?}");
        });
    }
}
