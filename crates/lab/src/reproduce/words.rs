//! Numbers and verdicts as a report words them.

use crate::report::{Comparison, Verdict};

/// A factor: `3.6x`.
pub(super) fn times(factor: f64) -> String {
    format!("{factor:.2}x")
}

/// A change in percent: `-73 %`.
pub(super) fn change(from: f64, to: f64) -> String {
    format!("{:+.0} %", (to / from - 1.0) * 100.0)
}

/// Bytes a second.
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}

/// Microseconds.
pub(super) fn micros(us: f64) -> String {
    format!("{us:.0} us")
}

/// How a factor or ratio compares with the published one: within 30 % it holds, beyond it deviates
/// as long as it is on the same side of `neutral`.
pub(super) fn verdict(published: f64, ours: f64, neutral: f64) -> Verdict {
    if (published > neutral) != (ours > neutral) {
        Verdict::DoesNotHold
    } else if (ours / published - 1.0).abs() <= 0.3 {
        Verdict::Holds
    } else {
        Verdict::Deviates
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
