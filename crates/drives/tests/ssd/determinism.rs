//! The same seed gives the same run, step by step; another seed gives another run.

use block::BlockDevice;
use block::nvme::{Event, Events, PlmConfig, Thresholds, WindowSelect};
use drives::ssd::specimens::small;
use drives::ssd::{Precondition, Ssd, WritePacing};
use runtime::{Nanos, Rng, Runtime};

use crate::load::{Command, closed_loop, set};

/// Returns all observable results of a run with reads and writes in two sets, collection and
/// windows.
fn run(seed: u64) -> (u64, String) {
    let rt = Runtime::new(seed);
    let mut profile = small::profile(2);
    let windows = profile.plm.as_mut().expect("it has windows");
    (windows.dtwin_time_max_ms, windows.ndwin_time_min_low_ms) = (60, 20);
    // Other mechanisms that take turns or draw random numbers.
    profile.background.pacing = Some(WritePacing { percent: 60.0, burst_blocks: 3 });
    profile.host.jitter_us = 2.0;
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Random(0.9));
    let (handle, seen) = (rt.handle(), ssd.clone());
    let latencies = rt.block_on(async move {
        let events = Events::NONE.with(Event::Exceeded);
        let thresholds = Thresholds { events, ..Thresholds::default() };
        let config = PlmConfig { enabled: true, thresholds };
        ssd.configure_plm(set(1), config).await.expect("it has windows");
        let host = ssd.clone();
        handle.spawn("host", async move {
            loop {
                let _may_end_at_once = host.select_window(set(1), WindowSelect::Dtwin).await;
            }
        });
        let times = (Nanos::ZERO, Nanos::from_millis(300));
        let next = |client: usize, rng: &mut Rng| {
            let (of, first) = (set(1 + client as u16 % 2), rng.below(13_000));
            let blocks = 1 + rng.below(4) as u32;
            match client {
                // Set 1 is written occasionally; each write ends its window.
                0 | 2 if rng.chance(0.999) => Command::Read { set: of, first, blocks },
                1 => Command::Read { set: of, first, blocks },
                _ => Command::Write { set: of, first, blocks },
            }
        };
        closed_loop(&handle, &ssd, 4, times, next).await.latencies
    });
    let reports: Vec<_> = [set(1), set(2)].map(|of| seen.report(of)).into_iter().collect();
    let entered = reports[0].as_ref().expect("it exists").firmware.windows_entered;
    let collected = reports[1].as_ref().expect("it exists").firmware.collections;
    let paced = reports[1].as_ref().expect("it exists").firmware.blocks_paced;
    assert!(entered > 2 && collected > 2, "{entered} windows, {collected} collections");
    assert!(paced > 2, "{paced} blocks paced");
    (rt.handle().trace_hash(), format!("{reports:?} {latencies:?}"))
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let first = run(17);
    assert!(first == run(17), "the same seed");
    let other = run(18);
    assert!(first.0 != other.0 && first.1 != other.1, "another seed");
}
