//! Parsing of arguments.

use std::ops::Bound;

use crate::data::selection::Limit;
use crate::fault::Fault;

/// Whether an argument is this word; case-insensitive.
pub(super) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

pub(crate) fn integer(argument: &[u8]) -> Result<i64, Fault> {
    // As in Redis: no plus sign, no blanks, no leading zeros.
    let digits = argument.strip_prefix(b"-").unwrap_or(argument);
    let is_plain = digits.iter().all(u8::is_ascii_digit)
        && (digits.len() == 1 || digits.first() != Some(&b'0'))
        && argument != b"-0";
    let text = std::str::from_utf8(argument).ok().filter(|_| is_plain);
    text.and_then(|text| text.parse().ok()).ok_or_else(Fault::not_an_integer)
}

/// Parses a number that must not be negative.
pub(super) fn count(argument: &[u8]) -> Result<usize, Fault> {
    let number = integer(argument).ok().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Fault::error("value is out of range, must be positive"))
}

pub(super) fn float(argument: &[u8]) -> Result<f64, Fault> {
    let text = std::str::from_utf8(argument).map_err(|_| Fault::not_a_float())?;
    let number: f64 = text.parse().map_err(|_| Fault::not_a_float())?;
    if number.is_nan() { Err(Fault::not_a_float()) } else { Ok(number) }
}

/// Parses a score. Digits that overflow or underflow are an error here, but not in bounds of
/// scores.
pub(super) fn score(argument: &[u8]) -> Result<f64, Fault> {
    let number = float(argument)?;
    let mantissa = argument.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let is_beyond = (number.is_infinite() && mantissa.iter().any(u8::is_ascii_digit))
        || (number == 0.0 && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9')));
    if is_beyond { Err(Fault::not_a_float()) } else { Ok(number) }
}

/// Parses a bound of scores; the prefix `(` makes it exclusive.
pub(super) fn score_bound(argument: &[u8]) -> Result<Bound<f64>, Fault> {
    let wrong = |_| Fault::error("min or max is not a float");
    match argument.strip_prefix(b"(") {
        Some(score) => float(score).map(Bound::Excluded).map_err(wrong),
        None => float(argument).map(Bound::Included).map_err(wrong),
    }
}

/// Parses a bound of names: prefix `[` for inclusive, `(` for exclusive; `-` and `+` are the ends
/// of all names.
pub(super) fn name_bound(argument: &[u8], is_max: bool) -> Result<NameBound<'_>, Fault> {
    match argument {
        b"-" if is_max => Ok(NameBound::Nothing),
        b"+" if !is_max => Ok(NameBound::Nothing),
        b"-" | b"+" => Ok(NameBound::At(Bound::Unbounded)),
        [b'[', name @ ..] => Ok(NameBound::At(Bound::Included(name))),
        [b'(', name @ ..] => Ok(NameBound::At(Bound::Excluded(name))),
        _ => Err(Fault::error("min or max not valid string range item")),
    }
}

/// The result of [`name_bound`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NameBound<'a> {
    At(Bound<&'a [u8]>),
    /// The range is empty.
    Nothing,
}

/// Parses `LIMIT offset count`. A negative count means no limit; a negative offset skips
/// everything.
pub(super) fn limit(offset: &[u8], count: &[u8]) -> Result<Limit, Fault> {
    let (offset, count) = (integer(offset)?, integer(count)?);
    Ok(match usize::try_from(offset) {
        Ok(offset) => Limit { offset, count: usize::try_from(count).unwrap_or(usize::MAX) },
        Err(_) => Limit { offset: 0, count: 0 },
    })
}

/// Parses a time relative to `from`, in units of `unit` milliseconds. Returns milliseconds since
/// 1970.
pub(super) fn time(argument: &[u8], unit: i64, from: u64, command: &str) -> Result<i64, Fault> {
    let span = integer(argument)?;
    let wrong = || Fault::error(format!("invalid expire time in '{command}' command"));
    let span = span.checked_mul(unit).ok_or_else(wrong)?;
    let from = i64::try_from(from).map_err(|_| wrong())?;
    span.checked_add(from).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let good: [(&[u8], i64); 4] =
            [(b"0", 0), (b"-1", -1), (b"9223372036854775807", i64::MAX), (b"10", 10)];
        for (text, number) in good {
            assert_eq!(integer(text), Ok(number));
        }
        for text in
            [&b""[..], b"-", b"+1", b"01", b"-0", b" 1", b"1 ", b"9223372036854775808", b"a"]
        {
            assert!(integer(text).is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn bounds() {
        assert_eq!(score_bound(b"(1.5"), Ok(Bound::Excluded(1.5)));
        assert_eq!(score_bound(b"-inf"), Ok(Bound::Included(f64::NEG_INFINITY)));
        assert!(score_bound(b"nan").is_err() && score_bound(b"[1").is_err());
        assert_eq!(name_bound(b"[a", false), Ok(NameBound::At(Bound::Included(b"a"))));
        assert_eq!(name_bound(b"+", true), Ok(NameBound::At(Bound::Unbounded)));
        assert_eq!(name_bound(b"+", false), Ok(NameBound::Nothing));
        assert!(name_bound(b"a", false).is_err());
    }

    #[test]
    fn scores() {
        for (text, number) in [
            ("1e308", 1e308),
            ("-inf", f64::NEG_INFINITY),
            ("Infinity", f64::INFINITY),
            ("0e5", 0.0),
            ("-0.0", 0.0),
        ] {
            assert_eq!(score(text.as_bytes()), Ok(number), "{text}");
        }
        for text in ["1e400", "-1e400", "1e-400", "nan", "", "1e", "x"] {
            assert!(score(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(score_bound(b"1e400"), Ok(Bound::Included(f64::INFINITY)));
    }

    #[test]
    fn limits() {
        let mut first = limit(b"1", b"2").expect("good");
        assert_eq!([first.takes(), first.takes(), first.takes()], [false, true, true]);
        assert!(first.is_used_up());
        assert!(limit(b"-1", b"2").expect("good").is_used_up());
        assert!(!limit(b"0", b"-1").expect("good").is_used_up());
    }
}
