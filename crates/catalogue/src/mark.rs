//! The byte order mark that some editors and spreadsheets begin text with. It is no part of the text.

use std::io::{self, Chain, Cursor, Read};

const MARK: &str = "\u{feff}";

/// `text` without the mark that it may begin with.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Text that is read without the mark that it may begin with.
pub type Unmarked<R> = Chain<Cursor<Vec<u8>>, R>;

/// `file`, to be read from behind the mark that it may begin with.
///
/// # Errors
/// Those of the first reads.
pub fn unmarked<R: Read>(mut file: R) -> io::Result<Unmarked<R>> {
    let mut start = Vec::new();
    // A pipe may give a byte at a time.
    file.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
    if start == MARK.as_bytes() {
        start.clear();
    }
    Ok(Cursor::new(start).chain(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_left_out_at_the_beginning_only() {
        for (text, rest) in [
            ("", ""),
            ("a", "a"),
            ("\u{feff}", ""),
            ("\u{feff}a\u{feff}", "a\u{feff}"),
            ("\u{fefe}a", "\u{fefe}a"),
        ] {
            assert_eq!(without_mark(text), rest);
            let mut read = String::new();
            unmarked(text.as_bytes()).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, rest);
        }
    }
}
