//! Parses sizes, counts, shares and durations, and formats numbers for people.

use std::ops::RangeInclusive;

const UNITS: [(&str, u64); 18] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("eib", 1 << 60),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("eb", 1_000_000_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("b", 1),
];

/// Parses a size such as `4TiB`, `64 MiB`, `1.92TB` or `1024`. Returns bytes.
///
/// # Errors
/// Returns the allowed forms.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| lower.strip_suffix(name).map(|number| (number, *unit)))
        .unwrap_or((&lower, 1));
    scaled(number, unit, |number| unit > 1 || number.fract() == 0.0).ok_or_else(|| {
        format!(
            "`{text}` is no size: write bytes, or a number with KiB, MiB, GiB, TiB, PiB (powers of \
             1024) or KB, MB, GB, TB, PB (powers of 1000)"
        )
    })
}

/// Parses a size within `range`. Returns bytes.
///
/// # Errors
/// Returns the allowed range or forms.
pub fn parse_bytes_in(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if range.contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (bytes_text(*range.start()), bytes_text(*range.end()));
    Err(format!("allowed is {least} to {most}"))
}

/// Parses a count such as `4000000`, `4M`, `1e6` or `4_000_000` within `range`; k, M and G are
/// powers of 1000.
///
/// # Errors
/// Returns the allowed range.
pub fn parse_count_in(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let plain = text.trim().replace('_', "");
    let number = plain.strip_suffix(['k', 'K']).map(|number| (number, 1_000));
    let number = number.or(plain.strip_suffix('M').map(|number| (number, 1_000_000)));
    let number = number.or(plain.strip_suffix('G').map(|number| (number, 1_000_000_000)));
    let (digits, unit) = number.unwrap_or((&plain, 1));
    let is_whole = |number: f64| (number * unit as f64).fract() == 0.0;
    let count = match digits.parse::<u64>() {
        Ok(count) => count.checked_mul(unit),
        Err(_) => scaled(digits, unit, is_whole),
    };
    count.filter(|count| range.contains(count)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        // Examples within the range.
        let forms = [("4M", 4_000_000), ("1e6", 1_000_000), ("4k", 4_000), ("1e3", 1_000)];
        let written: Vec<&str> = forms
            .iter()
            .filter(|(_, count)| range.contains(count))
            .take(2)
            .map(|(form, _)| *form)
            .collect();
        let forms = match written[..] {
            [one, other] => format!("; {one} and {other} are such numbers, too"),
            [one] => format!("; {one} is such a number, too"),
            _ => String::new(),
        };
        format!("allowed is a whole number from {least} to {most}{forms}")
    })
}

/// Parses a duration such as `10ms`, `0.5 s`, `250us` or `1m`. Returns nanoseconds within `range`.
///
/// # Errors
/// Returns the allowed range.
pub fn parse_span_in(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12), ("d", 8.64e13)];
    let plain = text.trim();
    let number = units
        .iter()
        .find_map(|(name, unit)| plain.strip_suffix(name).map(|number| (number.trim(), *unit)));
    let nanos = number.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    let nanos = nanos.filter(|nanos| nanos.is_finite()).map(|nanos| nanos.round() as u64);
    nanos.filter(|nanos| range.contains(nanos)).ok_or_else(|| {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let (least, most) = (seconds(*range.start()), seconds(*range.end()));
        format!("allowed is a time from {least} s to {most} s, such as 10ms, 250us or 0.5s")
    })
}

/// Parses a share such as `0.7` or `70%`, which is more than 0 and less than 1.
///
/// # Errors
/// Returns the allowed range.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let share = share.ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| {
        "allowed is a share of more than 0 and less than 1, such as 0.7 or 70%".to_owned()
    })
}

/// Returns `number` times `unit`; `None` if `number` is not a valid size.
fn scaled(number: &str, unit: u64, is_right: impl Fn(f64) -> bool) -> Option<u64> {
    let number = number.trim().parse::<f64>().ok().filter(|number| is_right(*number))?;
    let scaled = number * unit as f64;
    (scaled >= 0.0 && scaled < u64::MAX as f64).then(|| scaled.round() as u64)
}

/// Returns a size as text, in binary units with three significant digits.
pub fn bytes_text(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", three_digits(scaled(1 << 10))),
        1_048_576..1_073_741_824 => format!("{} MiB", three_digits(scaled(1 << 20))),
        1_073_741_824..1_099_511_627_776 => format!("{} GiB", three_digits(scaled(1 << 30))),
        1_099_511_627_776..1_125_899_906_842_624 => {
            format!("{} TiB", three_digits(scaled(1 << 40)))
        }
        _ => format!("{} PiB", three_digits(scaled(1 << 50))),
    }
}

