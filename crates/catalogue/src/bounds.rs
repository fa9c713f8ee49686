//! Bounds of physical numbers, and the messages for numbers outside of them.
//!
//! A number without a bound can overflow in a product of the simulation, and the wrong result may
//! look plausible. So every time, size and count has a bound, far above that of any drive and far
//! below the limit of 64 bits of nanoseconds.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Longest time of one step of a device, in microseconds: a minute.
const LONGEST_US: f64 = 6e7;
/// Longest processor time for one entry, key or block, in nanoseconds: a millisecond.
const LONGEST_COST_NS: f64 = 1e6;
/// Speeds in decimal megabytes per second: from 100 KB/s to 1 TB/s.
const SPEEDS: RangeInclusive<f64> = 0.1..=1e6;
/// Slices of processor time for background work, in microseconds. With shorter ones the simulation
/// would mostly simulate slicing.
const SLICES_US: RangeInclusive<f64> = 1.0..=1e6;

/// Returns the problem of the value of `key`, if it is outside of `range`.
pub fn range<T: Number>(key: &str, value: T, range: RangeInclusive<T>) -> Option<String> {
    if range.contains(&value) {
        return None;
    }
    let (value, first, last) = (value.text(), range.start().text(), range.end().text());
    Some(format!("{key} is {value}, must be {first} to {last}"))
}

/// Like [`range`] for the time of one step of a device, in microseconds.
pub fn time_us(key: &str, us: f64) -> Option<String> {
    range(key, us, 0.0..=LONGEST_US).map(|words| format!("{words} (a minute)"))
}

/// Like [`range`] for processor time spent on one entry, key or block, in nanoseconds.
pub fn cost_ns(key: &str, ns: f64) -> Option<String> {
    range(key, ns, 0.0..=LONGEST_COST_NS).map(|words| format!("{words} (a millisecond)"))
}

/// Like [`range`] for a speed, in decimal megabytes per second.
pub fn speed_mb_per_s(key: &str, speed: f64) -> Option<String> {
    range(key, speed, SPEEDS)
}

/// Like [`range`] for the slices of background work, in microseconds.
pub fn slice_us(key: &str, us: f64) -> Option<String> {
    range(key, us, SLICES_US)
}

/// Numbers that have bounds.
pub trait Number: Copy + PartialOrd + Display {
    /// Formats the number for users; very long ones as powers of ten.
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for usize {}

impl Number for f64 {
    fn text(&self) -> String {
        let size = self.abs();
        if size != 0.0 && size.is_finite() && !(1e-6..1e12).contains(&size) {
            format!("{self:e}")
        } else {
            self.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_named_with_what_is_allowed() {
        assert_eq!(range("cores", 4_u32, 1..=1024), None);
        assert_eq!(range("cores", 0_u32, 1..=1024).unwrap(), "cores is 0, must be 1 to 1024");
        let hour = "read_us is 1e18, must be 0 to 60000000 (a minute)";
        assert_eq!(time_us("read_us", 1e18).unwrap(), hour);
        assert_eq!(time_us("read_us", 6e7), None);
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(time_us("t", bad).is_some() && cost_ns("t", bad).is_some(), "{bad}");
            assert!(speed_mb_per_s("t", bad).is_some() && slice_us("t", bad).is_some(), "{bad}");
        }
        assert_eq!(speed_mb_per_s("s", 1e-300).unwrap(), "s is 1e-300, must be 0.1 to 1000000");
    }
}
