//! A replayed trace as text.

use report::units::{count_text, rate_text, span_text, three_digits};

use crate::result::{BenchResult, TraceResult};

pub(super) fn headline(result: &BenchResult, trace: &TraceResult, interrupted: &str) -> String {
    format!(
        "{interrupted}{}{} on {}, trace {} ({}): {} on {} keys, {}, seed {}\n\
         throughput {} operations/s over {} s of virtual time (load: {} pairs)",
        result.configuration.as_ref().map_or(String::new(), |name| format!("{name}: ")),
        result.design,
        result.device,
        trace.file,
        trace.format,
        operations(trace),
        count_text(trace.keys),
        result.clients,
        result.seed,
        rate_text(result.throughput_ops_per_second),
        span_text(result.virtual_seconds),
        count_text(result.records),
    )
}

/// Returns the number of replayed operations, and of all operations if that is larger.
fn operations(trace: &TraceResult) -> String {
    let all = count_text(trace.operations);
    if trace.replayed < trace.operations {
        format!("{} of {all} operations", count_text(trace.replayed))
    } else {
        format!("{all} operations")
    }
}

pub(super) fn trace(trace: &TraceResult) -> String {
    let mut lines = vec![format!(
        "in it: {} gets, {} puts, {} read-modify-writes, {} deletes over {} s; {} gets rightly found nothing",
        count_text(trace.gets),
        count_text(trace.puts),
        count_text(trace.read_modify_writes),
        count_text(trace.deletes),
        three_digits(trace.span_s),
        count_text(trace.not_found),
    )];
    lines.extend(trace.left_out.iter().map(|(what, count)| {
        format!("left out, as nothing is done for them: {} of kind {what}", count_text(*count))
    }));
    if trace.out_of_order > 0 {
        let count = count_text(trace.out_of_order);
        lines.push(format!("recorded out of order, and begun with those before: {count}"));
    }
    lines.join("\n")
}