/// Returns a count as text, with its digits in groups of three.
pub fn count_text(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Returns `text` with its control characters escaped, except line ends. Text from a file or a
/// command line must not move the cursor of a terminal, and XML does not allow control characters.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}

/// Returns a number with three significant digits, or with all digits before the point.
pub fn three_digits(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Returns a rate as text: a whole number, or three significant digits if the rate is low.
pub fn rate_text(rate: f64) -> String {
    match rate {
        rate if rate < 0.1 => span_text(rate),
        rate if rate < 99.5 => three_digits(rate),
        rate => count_text(rate.round() as u64),
    }
}

/// Returns a number with three significant digits, however small it is.
pub fn span_text(seconds: f64) -> String {
    if seconds <= 0.0 || seconds >= 1.0 {
        return three_digits(seconds);
    }
    let decimals = (2.0 - seconds.log10().floor()).min(12.0) as usize;
    format!("{seconds:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4TiB", 4 << 40),
            (" 1.92 TB ", 1_920_000_000_000),
            ("1k", 1024),
            ("77", 77),
            ("1PiB", 1 << 50),
            ("2pb", 2_000_000_000_000_000),
            ("1e3", 1_000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["4 apples", "-1", "1.5", "inf", "nan", "", "GiB", "16EiB"] {
            assert!(parse_bytes(text).is_err_and(|words| words.contains("PiB")), "{text}");
        }
    }

    #[test]
    fn what_lies_outside_is_told_what_is_allowed() {
        let key = |text| parse_bytes_in(text, 1..=255);
        assert_eq!(key("32"), Ok(32));
        assert_eq!(key("5GiB"), Err("allowed is 1 B to 255 B".to_owned()));
        let pairs = |text| parse_count_in(text, 1..=8_000_000);
        for (text, count) in
            [("7", 7), ("4M", 4_000_000), ("1e6", 1_000_000), ("1.5k", 1_500), ("4_000", 4_000)]
        {
            assert_eq!(pairs(text), Ok(count), "{text}");
        }
        for text in
            ["0", "-5", "8M1", "9M", "1.5", "many", "", "1e300", "NaN", "18446744073709551616"]
        {
            let words = pairs(text).expect_err(text);
            assert!(words.starts_with("allowed is a whole number from 1 to 8000000"), "{words}");
        }
        for (most, end) in [
            (8_000_000, "; 4M and 1e6 are such numbers, too"),
            (65_536, "; 4k and 1e3 are such numbers, too"),
            (1_024, "; 1e3 is such a number, too"),
            (12, "from 1 to 12"),
        ] {
            let words = parse_count_in("1e9", 1..=most).expect_err("it is out of range");
            assert!(words.ends_with(end), "{words}");
        }
        assert_eq!(parse_count_in("18446744073709551615", 0..=u64::MAX), Ok(u64::MAX));
        assert_eq!(parse_share("70%"), Ok(0.7));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        for text in ["70", "0", "-1", "100%", "NaN", "all"] {
            assert!(parse_share(text).is_err_and(|words| words.contains("70%")), "{text}");
        }
    }

    #[test]
    fn spans_have_a_unit() {
        let span = |text| parse_span_in(text, 1_000..=60_000_000_000);
        for (text, nanos) in
            [("10ms", 10_000_000), (" 0.5 s", 500_000_000), ("1us", 1_000), ("1m", 60_000_000_000)]
        {
            assert_eq!(span(text), Ok(nanos), "{text}");
        }
        for text in ["10", "0.5us", "-1s", "NaNs", "61s", "infs", "ms", "1h"] {
            assert!(span(text).is_err_and(|words| words.contains("10ms")), "{text}");
        }
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(bytes_text(57_671_680), "55.0 MiB");
        assert_eq!(bytes_text(12), "12 B");
        assert_eq!(bytes_text(1 << 50), "1.00 PiB");
        assert_eq!(count_text(44_000_000), "44 000 000");
        assert_eq!(count_text(7), "7");
    }

    #[test]
    fn what_is_small_keeps_its_digits() {
        let spans = [(4.804, "4.80"), (0.00123, "0.00123"), (0.5, "0.500"), (0.0, "0.00")];
        assert!(spans.iter().all(|(seconds, text)| span_text(*seconds) == *text));
        for (rate, text) in [
            (0.000_001, "0.00000100"),
            (0.0, "0.00"),
            (0.5, "0.50"),
            (208_412.4, "208 412"),
            (99.4, "99.4"),
            (100.0, "100"),
        ] {
            assert_eq!(rate_text(rate), text);
        }
    }

    #[test]
    fn control_characters_become_escapes() {
        assert_eq!(printable("a\u{1b}[2Jb\u{7f}\r\n\u{e9}"), "a\\u{1b}[2Jb\\u{7f}\\r\n\u{e9}");
    }
}
