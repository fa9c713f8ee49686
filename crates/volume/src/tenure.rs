//! Tenures: the incarnation of a member and the last run that it took part in durably, in one
//! number, as headers record them. `incarnations.rs` says what they are for.

/// Returns a tenure: the incarnation in the upper half, the number of the run in the lower half.
pub(crate) fn tenure(incarnation: u32, run: u64) -> u64 {
    u64::from(incarnation) << 32 | run & u64::from(u32::MAX)
}

/// Returns the incarnation of a tenure.
pub(crate) fn incarnation_of(tenure: u64) -> u32 {
    (tenure >> 32) as u32
}
