//! Run numbers. A run of a volume lasts from its creation or a recovery to the next power cut.
//!
//! The upper half is one more than that of any run known to the members that answer. So it grows
//! from run to run, as long as each run has a member of the previous run. Two runs may still have
//! the same upper half, if everything the first run wrote was lost except on a member that is away
//! in the second run. The lower half is random and distinguishes them.

use runtime::Handle;

/// Returns the number of a run whose highest known earlier run is `known`.
pub(crate) fn after(known: u64, handle: &Handle) -> u64 {
    let random = handle.rng("run of a volume").next_u64() >> 32;
    (count(known) + 1) << 32 | random
}

/// Returns the count of runs, as far as run `run` knew. The upper half of a revision is such a
/// count, too.
pub(crate) fn count(run: u64) -> u64 {
    run >> 32
}

/// Returns the next header revision that run `run` writes, after revision `before`. It is higher
/// than all revisions of earlier runs.
pub(crate) fn next_revision(run: u64, before: u64) -> u64 {
    before.saturating_add(1).max(count(run) << 32)
}
