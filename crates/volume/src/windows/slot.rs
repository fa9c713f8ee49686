//! Lengths of windows: the arithmetic of Vigil-KV's `devd` (ATC'22, sections 5.2 and 6.2). No clock
//! and no I/O here.
//!
//! The paper's equations are in a figure whose text is lost. These follow the text of the paper:
//! reads that were begun end before NDWIN (UDT), and writes that were begun end before DTWIN (UND).
//! NDWIN lasts as long as the device needs (minNDWIN), and DTWIN at most as long as it allows
//! (maxDTWIN). At most one member is outside ADT at a time, so slots follow one another.

use runtime::Nanos;

/// The requirements of a device (log page 0Ah).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The maximum length of a DTWIN.
    pub max_dtwin: Nanos,
    /// The minimum length of an NDWIN.
    pub min_ndwin: Nanos,
    /// The duration of the lockdown at the end of NDWIN.
    pub lockdown: Nanos,
}

/// Maximum margin subtracted from a device's values (assumed).
const MAX_MARGIN: Nanos = Nanos(50_000_000);

impl Rules {
    /// Returns the margin subtracted from the device's values, for the time of commands and timers:
    /// a thousandth of the longest window.
    pub fn margin(&self) -> Nanos {
        MAX_MARGIN.min(Nanos(self.max_dtwin.0 / 1_000))
    }

    /// Returns the length of the shortest slot, with its lockdown.
    pub fn shortest_slot(&self) -> Nanos {
        self.min_ndwin + self.lockdown + self.margin()
    }
}

/// The policy for the length of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotPolicy {
    /// All slots have this length, or minNDWIN if that is longer: R-Vigil.
    Constant(Nanos),
    /// minNDWIN, and the maximum length once the cache has filled up: O-Vigil.
    Dynamic,
}

/// The current length of dynamic slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The minimum length: few reads are rebuilt.
    #[default]
    Min,
    /// As long as the work needs and the rules allow.
    Max,
}

/// The amount of waiting writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pressure {
    /// Bytes in `plm_cache`.
    pub cached: u64,
    /// The capacity of `plm_cache` in bytes.
    pub limit: u64,
    /// Whether a member's last slot ended before its work did.
    pub has_unfinished: bool,
}

impl Pressure {
    /// Returns the mode of the next slots. The longest above half of the limit, or if a slot was
    /// too short; the shortest below a tenth of the limit (assumed: the paper has "a threshold");
    /// otherwise unchanged.
    pub const fn mode(&self, before: Mode) -> Mode {
        if self.cached > self.limit / 2 || self.has_unfinished {
            Mode::Max
        } else if self.cached < self.limit / 10 {
            Mode::Min
        } else {
            before
        }
    }
}

impl SlotPolicy {
    /// Returns the length of AND and UND together, for a member with `backlog` bytes to write at
    /// `bytes_per_second`. The other members leave at most `room` for it.
    pub fn ndwin(
        self,
        mode: Mode,
        rules: &Rules,
        backlog: u64,
        bytes_per_second: u64,
        room: Nanos,
    ) -> Nanos {
        let wanted = match (self, mode) {
            (Self::Constant(length), _) => length,
            (Self::Dynamic, Mode::Min) => rules.min_ndwin,
            (Self::Dynamic, Mode::Max) => span_of(backlog, bytes_per_second),
        };
        wanted.min(room).max(rules.min_ndwin)
    }
}

