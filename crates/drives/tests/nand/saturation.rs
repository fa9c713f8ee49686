//! Throughput over queue depth. It follows the lowest of three bounds: outstanding reads over the
//! latency of one; dies over the time a read occupies one; channels over the time of a transfer.

use drives::nand::FlashProfile;
use runtime::Rng;

use crate::small_drive::{CLIENT, Drive, profile_of, us};

const CHANNELS: u32 = 2;
const DIES: u32 = 8;
const SPAN_US: u64 = 200_000;

/// Returns the reads per millisecond with `depth` outstanding; `die_of` chooses the die of each
/// read.
fn throughput(
    profile: &FlashProfile,
    depth: u32,
    die_of: impl Fn(u32, &mut Rng) -> u32 + Copy + 'static,
) -> f64 {
    let drive = Drive::new(profile);
    for reader in 0..depth {
        let flash = drive.flash.clone();
        let pages: Vec<_> = (0..DIES).map(|die| drive.page(die, 0, 0)).collect();
        let mut rng = Rng::new(u64::from(reader));
        drive.rt.handle().spawn("reader", async move {
            loop {
                let die = die_of(reader, &mut rng);
                assert!(flash.read(pages[die as usize], CLIENT).await.is_ok());
            }
        });
    }
    drive.rt.run_until(us(SPAN_US));
    drive.flash.stats().total().pages_read as f64 * 1_000.0 / SPAN_US as f64
}

fn assert_follows_the_bounds(profile: &FlashProfile, transfer_us: f64) {
    let latency = 41.0 + transfer_us;
    let die_bound = f64::from(DIES) / latency;
    let channel_bound = f64::from(CHANNELS) / transfer_us;
    for depth in [1, 2, 4, 6, 8, 16, 32, 64, 128, 256] {
        let by_depth = f64::from(depth) / latency;
        let expected = 1_000.0 * by_depth.min(die_bound).min(channel_bound);
        let measured = throughput(profile, depth, |reader, _| reader % DIES);
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.03, "depth {depth}: {measured:.2} is not {expected:.2} per ms");
    }
    let expected = 1_000.0 * die_bound.min(channel_bound);
    let at_random = throughput(profile, 256, |_, rng| rng.below(u64::from(DIES)) as u32);
    assert!((0.95..1.01).contains(&(at_random / expected)), "{at_random:.2}, not {expected:.2}");
}

#[test]
fn fast_channels_leave_the_dies_as_the_bound() {
    assert_follows_the_bounds(&profile_of(CHANNELS, DIES / CHANNELS), 5.0);
}

#[test]
fn slow_channels_are_the_bound() {
    let mut profile = profile_of(CHANNELS, DIES / CHANNELS);
    profile.timing.channel_mb_per_s = 200.0;
    assert_follows_the_bounds(&profile, 25.0);
}

#[test]
fn commands_take_their_share_of_slow_channels() {
    let mut profile = profile_of(CHANNELS, DIES / CHANNELS);
    profile.timing.channel_mb_per_s = 200.0;
    profile.timing.commands_on_channel = true;
    let measured = throughput(&profile, 256, |reader, _| reader % DIES);
    let bound = 1_000.0 * f64::from(CHANNELS) / 26.0;
    assert!((0.98..1.001).contains(&(measured / bound)), "{measured:.2} of {bound:.2} per ms");
}

#[test]
fn few_reads_at_random_meet_on_dies_and_stay_below_the_bound() {
    let profile = profile_of(CHANNELS, DIES / CHANNELS);
    let measured = throughput(&profile, 8, |_, rng| rng.below(u64::from(DIES)) as u32);
    let bound = 1_000.0 * f64::from(DIES) / 46.0;
    assert!((0.45..0.75).contains(&(measured / bound)), "{measured:.2} of {bound:.2} per ms");
}
