//! Verdicts on published claims. Each kind of claim has one function from the numbers to the
//! verdict; verdicts are made in no other way.

use serde::Serialize;

/// Whether a published claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds.
    Holds,
    /// The direction holds and the size does not, or the claim holds in part.
    Deviates,
    /// The claim does not hold.
    DoesNotHold,
    /// The paper makes no claim, or the claim is arithmetic.
    NotApplicable,
}

/// The rules of the verdicts, shown below a table of comparisons.
pub(super) const RULE: &str = "A verdict is a function of the numbers, one for each kind of claim; factors are ours/paper. \
    Faster, less or more: what is not a gain of more than 5 % as claimed does not hold. Beyond that it holds where the paper gives no number. Where it gives one, \
    it holds if the factor is within 30 % of the published one (+37 % is 1.37) and the gain, as a logarithm, is half to twice the published one; otherwise it deviates. \
    A time or a size holds within 30 %, deviates up to twice or down to half of the published one, and otherwise does not hold. \
    No worse: holds up to 5 % worse, deviates up to 30 %, and otherwise does not hold. Bounded: holds if no value is beyond the bound, otherwise does not hold. \
    A claim about several cases deviates where it holds in part, and does not hold where it holds in none. \
    Fitted: the model was given a parameter by the very number that is claimed; such claims are counted apart. \
    Not applicable: the paper says nothing of it, or it is arithmetic, which no run can contradict.";

/// A gain or a loss up to this factor counts as no change. Another seed moves the p99.9 of a run by
/// half a percent. All published gains are larger, so that each claim can get each verdict.
const NOTHING: f64 = 1.05;

impl Verdict {
    /// The verdicts that a published claim can get, from best to worst.
    pub(super) const OF_CLAIMS: [Self; 3] = [Self::Holds, Self::Deviates, Self::DoesNotHold];

    /// Returns the verdict as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Deviates => "deviates",
            Self::DoesNotHold => "does not hold",
            Self::NotApplicable => "not applicable",
        }
    }

    fn if_so(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::DoesNotHold }
    }

    /// Verdict on "more than" or "longer than", where the paper gives no number. `ours` is the
    /// value that should be larger over the value that should be smaller.
    pub fn of_more(ours: f64) -> Self {
        Self::if_so(ours > NOTHING)
    }

    /// Verdict on "less than" or "shorter than", where the paper gives no number. `ours` is the
    /// value that should be smaller over the value that should be larger.
    pub fn of_less(ours: f64) -> Self {
        Self::of_more(1.0 / ours)
    }

    /// Verdict on a gain or a loss for which the paper gives a number. Both are factors: -12 % is
    /// 0.88.
    pub fn of_gain(published: f64, ours: f64) -> Self {
        let as_claimed = if published < 1.0 { Self::of_less(ours) } else { Self::of_more(ours) };
        let is_as_large = (0.5..=2.0).contains(&(ours.ln() / published.ln()));
        match as_claimed {
            Self::Holds if is_close(published, ours) && is_as_large => Self::Holds,
            Self::Holds => Self::Deviates,
            not => not,
        }
    }

    /// Verdict on a time or a size.
    pub fn of_amount(published: f64, ours: f64) -> Self {
        if is_close(published, ours) {
            Self::Holds
        } else if (0.5..=2.0).contains(&(ours / published)) {
            Self::Deviates
        } else {
            Self::DoesNotHold
        }
    }

    /// Verdict on "no worse than". `ours` is a factor; more than 1 is worse.
    pub fn of_no_worse(ours: f64) -> Self {
        if ours <= NOTHING {
            Self::Holds
        } else if ours <= 1.0 + CLOSE {
            Self::Deviates
        } else {
            Self::DoesNotHold
        }
    }

    /// Verdict on "at most", "always below" or "none". `ours` is the largest measured value.
    pub fn of_bound(bound: f64, ours: f64) -> Self {
        Self::if_so(ours <= bound)
    }

    /// Verdict on a claim that covers several cases or has several parts.
    pub fn of_all(cases: impl IntoIterator<Item = Self>) -> Self {
        let mut cases = cases.into_iter();
        let Some(first) = cases.next() else { return Self::NotApplicable };
        cases.fold(first, |all, one| if all == one { all } else { Self::Deviates })
    }
}

/// Maximum relative difference from the published number of a claim that holds.
const CLOSE: f64 = 0.3;

