//! Which compactions give way to those out of L0, and how: SILK's priorities, between two steps of a merge. Pure.

use crate::tables::options::Preemption;

/// How a compaction below L0 stands at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub preemption: Preemption,
    /// L0 is due, and cannot be merged into L1 before this compaction lets go of its tables.
    pub blocks_l0: bool,
    /// A compaction out of L0 is under way.
    pub l0_runs: bool,
    /// Clients need the medium.
    pub is_paused: bool,
}

/// What it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    GoOn,
    /// It goes on, and is as urgent as L0's, which waits for it.
    GoOnForL0,
    /// It waits until no compaction out of L0 is under way.
    WaitForL0,
    /// It waits until clients need the medium less.
    Pause,
    /// It ends, and what it has written is garbage.
    Discard,
}

/// Nobody waits with tables that L0 needs: what L0 waits for would wait for L0, or for clients, who wait for
/// L0 in the end.
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
