//! Numbers of runs: a volume runs from its creation or a recovery to the next power cut.
//!
//! The upper half is one more than that of any run that the members which answer have heard of, so it grows from run to
//! run as long as each has a member of the one before. Two runs may have the same all the same: what the first one wrote was
//! lost but on a member that is away in the second one. The lower half, which is random, tells them apart.

use runtime::Handle;

/// The number of a run that knows of runs up to `known`.
pub(crate) fn after(known: u64, handle: &Handle) -> u64 {
    let random = handle.rng("run of a volume").next_u64() >> 32;
    (count(known) + 1) << 32 | random
}

/// How many runs there were, as far as that one knew. Revisions begin with it, too.
pub(crate) fn count(run: u64) -> u64 {
    run >> 32
}

/// The revision of headers that a run writes, which had another one: higher than those of all runs before it.
pub(crate) fn next_revision(run: u64, before: u64) -> u64 {
    before.saturating_add(1).max(count(run) << 32)
}
