//! Decimal numbers as text, for INCRBYFLOAT and HINCRBYFLOAT.
//!
//! Sums are exact to 17 decimal places, which is what Redis prints. Redis adds 80-bit binary floats
//! and may therefore differ in the last digit or two of large numbers. Numbers beyond this range
//! are added as 64-bit floats.

use crate::fault::Fault;

/// Decimal places.
const PLACES: i32 = 17;
const ONE: i128 = 10_i128.pow(PLACES as u32);

/// A parsed number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Number {
    /// In units of the last decimal place.
    Exact(i128),
    Large(f64),
    Infinite,
}

/// Parses a number.
pub(super) fn parse(text: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        // Digits that overflow are out of range.
        return (!has_digits).then_some(Number::Infinite);
    }
    Some(exact(text).map_or(Number::Large(number), Number::Exact))
}

/// Returns the number in units of the last decimal place, rounded, or `None` if it is out of range.
fn exact(text: &str) -> Option<i128> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let is_negative = digits.starts_with('-');
    let digits = digits.trim_start_matches(['-', '+']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut number: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        number = number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let shift = PLACES.checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let number = if shift >= 0 {
        number.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        let unit = 10_i128.checked_pow(shift.unsigned_abs()).unwrap_or(i128::MAX);
        number / unit + i128::from(number % unit >= unit / 2)
    };
    Some(if is_negative { -number } else { number })
}

/// Adds to a decimal number in text; a missing value counts as 0.
pub(super) fn increased(
    value: Option<Vec<u8>>,
    by: Number,
    not_a_float: impl Fn() -> Fault,
) -> Result<Vec<u8>, Fault> {
    let before = value.map_or(Some(Number::Exact(0)), |value| parse(&value));
    let before = before.ok_or_else(not_a_float)?;
    let sum = match (before, by) {
        (Number::Exact(before), Number::Exact(by)) => before.checked_add(by).map(show),
        _ => None,
    };
    let text = sum.map_or_else(|| large(before, by), Ok)?;
    Ok(text.into_bytes())
}

fn large(before: Number, by: Number) -> Result<String, Fault> {
    let usual = |number| match number {
        Number::Exact(number) => number as f64 / ONE as f64,
        Number::Large(number) => number,
        Number::Infinite => f64::INFINITY,
    };
    let sum = usual(before) + usual(by);
    let wrong = || Fault::error("increment would produce NaN or Infinity");
    if sum.is_finite() { Ok(format!("{sum}")) } else { Err(wrong()) }
}

fn show(number: i128) -> String {
    let (sign, number) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    let (whole, fraction) = (number / ONE.unsigned_abs(), number % ONE.unsigned_abs());
    let fraction = format!("{fraction:017}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(before: &str, by: &str) -> Result<String, Fault> {
        let by = parse(by.as_bytes()).ok_or_else(Fault::not_a_float)?;
        let sum = increased(Some(before.into()), by, Fault::not_a_float)?;
        Ok(String::from_utf8(sum).expect("text"))
    }

    #[test]
    fn sums() {
        for (before, by, expected) in [
            ("10.50", "0.1", "10.6"),
            ("0.1", "0.2", "0.3"),
            ("5.0e3", "2.0e2", "5200"),
            ("-1.5", "1.5", "0"),
            ("3", "-5.25", "-2.25"),
            ("0", "1e-17", "0.00000000000000001"),
            ("0", "1e-18", "0"),
            ("0", "6e-18", "0.00000000000000001"),
            ("1e30", "1", "1000000000000000000000000000000"),
            ("0", "+.5", "0.5"),
        ] {
            assert_eq!(sum(before, by), Ok(expected.to_owned()), "{before} + {by}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in ["", "a", "1 ", " 1", "nan", "1e999", "1.2.3", "0x"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert!(sum("1", "inf").expect_err("infinite").message().contains("NaN or Infinity"));
        assert!(sum("x", "1").is_err());
    }
}
