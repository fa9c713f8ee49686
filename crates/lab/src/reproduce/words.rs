//! Numbers and verdicts as a report words them.

use std::fmt;

use crate::report::{Comparison, Verdict};

/// A factor: `3.6x`.
pub(super) fn times(factor: f64) -> String {
    format!("{factor:.2}x")
}

/// A change in percent: `-73 %`.
pub(super) fn change(from: f64, to: f64) -> String {
    format!("{:+.0} %", (to / from - 1.0) * 100.0)
}

/// What to note where simulations of other builds were taken.
pub(super) fn of_other_builds(count: usize) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{count} of the simulations were taken from a run of another build of this program: the command above gives the \
             same only if nothing that matters to them has changed."
        )
    })
}

/// Bytes a second.
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}

/// Microseconds.
pub(super) fn micros(us: f64) -> String {
    format!("{us:.0} us")
}

/// What came out, and how many times the published number that is.
pub(super) fn beside(published: f64, ours: f64, text: impl fmt::Display) -> String {
    let factor = ours / published;
    let digits = if factor < 0.995 { 2 } else { 1 };
    format!("{text} (ours/paper {factor:.digits$})")
}

fn is_close(published: f64, ours: f64) -> bool {
    (ours / published - 1.0).abs() <= 0.3
}

/// How a gain or loss, as a factor, compares with the published one: within 30 % it holds, beyond it
/// deviates as long as it is a gain, or a loss, like the published one. Else it does not hold.
pub(super) fn gain(published: f64, ours: f64) -> Verdict {
    if (published > 1.0) != (ours > 1.0) {
        Verdict::DoesNotHold
    } else if is_close(published, ours) {
        Verdict::Holds
    } else {
        Verdict::Deviates
    }
}

/// How a time or a size compares with the published one: within 30 % it holds, up to twice or down to
/// half of it it deviates. Beyond that it is another time or size, and does not hold.
pub(super) fn amount(published: f64, ours: f64) -> Verdict {
    if is_close(published, ours) {
        Verdict::Holds
    } else if (0.5..=2.0).contains(&(ours / published)) {
        Verdict::Deviates
    } else {
        Verdict::DoesNotHold
    }
}

/// Whether a statement holds.
pub(super) fn holds(does: bool) -> Verdict {
    if does { Verdict::Holds } else { Verdict::DoesNotHold }
}

/// A row of the table.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_had_of_either_kind_of_number() {
        let (holds, deviates, not) = (Verdict::Holds, Verdict::Deviates, Verdict::DoesNotHold);
        for (published, ours, as_amount, as_gain) in [
            (74.0, 83.4, holds, holds),
            (74.0, 50.0, deviates, deviates),
            (74.0, 110.0, deviates, deviates),
            (74.0, 30.0, not, deviates),
            (74.0, 7_400.0, not, deviates),
            (74.0, 0.0, not, not),
            (0.27, 0.68, not, deviates),
            (0.9, 1.01, holds, not),
            (1.37, 0.99, holds, not),
        ] {
            assert_eq!(amount(published, ours), as_amount, "{ours} against {published}");
            assert_eq!(gain(published, ours), as_gain, "{ours} against {published}");
        }
    }

    #[test]
    fn a_factor_is_given_beside_what_came_out() {
        assert_eq!(beside(74.0, 83.4, "83.4 us"), "83.4 us (ours/paper 1.1)");
        assert_eq!(beside(3.6, 1.0, times(1.0)), "1.00x (ours/paper 0.28)");
    }
}
