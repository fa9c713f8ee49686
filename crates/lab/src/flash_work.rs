//! The flash's counters, between two moments.

use std::collections::BTreeMap;

use flash::{Blocker, FlashStats, OperationCounts};
use runtime::IoClass;

/// Operations by class, without those that had been counted `before`.
pub(crate) fn pages(
    after: &FlashStats,
    before: Option<&FlashStats>,
    count: fn(OperationCounts) -> u64,
) -> BTreeMap<&'static str, u64> {
    let of = |stats: &FlashStats, class| count(stats.of(class));
    IoClass::ALL
        .into_iter()
        .map(|class| (class, of(after, class) - before.map_or(0, |before| of(before, class))))
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| (class.name(), count))
        .collect()
}

/// Demand reads by what occupied their die when they came.
pub(crate) fn reads_behind(
    after: &FlashStats,
    before: Option<&FlashStats>,
) -> BTreeMap<&'static str, u64> {
    let blockers = [
        ("nothing", Blocker::None),
        ("read", Blocker::Read),
        ("program", Blocker::Program),
        ("erase", Blocker::Erase),
    ];
    let of = |blocker| {
        after.waits(blocker).reads - before.map_or(0, |before| before.waits(blocker).reads)
    };
    blockers.into_iter().map(|(name, blocker)| (name, of(blocker))).collect()
}
