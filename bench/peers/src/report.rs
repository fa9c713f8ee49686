//! Tables for eyes, with ratios, and everything as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::parent::Outcomes;
use crate::task::Outcome;

const MIB: u64 = 1 << 20;

/// Under what conditions it was measured.
pub fn conditions(
    records: u64,
    data_bytes: u64,
    memory_bytes: u64,
    has_limit: bool,
    drops_cache: bool,
) -> String {
    let limit = if has_limit {
        "a limit of the system's, page cache included"
    } else {
        "the stores' own budgets only: the system let us set no limit, so that the page cache is as large as it likes"
    };
    let cache = if drops_cache { "emptied" } else { "NOT emptied, which was not permitted," };
    format!(
        "{records} pairs, {} MiB of keys and values; {} MiB of memory for each store ({limit}); page cache {cache} before each workload",
        data_bytes / MIB,
        memory_bytes / MIB
    )
}

/// The middle one of all rounds.
pub fn median<T>(outcomes: &[T], of: impl Fn(&T) -> f64) -> f64 {
    let mut all: Vec<f64> = outcomes.iter().map(of).collect();
    all.sort_unstable_by(f64::total_cmp);
    let middle = all.len() / 2;
    if all.len().is_multiple_of(2) {
        f64::midpoint(all[middle - 1], all[middle])
    } else {
        all[middle]
    }
}

/// A table for each workload: medians of the rounds, and ratios to the bound, or else to the first peer that has a number.
pub fn tables(outcomes: &Outcomes, names: &[String]) -> String {
    let mut text = String::new();
    for (workload, peers) in outcomes {
        let rows = names.iter().filter_map(|name| {
            let outcomes = peers.get(name)?;
            outcomes.iter().all(|outcome| outcome.operations > 0).then_some((name, outcomes))
        });
        let rows: Vec<_> = rows.collect();
        let Some((base, first)) = rows.first() else { continue };
        let columns = |outcomes: &[Outcome]| {
            [
                median(outcomes, Outcome::rate),
                median(outcomes, |outcome| outcome.latency.p50),
                median(outcomes, |outcome| outcome.latency.p99),
                median(outcomes, |outcome| outcome.latency.p999),
            ]
        };
        let bases = columns(first);
        let line = |text: &mut String, line: std::fmt::Arguments<'_>| {
            writeln!(text, "{line}").expect("a string takes any text");
        };
        line(&mut text, format_args!("\n{workload} (in brackets: times {base})"));
        let head = "| | a second | p50 us | p99 us | p99.9 us | beside: puts a second | bytes written for each of pairs |";
        line(&mut text, format_args!("{head}\n|---|---|---|---|---|---|---|"));
        for (name, outcomes) in rows {
            let cells: Vec<String> = columns(outcomes)
                .into_iter()
                .zip(bases)
                .map(|(value, base)| format!("{} ({:.2})", digits(value), value / base.max(1e-9)))
                .collect();
            let writer = outcomes[0].writer_rate.map_or(String::new(), |_| {
                digits(median(outcomes, |outcome| outcome.writer_rate.unwrap_or(0.0)))
            });
            let has_written = outcomes.iter().all(|outcome| outcome.user_bytes > 0);
            let amplification = if has_written {
                format!("{:.2}", median(outcomes, |o| o.written_bytes as f64 / o.user_bytes as f64))
            } else {
                String::new()
            };
            line(
                &mut text,
                format_args!("| {name} | {} | {writer} | {amplification} |", cells.join(" | ")),
            );
        }
        for (name, outcomes) in peers {
            if let Some(error) = outcomes.iter().find_map(|outcome| outcome.error.as_ref()) {
                line(&mut text, format_args!("{name}: {error}"));
            }
        }
    }
    text
}

fn digits(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// All rounds.
pub fn json(outcomes: &Outcomes, conditions: &str) -> Value {
    let workloads: Vec<Value> =
        outcomes.iter().map(|(name, peers)| json!({ "workload": name, "peers": peers })).collect();
    json!({ "conditions": conditions, "workloads": workloads })
}

/// Wrong answers of all.
pub fn mismatches(outcomes: &Outcomes) -> u64 {
    let all = outcomes.iter().flat_map(|(_, peers)| peers.values().flatten());
    all.map(|outcome| outcome.mismatches).sum()
}
