//! Write pacing: while space is low, writes enter the buffer no faster than collection can go on making room for them.
//!
//! Without it a drive takes all that comes until its buffer is full, and then stalls for as long as that takes to drain;
//! with it bursts wait a little, each for its turn. Decisions and arithmetic only.

use flash::FlashProfile;
use runtime::Nanos;

use crate::layout::Layout;

/// Gives writes their turns: a leaky bucket (GCRA, ITU-T I.371).
#[derive(Default)]
pub(crate) struct Pacer {
    /// When the next block would go in if all came evenly.
    even: Nanos,
}

impl Pacer {
    /// When a block may go in that asks `now`, if one may every `each` and `burst` of them before their time.
    pub(crate) fn admit(&mut self, now: Nanos, each: Nanos, burst: u32) -> Nanos {
        let even = self.even.max(now);
        self.even = even + each;
        now + even.saturating_since(now + each * u64::from(burst))
    }
}

/// At what distance blocks of clients go in if dies take `percent` of what the sum of their times allows, while superblocks are
/// collected of which `valid` slots have to be moved: all units of a superblock are programmed, its pages with valid slots were read,
/// and it is erased. What waits for a channel in the meantime is left out, where channels are not what bounds it.
pub(crate) fn each(flash: &FlashProfile, layout: &Layout, valid: u32, percent: f64) -> Nanos {
    let (geometry, timing) = (&flash.geometry, &flash.timing);
    let dies = f64::from(geometry.channels * geometry.dies_per_channel);
    let (units, unit) = (f64::from(layout.data_units) / dies, f64::from(layout.pages_per_unit));
    let slots = layout.data_slots();
    let share = f64::from(valid) / f64::from(slots);
    // Slots die at random: a page has to be read if one of them is left.
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
    Nanos::from_micros_f64(die.max(channel) / gain * 100.0 / percent)
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
        // Three more than two at once.
        assert_eq!([at(200), at(200), at(200), at(200)], [us(200), us(200), us(200), us(210)]);
        assert_eq!(at(215), us(220));
        assert_eq!(at(1_000), us(1_000), "what was not used is not saved up");
    }
}
