//! Glob patterns as in Redis: `*`, `?`, `[abc]`, `[^a-c]`, and `\` to escape.

/// Whether a pattern matches all of a text.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to resume when the part after the last star does not match: the star then covers one
    // more byte.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
                continue;
            }
            Some(_) if seen < text.len() => one(&pattern[at..], text[seen]),
            None if seen == text.len() => return true,
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                seen += 1;
            }
            (None, Some((behind, from))) if from < text.len() => {
                star = Some((behind, from + 1));
                (at, seen) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the literal prefix of all texts that a pattern matches.
pub(crate) fn prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        match rest {
            [b'*' | b'?' | b'[', ..] | [] => return prefix,
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                prefix.push(*byte);
                rest = behind;
            }
        }
    }
}

/// Returns the length of a pattern's first element if it matches this byte; the element is not a
/// star.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', class @ ..] => {
            let (is_in, length) = class_of(class, byte);
            is_in.then_some(1 + length)
        }
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Whether a byte is in a class, and the length of the class. A class without `]` extends to the
/// end of the pattern.
fn class_of(class: &[u8], byte: u8) -> (bool, usize) {
    let (is_negated, mut at) = if class.first() == Some(&b'^') { (true, 1) } else { (false, 0) };
    let mut is_in = false;
    loop {
        match class[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                is_in |= literal == byte;
                at += 2;
            }
            [first, b'-', last, ..] if last != b']' => {
                let (low, high) = (first.min(last), first.max(last));
                is_in |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_in |= literal == byte;
                at += 1;
            }
        }
    }
    (is_in != is_negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        let yes = [
            ("*", ""),
            ("a*", "a"),
            ("a*b*c", "axxbyyc"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            ("\\*", "*"),
            ("[\\]]", "]"),
            ("**a", "bba"),
            ("*aab", "aaab"),
        ];
        let no = [
            ("", "a"),
            ("a", ""),
            ("h?llo", "hllo"),
            ("h[^a]llo", "hallo"),
            ("a*b", "ac"),
            ("[a", "b"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert_eq!(prefix(b"user:\\*1*"), b"user:*1");
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&b"*a".repeat(1_000), &[b'a'; 999]));
    }

    proptest! {
        #[test]
        fn what_matches_begins_with_the_prefix(pattern in "[ab*?\\[\\]^-]{0,8}", text in "[ab]{0,6}") {
            if matches(pattern.as_bytes(), text.as_bytes()) {
                prop_assert!(text.as_bytes().starts_with(&prefix(pattern.as_bytes())));
            }
        }

        #[test]
        fn a_text_matches_itself(text in prop::collection::vec(any::<u8>(), 0..12)) {
            let escaped: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(matches(&escaped, &text));
            prop_assert_eq!(prefix(&escaped), text);
        }
    }
}
