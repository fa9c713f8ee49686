//! Open loops that fell behind.

use runtime::Nanos;

use crate::units::span_text;

/// An open loop fell behind if the delay of its last operation exceeds this share of its duration.
const FELL_BEHIND: f64 = 0.01;

/// Returns the delay of the last operation in seconds, if a loop of `seconds` fell behind.
pub fn late_s(late: Nanos, seconds: f64) -> Option<f64> {
    Some(late.as_secs_f64()).filter(|late| *late > seconds * FELL_BEHIND)
}

/// Returns a line about a loop that fell behind.
pub fn fell_behind(name: &str, late_s: f64) -> String {
    format!("{name} fell behind: its last operation began {} s late", span_text(late_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_that_fell_behind_says_by_how_much() {
        assert_eq!(late_s(Nanos::from_millis(9), 1.0), None);
        let late = late_s(Nanos::from_millis(1_500), 2.0).expect("it fell behind");
        let line = fell_behind("the open loop", late);
        assert_eq!(line, "the open loop fell behind: its last operation began 1.50 s late");
    }
}