/// Returns the time that `bytes` bytes take.
pub fn span_of(bytes: u64, bytes_per_second: u64) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns the latest end, lockdown included, of a slot that begins now. `deadlines` are the ends
/// of the DTWINs of the members whose slots come next, in order; each of these slots takes
/// `shortest`.
pub fn latest_end(deadlines: impl IntoIterator<Item = Nanos>, shortest: Nanos) -> Nanos {
    let before = |(turn, deadline): (u64, Nanos)| {
        Nanos(deadline.0.saturating_sub(turn.saturating_mul(shortest.0)))
    };
    (0..).zip(deadlines).map(before).min().unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;
    const RULES: Rules =
        Rules { max_dtwin: Nanos(60 * S), min_ndwin: Nanos(4 * S), lockdown: Nanos(S / 50) };

    #[test]
    fn slots_grow_when_the_cache_fills_and_shrink_when_it_is_empty() {
        let at = |cached, has_unfinished| Pressure { cached, limit: 100, has_unfinished };
        assert_eq!(at(50, false).mode(Mode::Min), Mode::Min);
        assert_eq!(at(51, false).mode(Mode::Min), Mode::Max);
        assert_eq!(at(10, false).mode(Mode::Max), Mode::Max, "it does not go to and fro");
        assert_eq!(at(9, false).mode(Mode::Max), Mode::Min);
        assert_eq!(at(0, true).mode(Mode::Min), Mode::Max);
    }

    #[test]
    fn a_slot_is_as_long_as_its_work_within_what_is_allowed() {
        let (mb, room) = (1_000_000, Nanos(28 * S));
        let of = |policy: SlotPolicy, mode, backlog| {
            policy.ndwin(mode, &RULES, backlog, 100 * mb, room).0 / S
        };
        assert_eq!(of(SlotPolicy::Dynamic, Mode::Min, 5_000 * mb), 4);
        assert_eq!(of(SlotPolicy::Dynamic, Mode::Max, 0), 4);
        assert_eq!(of(SlotPolicy::Dynamic, Mode::Max, 1_000 * mb), 10);
        assert_eq!(of(SlotPolicy::Dynamic, Mode::Max, 5_000 * mb), 28);
        assert_eq!(of(SlotPolicy::Constant(Nanos(7 * S)), Mode::Max, 5_000 * mb), 7);
        assert_eq!(of(SlotPolicy::Constant(Nanos(S)), Mode::Min, 0), 4);
    }

    #[test]
    fn the_longest_slot_of_three_leaves_the_others_theirs() {
        // In turn and without pauses, each slot is half of the longest window: 30 s.
        let begins = 100 * S;
        let deadlines = [begins - 60 * S + 60 * S + 30 * S, begins + 60 * S].map(Nanos);
        assert_eq!(latest_end(deadlines, Nanos(30 * S)), Nanos(begins + 30 * S));
        assert_eq!(latest_end(deadlines, Nanos(4 * S)), Nanos(begins + 30 * S));
        assert_eq!(latest_end([], Nanos(4 * S)), Nanos::MAX);
        assert_eq!(span_of(u64::MAX, 0), Nanos::MAX);
    }

    proptest! {
        #[test]
        fn nobody_s_window_lasts_too_long(
            lengths in proptest::collection::vec(0_u64..40, 1..40),
            pauses in proptest::collection::vec(0_u64..80, 40),
            members in 2_usize..6,
        ) {
            // Members in turn; the k-th wants a slot of `lengths[k]` seconds after a pause of
            // `pauses[k]` seconds.
            let shortest = RULES.min_ndwin + RULES.lockdown;
            let mut now = Nanos(10 * S);
            let mut deadlines: Vec<Nanos> = vec![now + RULES.max_dtwin; members];
            for (turn, length) in lengths.iter().enumerate() {
                let in_turn = |first: usize| {
                    let deadlines = deadlines.clone();
                    (first..members).map(move |step| deadlines[(turn + step) % members])
                };
                let pause = now + Nanos(pauses[turn] * S);
                now = pause.min(latest_end(in_turn(0), shortest)).max(now);
                prop_assert!(now <= deadlines[turn % members], "its own window has ended before");
                let end = latest_end(in_turn(1), shortest);
                let room = end.saturating_since(now + RULES.lockdown);
                let backlog = length * 1_000;
                let ndwin = SlotPolicy::Dynamic.ndwin(Mode::Max, &RULES, backlog, 1_000, room);
                prop_assert!(ndwin >= RULES.min_ndwin);
                now = now + ndwin + RULES.lockdown;
                prop_assert!(now <= end, "the others have to have their slots");
                deadlines[turn % members] = now + RULES.max_dtwin;
            }
        }
    }
}
