//! Decides which compactions give way to those out of L0, and how: SILK's priorities, between two
//! steps of a merge. Pure.

use crate::options::tables::Preemption;

/// The state of a compaction below L0 at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub preemption: Preemption,
    /// Whether L0 is due, and cannot be merged into L1 before this compaction releases its tables.
    pub blocks_l0: bool,
    /// Whether a compaction out of L0 is in progress.
    pub l0_runs: bool,
    /// Whether clients need the medium.
    pub is_paused: bool,
}

/// The next action of the compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    GoOn,
    /// Continue with the urgency of L0's compaction, which waits for this one.
    GoOnForL0,
    /// Wait until no compaction out of L0 is in progress.
    WaitForL0,
    /// Wait until clients need the medium less.
    Pause,
    /// End; the output is garbage.
    Discard,
}

/// Returns the next action. A compaction never waits while it holds tables that L0 needs: it would
/// wait for L0, which waits for it, or for clients, which in the end wait for L0.
pub(crate) fn turn(standing: Standing) -> Turn {
    let Standing { preemption, blocks_l0, l0_runs, is_paused } = standing;
    match preemption {
        Preemption::Discard if blocks_l0 => Turn::Discard,
        Preemption::Keep if blocks_l0 => Turn::GoOnForL0,
        Preemption::None if blocks_l0 => Turn::GoOn,
        Preemption::Keep | Preemption::Discard if l0_runs => Turn::WaitForL0,
        _ if is_paused => Turn::Pause,
        _ => Turn::GoOn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_compactions_give_way_but_not_with_tables_that_l0_needs() {
        use Preemption::{Discard, Keep, None};
        let table = [
            // preemption, blocks L0, L0 runs, paused
            (None, false, false, false, Turn::GoOn),
            (None, true, true, false, Turn::GoOn),
            (None, false, true, true, Turn::Pause),
            (None, true, false, true, Turn::GoOn),
            (Keep, false, false, false, Turn::GoOn),
            (Keep, false, true, false, Turn::WaitForL0),
            (Keep, false, true, true, Turn::WaitForL0),
            (Keep, false, false, true, Turn::Pause),
            (Keep, true, false, true, Turn::GoOnForL0),
            (Keep, true, true, false, Turn::GoOnForL0),
            (Discard, false, true, false, Turn::WaitForL0),
            (Discard, false, false, true, Turn::Pause),
            (Discard, true, false, false, Turn::Discard),
            (Discard, true, true, true, Turn::Discard),
        ];
        for (preemption, blocks_l0, l0_runs, is_paused, expected) in table {
            let standing = Standing { preemption, blocks_l0, l0_runs, is_paused };
            assert_eq!(turn(standing), expected, "{standing:?}");
        }
    }
}