fn is_close(published: f64, ours: f64) -> bool {
    (ours / published - 1.0).abs() <= CLOSE
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLDS: Verdict = Verdict::Holds;
    const DEVIATES: Verdict = Verdict::Deviates;
    const NOT: Verdict = Verdict::DoesNotHold;

    #[test]
    fn a_gain_is_told_from_nothing_first_and_by_its_size_then() {
        for (published, ours, verdict) in [
            // A factor near 1 is no gain, even within 30 % of the published factor.
            (0.88, 0.99, NOT),
            (0.88, 0.96, NOT),
            (0.88, 1.02, NOT),
            (0.665, 0.97, NOT),
            (3.6, 1.01, NOT),
            (1.37, 0.99, NOT),
            (2.0, f64::NAN, NOT),
            // Small gains can get each verdict.
            (0.95, 0.98, NOT),
            (0.95, 0.95, HOLDS),
            (0.95, 0.77, DEVIATES),
            (1.054, 1.25, DEVIATES),
            (1.054, 1.054, HOLDS),
            (0.88, 0.9, HOLDS),
            (1.26, 1.19, HOLDS),
            (0.66, 0.93, DEVIATES),
            (0.27, 0.68, DEVIATES),
            (0.27, 0.3, HOLDS),
            (1.37, 1.68, HOLDS),
            (7.22, 5.2, HOLDS),
            (7.22, 4.28, DEVIATES),
        ] {
            assert_eq!(Verdict::of_gain(published, ours), verdict, "{ours} and {published}");
        }
    }

    #[test]
    fn a_gain_without_a_number_has_the_threshold_of_one_with_a_number() {
        for (ours, verdict) in
            [(0.94, NOT), (1.0, NOT), (1.01, NOT), (1.05, NOT), (1.06, HOLDS), (2.5, HOLDS)]
        {
            assert_eq!(Verdict::of_more(ours), verdict, "{ours}");
            assert_eq!(Verdict::of_less(1.0 / ours), verdict, "{ours}");
            assert_eq!(Verdict::of_gain(1.2, ours) == NOT, verdict == NOT, "{ours}");
        }
        assert_eq!(Verdict::of_more(f64::NAN), NOT);
        assert_eq!(Verdict::of_more(f64::INFINITY), HOLDS);
    }

    /// p99 of gets of `PinK` over p99 of the LSM-tree, in two experiments.
    #[test]
    fn one_claim_is_judged_alike_in_all_experiments() {
        let of =
            |ratios: &[f64]| Verdict::of_all(ratios.iter().map(|ours| Verdict::of_less(*ours)));
        assert_eq!(of(&[0.94, 0.91]), HOLDS);
        assert_eq!(of(&[0.94, 0.92, 0.93, 0.88, 0.89]), HOLDS);
        assert_eq!(of(&[0.96, 0.92, 0.93, 0.88, 0.89]), DEVIATES);
        assert_eq!(of(&[1.02, 0.99]), NOT);
    }

    #[test]
    fn amounts_bounds_and_what_is_no_worse_have_a_rule_each() {
        for (ours, verdict) in [(83.4, HOLDS), (50.0, DEVIATES), (110.0, DEVIATES), (30.0, NOT)] {
            assert_eq!(Verdict::of_amount(74.0, ours), verdict, "{ours}");
        }
        for (ours, verdict) in [(162.0, HOLDS), (200.0, HOLDS), (200.1, NOT), (f64::NAN, NOT)] {
            assert_eq!(Verdict::of_bound(200.0, ours), verdict, "{ours}");
        }
        for (ours, verdict) in [(0.2, HOLDS), (1.05, HOLDS), (1.2, DEVIATES), (1.4, NOT)] {
            assert_eq!(Verdict::of_no_worse(ours), verdict, "{ours}");
        }
    }

    #[test]
    fn what_holds_in_part_deviates() {
        assert_eq!(Verdict::of_all([HOLDS, HOLDS]), HOLDS);
        assert_eq!(Verdict::of_all([HOLDS, NOT, HOLDS]), DEVIATES);
        assert_eq!(Verdict::of_all([DEVIATES, NOT]), DEVIATES);
        assert_eq!(Verdict::of_all([NOT, NOT]), NOT);
        assert_eq!(Verdict::of_all([]), Verdict::NotApplicable);
    }
}
