//! Differences between the flash's counters at two moments.

use std::collections::BTreeMap;

use drives::nand::{Blocker, FlashStats, OperationCounts};
use runtime::IoClass;

/// Returns the operations by class, without those counted in `before`; omits classes without
/// operations.
pub fn pages(
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

const BLOCKERS: [(&str, Blocker); 4] = [
    ("nothing", Blocker::None),
    ("read", Blocker::Read),
    ("program", Blocker::Program),
    ("erase", Blocker::Erase),
];

/// Returns the mean time that demand reads waited for their die, in microseconds, by the operation
/// that occupied it.
pub fn waited_us(after: &FlashStats, before: &FlashStats) -> BTreeMap<&'static str, f64> {
    let of = |blocker| {
        let (new, old) = (after.waits(blocker), before.waits(blocker));
        let waited = new.waited.saturating_since(old.waited).as_secs_f64() * 1e6;
        waited / (new.reads - old.reads).max(1) as f64
    };
    BLOCKERS.into_iter().map(|(name, blocker)| (name, of(blocker))).collect()
}

/// Returns the number of demand reads by the operation that occupied their die on arrival.
pub fn reads_behind(
    after: &FlashStats,
    before: Option<&FlashStats>,
) -> BTreeMap<&'static str, u64> {
    let of = |blocker| {
        after.waits(blocker).reads - before.map_or(0, |before| before.waits(blocker).reads)
    };
    BLOCKERS.into_iter().map(|(name, blocker)| (name, of(blocker))).collect()
}
