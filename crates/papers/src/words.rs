//! Numbers and verdicts as text of a report.

use std::fmt;

use report::units::{count_text, three_digits};
use report::{Comparison, Counted, Verdict};

/// Formats a factor: `3.6x`.
pub(super) fn times(factor: f64) -> String {
    format!("{factor:.2}x")
}

/// Formats a change in percent: `-73 %`.
pub(super) fn change(from: f64, to: f64) -> String {
    format!("{:+.0} %", (to / from - 1.0) * 100.0)
}

/// Returns the note about simulations that another build of the program saved, if any were reused.
pub(super) fn of_other_builds(count: usize) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{count} of the simulations were taken from a run of another build of this program: the command above gives the \
             same only if nothing that matters to them has changed."
        )
    })
}

/// Formats bytes per second as MB/s.
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}

/// Formats microseconds.
pub(super) fn micros(us: f64) -> String {
    format!("{} us", count_text(us.round() as u64))
}

/// Formats microseconds as milliseconds.
pub(super) fn millis(us: f64) -> String {
    format!("{} ms", three_digits(us / 1e3))
}

/// Returns the measured value with its factor to the published number.
pub(super) fn beside(published: f64, ours: f64, text: impl fmt::Display) -> String {
    let factor = ours / published;
    let digits = if factor < 0.995 { 2 } else { 1 };
    format!("{text} (ours/paper {factor:.digits$})")
}

/// Returns a comparison that counts.
pub(super) fn row(
    id: &str,
    what: &str,
    paper: &str,
    ours: impl Into<String>,
    verdict: Verdict,
    sentence: impl Into<String>,
) -> Comparison {
    Comparison {
        id: id.to_owned(),
        what: what.to_owned(),
        paper: paper.to_owned(),
        ours: ours.into(),
        holds: verdict,
        sentence: sentence.into(),
        counted: Counted::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_given_beside_what_came_out() {
        assert_eq!(beside(74.0, 83.4, "83.4 us"), "83.4 us (ours/paper 1.1)");
        assert_eq!(beside(3.6, 1.0, times(1.0)), "1.00x (ours/paper 0.28)");
    }
}
