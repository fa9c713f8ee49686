//! Sizes, times and numbers in the notation of fio.

/// The meaning of `k` and `ki`, selected by fio's `kb_base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum KbBase {
    /// `kb_base=1024`: k is 1024 and ki is 1000. fio keeps this for compatibility with old files.
    #[default]
    Compatible,
    /// `kb_base=1000`: k is 1000 and ki is 1024.
    Standard,
}

/// Parses a number of bytes, or another number that fio writes with the same units.
pub(super) fn number(text: &str, base: KbBase) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        let number = u64::from_str_radix(digits, 16);
        return number.map_err(|_| format!("`{text}` is no number"));
    }
    let plain = lower.strip_suffix('b').unwrap_or(&lower);
    let (plain, has_i) = match plain.strip_suffix('i') {
        Some(plain) => (plain, true),
        None => (plain, false),
    };
    let power = plain.chars().last().and_then(|unit| "kmgtp".find(unit));
    let digits = if power.is_some() { &plain[..plain.len() - 1] } else { plain };
    let thousand: u64 = if has_i == (base == KbBase::Compatible) { 1_000 } else { 1_024 };
    let unit = power.map_or(1, |power| thousand.pow(power as u32 + 1));
    let whole = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let wrong = || format!("`{text}` is no number: write 4096, or one with k, m, g, t or p");
    whole.filter(|_| power.is_some() || !has_i).ok_or_else(wrong)
}

/// Parses a time and returns it in microseconds; `plain_us` is the unit of a number without one.
pub(super) fn time_us(text: &str, plain_us: f64) -> Result<f64, String> {
    let units = [
        ("usec", 1.0),
        ("us", 1.0),
        ("msec", 1e3),
        ("ms", 1e3),
        ("sec", 1e6),
        ("s", 1e6),
        ("m", 6e7),
        ("h", 3.6e9),
        ("d", 8.64e10),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let unit = units.iter().find_map(|(name, us)| Some((lower.strip_suffix(name)?, *us)));
    let (digits, us) = unit.unwrap_or((&lower, plain_us));
    let number = digits.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    number.map(|number| number * us).ok_or_else(|| {
        format!("`{text}` is no time: write a number, or one with us, ms, s, m, h or d")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_fio() {
        use KbBase::{Compatible, Standard};
        for (text, base, bytes) in [
            ("4096", Compatible, 4_096),
            ("4k", Compatible, 4_096),
            ("4K", Compatible, 4_096),
            ("4kb", Compatible, 4_096),
            ("4KiB", Compatible, 4_000),
            ("4KiB", Standard, 4_096),
            ("4k", Standard, 4_000),
            ("2g", Compatible, 2 << 30),
            ("0x1000", Compatible, 4_096),
            ("512b", Compatible, 512),
        ] {
            assert_eq!(number(text, base), Ok(bytes), "{text}");
        }
        for text in ["", "k", "4i", "4x", "-1", "1.5k", "99999p"] {
            assert!(number(text, Compatible).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_the_unit_of_their_option_unless_they_say_theirs() {
        for (text, us) in
            [("2", 2e6), ("2us", 2.0), ("10ms", 1e4), ("1.5s", 1.5e6), ("1m", 6e7), ("1d", 8.64e10)]
        {
            assert_eq!(time_us(text, 1e6), Ok(us), "{text}");
        }
        for text in ["", "soon", "-1", "5-10", "infs"] {
            assert!(time_us(text, 1e6).is_err(), "{text}");
        }
    }
}
