//! Numbers in the fields of a line.

use super::Wrong;

/// Parses a whole number.
pub(super) fn whole(text: &str, what: &str) -> Result<u64, Wrong> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_plain { text.parse().ok() } else { None };
    number.ok_or_else(|| Wrong::new(text, format!("{what}, a whole number")))
}

/// Parses a whole number of 32 bits.
pub(super) fn small(text: &str, what: &str) -> Result<u32, Wrong> {
    let number = whole(text, what)?;
    u32::try_from(number).map_err(|_| Wrong::new(text, format!("{what} below 4294967296")))
}

/// Splits a line into exactly `N` comma-separated fields.
pub(super) fn by_commas<'a, const N: usize>(
    line: &'a str,
    names: &str,
) -> Result<[&'a str; N], Wrong> {
    let mut fields = [""; N];
    let mut parts = line.split(',').map(str::trim);
    for field in &mut fields {
        *field = parts.next().ok_or_else(|| Wrong::new(line, names))?;
    }
    if parts.next().is_some() { Err(Wrong::new(line, names)) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        assert_eq!(whole("18446744073709551615", "x"), Ok(u64::MAX));
        for text in ["", "+1", "-1", "1.0", "1e3", "0x1", " 1", "18446744073709551616", "١"] {
            assert!(
                whole(text, "a size")
                    .is_err_and(|wrong| wrong.expected == "a size, a whole number"),
                "{text}"
            );
        }
        assert!(small("4294967296", "a size").is_err());
        assert_eq!(by_commas::<3>("a, b,c", "abc"), Ok(["a", "b", "c"]));
        assert!(by_commas::<3>("a,b", "abc").is_err() && by_commas::<3>("a,b,c,", "abc").is_err());
    }
}
