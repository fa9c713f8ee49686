//! Inline commands, as typed by a person: words separated by blanks, with Redis's quoting rules.

/// Splits a line into words. Returns `None` if a quote is not closed or is followed directly by
/// another character.
pub(super) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        match rest.first() {
            None => return Some(words),
            Some(quote @ (b'"' | b'\'')) => {
                let (word, behind) = quoted(&rest[1..], *quote)?;
                words.push(word);
                if behind.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    return None;
                }
                rest = behind;
            }
            Some(_) => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                words.push(word.to_vec());
                rest = behind;
            }
        }
    }
}

/// Returns the unquoted word and the rest of the text.
fn quoted(text: &[u8], quote: u8) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut rest) = (Vec::new(), text);
    loop {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        if byte == quote {
            return Some((word, rest));
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        if quote == b'\'' {
            // In single quotes, only the quote itself can be escaped.
            let escapes = rest.first() == Some(&quote);
            word.push(if escapes { quote } else { byte });
            rest = &rest[usize::from(escapes)..];
            continue;
        }
        if let [b'x', high, low, behind @ ..] = rest
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            word.push(high << 4 | low);
            rest = behind;
            continue;
        }
        let (&escaped, behind) = rest.split_first()?;
        rest = behind;
        word.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            other => other,
        });
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        let cases: [(&str, Option<&[&[u8]]>); 8] = [
            ("", Some(&[])),
            ("  SET  a b ", Some(&[b"SET", b"a", b"b"])),
            ("SET 'a b' \"c\\n\\x41\\\"\"", Some(&[b"SET", b"a b", b"c\nA\""])),
            ("'it\\'s' '\\n'", Some(&[b"it's", b"\\n"])),
            ("\"\" ''", Some(&[b"", b""])),
            ("\"a", None),
            ("'a'b", None),
            ("\"a\\", None),
        ];
        for (line, expected) in cases {
            let words = split(line.as_bytes());
            let words = words.as_ref().map(|words| words.iter().map(Vec::as_slice).collect());
            assert_eq!(words, expected.map(<[&[u8]]>::to_vec), "{line}");
        }
    }
}
