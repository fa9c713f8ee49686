//! Escapes arbitrary bytes as a line of text, and back.
//!
//! Text is unchanged. A tab, a line feed, a carriage return and a backslash become `\t`, `\n`, `\r`
//! and `\\`; other control characters, a byte order mark and bytes that are not UTF-8 become `\x`
//! and two digits.

use std::str;

/// Appends `bytes` with escapes to `line`.
pub(crate) fn escape(bytes: &[u8], line: &mut Vec<u8>) {
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        line.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => line.extend_from_slice(b"\\t"),
                '\n' => line.extend_from_slice(b"\\n"),
                '\r' => line.extend_from_slice(b"\\r"),
                '\\' => line.extend_from_slice(b"\\\\"),
                c if c.is_ascii_control() => push_hex(c as u8, line),
                // Control characters beyond ASCII have two bytes in UTF-8. A byte order mark at the
                // start of a file would not be read as text.
                c if c.is_control() || c == '\u{feff}' => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_hex(byte, line));
                }
                c => line.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(*byte, line));
    }
}

fn push_hex(byte: u8, line: &mut Vec<u8>) {
    line.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

/// Decodes a field with escapes.
pub(crate) fn unescape(field: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, length) = match rest.get(at + 1) {
            Some(b't') => (b'\t', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'\\') => (b'\\', 2),
            Some(b'x') => (hex(rest.get(at + 2..at + 4)).ok_or_else(|| unknown(&rest[at..]))?, 4),
            _ => return Err(unknown(&rest[at..])),
        };
        bytes.push(byte);
        rest = &rest[at + length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn unknown(rest: &[u8]) -> String {
    let start = String::from_utf8_lossy(&rest[..rest.len().min(4)]).into_owned();
    format!(
        "`{start}` is no escape: there are \\t, \\n, \\r, \\\\ and \\x with two digits; with --verbatim a backslash is itself"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> Vec<u8> {
        let mut line = Vec::new();
        escape(bytes, &mut line);
        line
    }

    #[test]
    fn text_stands_for_itself_and_the_rest_is_escaped() {
        for (bytes, line) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"", b""),
            ("gr\u{fc}n".as_bytes(), "gr\u{fc}n".as_bytes()),
            (b"a\tb\nc\rd\\", b"a\\tb\\nc\\rd\\\\"),
            (b"\0\x7f\xff\xc3", b"\\x00\\x7f\\xff\\xc3"),
            ("\u{85}".as_bytes(), b"\\xc2\\x85"),
            ("\u{feff}".as_bytes(), b"\\xef\\xbb\\xbf"),
        ] {
            assert_eq!(escaped(bytes), line, "{bytes:?}");
            assert_eq!(unescape(line).as_deref(), Ok(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn every_sequence_of_bytes_comes_back() {
        let mut state = 1_u64;
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let line = escaped(&bytes);
            assert!(!line.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')));
            assert_eq!(unescape(&line), Ok(bytes));
        }
    }

    #[test]
    fn other_escapes_are_refused() {
        for line in ["C:\\dir", "end\\", "\\x1", "\\x+1", "\\xzz"] {
            let error = unescape(line.as_bytes()).expect_err(line);
            assert!(error.contains("is no escape"), "{error}");
        }
    }
}
