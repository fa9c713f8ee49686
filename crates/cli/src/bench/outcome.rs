//! The result of a bench, on the terminal and as files.

use std::process::ExitCode;

use anyhow::bail;
use kvbench::{BenchOutcome, picture, table};

use crate::interrupt;
use crate::results::ResultArguments;

/// Returns the failure of a run, if it failed.
pub(super) fn trouble(outcome: &BenchOutcome) -> Option<String> {
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        return Some(format!("{} answers were wrong data: this is a bug", verification.mismatches));
    }
    let error = verification.first_error.as_ref();
    error.map(|error| format!("the run ended early: {error}"))
}

/// Prints and writes the result, and returns the exit code.
pub(super) fn end(results: &ResultArguments, outcome: &BenchOutcome) -> anyhow::Result<ExitCode> {
    show(results, outcome)?;
    if let Some(trouble) = trouble(outcome) {
        bail!(trouble);
    }
    let is_interrupted = outcome.result.interrupted.is_some();
    Ok(if is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// Prints the result, then writes its files, so that a full disk does not lose the result.
fn show(results: &ResultArguments, outcome: &BenchOutcome) -> anyhow::Result<()> {
    let (json, text) = texts(outcome)?;
    results.show(&json, &text, || files_of(outcome, &json, &text))
}

/// Returns the result as JSON and as text.
pub(super) fn texts(outcome: &BenchOutcome) -> serde_json::Result<(String, String)> {
    Ok((serde_json::to_string_pretty(&outcome.result)?, table::render(&outcome.result)))
}

/// Returns the result as files: names and contents.
pub(super) fn files_of(
    outcome: &BenchOutcome,
    json: &str,
    text: &str,
) -> [(&'static str, String); 6] {
    [
        ("result.json", format!("{json}\n")),
        ("result.txt", format!("{text}\n")),
        ("latency.csv", picture::latency_csv(&outcome.run)),
        ("timeline.csv", picture::timeline_csv(&outcome.run)),
        ("latency.svg", picture::latency_svg(&outcome.result, &outcome.run)),
        ("timeline.svg", picture::timeline_svg(&outcome.result, &outcome.run)),
    ]
}
