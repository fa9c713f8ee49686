//! Times of a trace: from its beginning, never decreasing.

use runtime::Nanos;

use super::Wrong;

/// Longest trace, in nanoseconds: thirty years; the clock has 584.
const LONGEST_NANOS: u128 = 30 * 365 * 86_400 * 1_000_000_000;

/// Converts recorded times into times since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// The recorded time, in nanoseconds, that counts as 0.
    start: Option<u128>,
    last: Nanos,
    out_of_order: u64,
}

impl Clock {
    /// Creates a clock whose recorded times count from 0.
    pub(crate) fn from_zero() -> Self {
        Self { start: Some(0), ..Self::default() }
    }

    /// Returns the time of an operation recorded at `nanos`. A time earlier than the previous one
    /// becomes the previous one.
    pub(crate) fn at(&mut self, nanos: u128, text: &str) -> Result<Nanos, Wrong> {
        let start = *self.start.get_or_insert(nanos);
        let since = nanos.saturating_sub(start);
        if since > LONGEST_NANOS {
            return Err(Wrong::new(text, "a time within 30 years of the trace's first"));
        }
        let at = Nanos(since as u64);
        let is_back = nanos < start || at < self.last;
        self.out_of_order += u64::from(is_back);
        self.last = self.last.max(at);
        Ok(self.last)
    }

    /// Returns the time of the last operation.
    pub(crate) fn last(&self) -> Nanos {
        self.last
    }

    /// Returns the operations with an earlier recorded time than the previous one.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_and_never_go_back() {
        let mut clock = Clock::default();
        let mut at = |nanos| clock.at(nanos, "x").map(|at| at.0);
        assert_eq!(
            [at(1_000), at(1_500), at(1_200), at(500), at(2_000)],
            [Ok(0), Ok(500), Ok(500), Ok(500), Ok(1_000)]
        );
        assert!(at(u128::MAX).is_err());
        assert_eq!((clock.out_of_order(), clock.last()), (2, Nanos(1_000)));
        assert_eq!(Clock::from_zero().at(7, "x"), Ok(Nanos(7)));
    }
}
