//! Whether what a paper says holds, and the rule by which that is told.

use serde::Serialize;

/// Whether what a paper says holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// Its direction does, its size does not.
    Deviates,
    /// It does not.
    DoesNotHold,
    /// The paper says nothing of it, or the experiment cannot tell.
    NotApplicable,
}

/// What each verdict means, as it stands below a table of them.
pub(super) const RULE: &str = "Verdicts go by factors, given as ours/paper. A gain or a loss holds if its factor is within \
    30 % of the published one (+37 % is 1.37); further off it deviates if it is a gain, or a loss, of 2 % and more like the published one; \
    otherwise it does not hold. A time or a size holds within 30 %, deviates up to twice or down to half of the published \
    one, and otherwise does not hold. A statement without a number holds or does not; it deviates where it holds in part. Not applicable: the paper says \
    nothing of it, or it is arithmetic, which no run can contradict, or what is compared is too close to tell.";

impl Verdict {
    /// What a published claim can get, from best to worst.
    pub(super) const OF_CLAIMS: [Self; 3] = [Self::Holds, Self::Deviates, Self::DoesNotHold];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Deviates => "deviates",
            Self::DoesNotHold => "does not hold",
            Self::NotApplicable => "not applicable",
        }
    }

    /// Of a gain or a loss, as a factor.
    pub(crate) fn of_gain(published: f64, ours: f64) -> Self {
        if (published > 1.0) != (ours > 1.0) {
            Self::DoesNotHold
        } else if is_close(published, ours) {
            Self::Holds
        } else if (ours - 1.0).abs() < NOTHING {
            Self::DoesNotHold
        } else {
            Self::Deviates
        }
    }

    /// Of a time or a size.
    pub(crate) fn of_amount(published: f64, ours: f64) -> Self {
        if is_close(published, ours) {
            Self::Holds
        } else if (0.5..=2.0).contains(&(ours / published)) {
            Self::Deviates
        } else {
            Self::DoesNotHold
        }
    }
}

/// A gain below this is none.
const NOTHING: f64 = 0.02;

fn is_close(published: f64, ours: f64) -> bool {
    (ours / published - 1.0).abs() <= 0.3
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
            (2.0, 1.01, deviates, not),
            (0.9, 0.99, holds, holds),
        ] {
            assert_eq!(Verdict::of_amount(published, ours), as_amount, "{ours} and {published}");
            assert_eq!(Verdict::of_gain(published, ours), as_gain, "{ours} and {published}");
        }
    }
}
