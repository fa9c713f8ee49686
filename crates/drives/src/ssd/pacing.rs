//! Write pacing: while space is low, writes enter the buffer only as fast as collection can make
//! room for them.
//!
//! Without pacing a drive accepts writes until its buffer is full, and then stalls until it has
//! drained; with pacing each write of a burst waits briefly. Decisions and arithmetic only.

use runtime::Nanos;

use super::layout::Layout;
use crate::nand::FlashProfile;

/// Longest interval between two blocks: profiles may have flash times far beyond any real drive.
const LONGEST: Nanos = Nanos::from_millis(60_000);

/// Schedules writes: a leaky bucket (GCRA, ITU-T I.371).
#[derive(Default)]
pub(crate) struct Pacer {
    /// Time of the next block if all blocks were evenly spaced.
    even: Nanos,
    /// The interval used for `even`.
    each: Nanos,
}

impl Pacer {
    /// Returns the time at which a block that arrives at `now` may enter, at one block per `each`
    /// and with up to `burst` blocks ahead of the even schedule.
    pub(crate) fn admit(&mut self, now: Nanos, each: Nanos, burst: u32) -> Nanos {
        let even = now + self.ahead(now, each);
        self.even = even + each;
        self.each = each;
        now + even.saturating_since(now + each * u64::from(burst))
    }

    /// Returns the lead over the even schedule, as time at an interval of `each`. The lead is a
    /// number of blocks, so it is rescaled when the interval changes; otherwise a burst at a slow
    /// pace would hold back writes after the pace becomes fast.
    fn ahead(&self, now: Nanos, each: Nanos) -> Nanos {
        let (ahead, was) = (self.even.saturating_since(now), self.each.0.max(1));
        Nanos((u128::from(ahead.0) * u128::from(each.0) / u128::from(was)) as u64)
    }
}

/// Returns the interval between client blocks at which the dies are used at `percent` of their
/// capacity, by the sum of operation times, while each collected superblock has `valid` slots to
/// move. Each superblock costs programs of all its units, reads of its pages with valid slots, and
/// one erase. Waits for channels are ignored unless the channels are the bottleneck, and so are
/// moves by read reclaim and wear levelling.
pub(crate) fn each(flash: &FlashProfile, layout: &Layout, valid: u32, percent: f64) -> Nanos {
    let (geometry, timing) = (&flash.geometry, &flash.timing);
    let dies = f64::from(geometry.channels * geometry.dies_per_channel);
    let (units, unit) = (f64::from(layout.data_units) / dies, f64::from(layout.pages_per_unit));
    let slots = layout.data_slots();
    let share = f64::from(valid) / f64::from(slots);
    // Slots become stale at random: a page is read if at least one valid slot is left.
    let reads = units * unit * (1.0 - (1.0 - share).powi(layout.slots_per_page as i32));
    let transfer = f64::from(geometry.transfer_bytes) / timing.channel_mb_per_s;
    let side_by_side = match &flash.overlap {
        Some(overlap) if overlap.independent_planes => f64::from(geometry.planes_per_die),
        _ => 1.0,
    };
    let program = timing.command_us + unit * transfer + mean(&timing.program_us);
    let read = (timing.command_us + mean(&timing.read_us) + transfer) / side_by_side;
    let die = units * program + reads * read + timing.erase_us;
    let channel = f64::from(geometry.dies_per_channel) * (units * unit + reads) * transfer;
    let gain = f64::from(slots.saturating_sub(valid).max(1));
    Nanos::from_micros_f64(die.max(channel) / gain * 100.0 / percent).min(LONGEST)
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    #[test]
    fn who_comes_evenly_never_waits_and_a_burst_waits_for_its_turns() {
        let mut pacer = Pacer::default();
        let mut at = |now| pacer.admit(us(now), us(10), 2);
        assert_eq!([at(100), at(110), at(120)], [us(100), us(110), us(120)]);
        // Three more blocks than the even schedule, with a burst of two.
        assert_eq!([at(200), at(200), at(200), at(200)], [us(200), us(200), us(200), us(210)]);
        assert_eq!(at(215), us(220));
        assert_eq!(at(1_000), us(1_000), "what was not used is not saved up");
    }

    #[test]
    fn a_burst_at_a_slow_pace_is_as_many_blocks_at_a_fast_one() {
        let mut pacer = Pacer::default();
        for _ in 0..1_000 {
            assert_eq!(pacer.admit(us(0), us(1_000), 1_000), us(0));
        }
        // After these, 999 blocks are ahead. A thousand may be, at any interval.
        let mut at = |now, each| pacer.admit(us(now), us(each), 1_000);
        assert_eq!([at(1_000, 10), at(1_000, 10)], [us(1_000), us(1_000)]);
        assert_eq!([at(1_000, 10), at(1_000, 1_000)], [us(1_010), us(3_000)]);
    }

    fn of_pm9a3(valid: impl Fn(u32) -> u32, change: impl Fn(&mut crate::ssd::SsdProfile)) -> Nanos {
        let mut profile = crate::ssd::SsdProfile::load("pm9a3-960gb").expect("built in");
        change(&mut profile);
        let flash = profile.flash_of_set();
        let layout = Layout::new(&flash.geometry);
        each(&flash, &layout, valid(layout.data_slots()), 89.0)
    }

    #[test]
    fn the_distance_is_what_the_dies_take_over_what_a_collection_gains() {
        // 16 dies; a superblock has 510.5 data units of 6 pages and 24 slots per die. A unit takes
        // 0.3 + 6 * 18,022 B / 1.2 GB/s + 930 = 1,020.4 us, all units 520.9 ms, the erase 3.5 ms:
        // 196 thousand slots at 2.675 us each; at 89 %, 3.006 us.
        let near = |each: Nanos, us: f64| {
            let off = each.as_secs_f64() * 1e6 / us - 1.0;
            assert!(off.abs() < 2e-3, "{each} and {us} us");
        };
        near(of_pm9a3(|_| 0, |_| ()), 3.006);
        // With 73 % valid, 1 - 0.27^4 of the pages are read, two planes at a time, at 0.3 + 48.7 +
        // 15.0 us: 97.5 ms more. A collection gains 27 % of the slots.
        near(of_pm9a3(|slots| (f64::from(slots) * 0.73) as u32, |_| ()), 13.20);
        // At 100 MB/s two dies share the channel: 2 * 3,063 pages at 180 us.
        let narrow = |profile: &mut crate::ssd::SsdProfile| {
            profile.flash.timing.channel_mb_per_s = 100.0;
        };
        near(of_pm9a3(|_| 0, narrow), 6.328);
    }

    #[test]
    fn times_beyond_any_drive_give_the_longest_distance() {
        let slow =
            |profile: &mut crate::ssd::SsdProfile| profile.flash.timing.program_us = vec![6e7];
        assert_eq!(of_pm9a3(|slots| slots - 1, slow), LONGEST);
        let mut pacer = Pacer::default();
        for _ in 0..3 {
            pacer.admit(us(0), LONGEST, 1 << 20);
        }
    }
}
