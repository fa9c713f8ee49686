//! The ageing of a drive.

use report::units::{count_text, three_digits};
use workload::OpKind;

use crate::result::BenchResult;

/// Returns a line about the ageing, or about a run that needed it and had none.
pub(super) fn ageing(result: &BenchResult) -> String {
    let Some(ageing) = &result.ageing else { return no_steady_state(result) };
    let last = ageing.write_amplification.iter().rev().take(4).rev();
    let last: Vec<String> = last.map(|one| three_digits(*one)).collect();
    let verdict = if ageing.is_steady {
        "within 2 %: a steady state".to_owned()
    } else {
        "NOT within 2 %: no steady state was reached".to_owned()
    };
    format!(
        "aged: {:.0} % full, {} pairs overwritten over {} s; write amplification at last {}, {verdict}",
        ageing.fill * 100.0,
        count_text(ageing.overwritten),
        three_digits(ageing.virtual_seconds),
        last.join(", "),
    )
}

/// Returns a line if the run wrote pairs but collected no garbage.
fn no_steady_state(result: &BenchResult) -> String {
    let flash = &result.flash;
    let writes = result.operations.get(OpKind::Put.name()).is_some_and(|puts| puts.count > 0);
    if result.store.is_some() || !writes || flash.extents_collected > 0 {
        return String::new();
    }
    let missing = if flash.flushes == 0 { "nothing was flushed and no" } else { "no" };
    format!(
        "no steady state: {missing} garbage was collected in the run (--age overwrites the drive until it is)"
    )
}
