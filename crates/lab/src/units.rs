//! Sizes as people write them.

const UNITS: [(&str, u64); 12] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("b", 1),
];

/// Reads a size such as `4TiB`, `64 MiB`, `1.92TB` or `1024`, in bytes.
///
/// # Errors
/// Says what is allowed.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| lower.strip_suffix(name).map(|number| (number, *unit)))
        .unwrap_or((&lower, 1));
    let bytes = number.trim().parse::<f64>().ok().map(|number| number * unit as f64);
    match bytes {
        Some(bytes) if bytes >= 0.0 && bytes < u64::MAX as f64 => Ok(bytes.round() as u64),
        _ => Err(format!(
            "`{text}` is no size: write bytes, or a number with KiB, MiB, GiB, TiB \
                          (powers of 1024) or KB, MB, GB, TB (powers of 1000)"
        )),
    }
}

/// A size for people, in binary units with three significant digits.
pub fn bytes_text(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", three_digits(scaled(1 << 10))),
        1_048_576..1_073_741_824 => format!("{} MiB", three_digits(scaled(1 << 20))),
        1_073_741_824..1_099_511_627_776 => format!("{} GiB", three_digits(scaled(1 << 30))),
        _ => format!("{} TiB", three_digits(scaled(1 << 40))),
    }
}

/// A count for people: digits in groups of three.
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

/// A number with three significant digits, or all digits before the point.
pub(crate) fn three_digits(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("4TiB"), Ok(4 << 40));
        assert_eq!(parse_bytes(" 1.92 TB "), Ok(1_920_000_000_000));
        assert_eq!(parse_bytes("1k"), Ok(1024));
        assert_eq!(parse_bytes("77"), Ok(77));
        assert!(parse_bytes("4 apples").is_err_and(|text| text.contains("TiB")));
        assert!(parse_bytes("-1").is_err());
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(bytes_text(57_671_680), "55.0 MiB");
        assert_eq!(bytes_text(12), "12 B");
        assert_eq!(count_text(44_000_000), "44 000 000");
        assert_eq!(count_text(7), "7");
    }
}
