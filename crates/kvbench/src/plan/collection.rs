//! Estimates for a drive that is filled as laid out: the writes of garbage collection, and the
//! space that objects leave empty.

use drives::ssd::victim_share;
use engine::sizing::pair::Pair;
use report::units::count_text;

use super::levels::LevelsPlan;

/// From this share in use on, small differences in it change the cost of garbage collection much.
const NEARLY_FULL: f64 = 0.85;
/// From this share of empty space on, the plan reports it.
const MUCH_EMPTY: f64 = 0.2;

/// Returns the share in use of the flash that garbage collection does not keep free.
pub(super) fn in_use(plan: &LevelsPlan) -> f64 {
    let input = &plan.input;
    let values = (input.fill_bytes / input.pair_bytes) as f64 * input.value_log_bytes;
    let in_flash = if input.writes_pinned { 0 } else { plan.levels.pinned };
    let segments: u64 = plan.levels.capacities.iter().skip(in_flash as usize).sum();
    let index = (segments * input.segment_bytes) as f64;
    (values + index) / (input.capacity_bytes as f64 * (1.0 - plan.gc_start))
}

/// Returns a line about write amplification with garbage collection: each value is written
/// `1 / (1 - u)` times, where `u` is the share of a victim that is still in use. The index is
/// rewritten before it is collected.
pub(super) fn words(plan: &LevelsPlan) -> String {
    let share = in_use(plan);
    let percent = format!("{:.0} % of the flash", share * 100.0);
    let values = plan.input.value_amplification();
    if values == 0.0 {
        return "collection comes on top".to_owned();
    }
    if share >= 1.0 {
        return format!(
            "collection finds no room: all would take {percent} that it does not keep free"
        );
    }
    let all = values / (1.0 - victim_share(share)) + plan.levels.index_amplification(&plan.input);
    let nearly = if share >= NEARLY_FULL { "; so near full it is too little" } else { "" };
    format!(
        "with collection {all:.1} or more, {percent} being in use and overwritten at random{nearly}"
    )
}

/// Returns a line if objects leave much of their pages empty, with a length of values that need
/// less space.
pub(super) fn empty(pair: &Pair) -> Option<String> {
    let taken = pair.bytes_in_value_log();
    let empty = 1.0 - pair.bytes() as f64 / taken;
    if taken == 0.0 || empty < MUCH_EMPTY || pair.value_bytes == 0 {
        return None;
    }
    let takes_less =
        |bytes: &u32| Pair { value_bytes: *bytes, ..*pair }.bytes_in_value_log() < taken;
    let shorter = (1..pair.value_bytes).rev().find(takes_less);
    let hint = shorter.map_or(String::new(), |bytes| {
        format!("; values of {} bytes would take less", count_text(u64::from(bytes)))
    });
    Some(format!(
        "objects leave {:.0} % of the pages of values empty{hint}: one that fits a page does not begin in \
         another",
        empty * 100.0
    ))
}
