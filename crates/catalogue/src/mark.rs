//! The byte order mark at the start of files of some editors and spreadsheets. It is not part of
//! the text.

use std::io::{self, Cursor, Read};

const MARK: &str = "\u{feff}";

/// Returns `text` without a leading byte order mark.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// A reader that skips a leading byte order mark. It reads nothing before the first call of `read`.
#[derive(Debug)]
pub struct Unmarked<R> {
    file: R,
    /// The unread part of the file's first bytes, once they have been read.
    start: Option<Cursor<Vec<u8>>>,
}

impl<R: Read> Unmarked<R> {
    /// Creates a reader of `file` that skips the mark.
    pub fn new(file: R) -> Self {
        Self { file, start: None }
    }

    fn begin(&mut self) -> io::Result<Cursor<Vec<u8>>> {
        let mut start = Vec::new();
        // A pipe may return one byte at a time.
        self.file.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
        if start == MARK.as_bytes() {
            start.clear();
        }
        Ok(Cursor::new(start))
    }
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut start = match self.start.take() {
            Some(start) => start,
            None => self.begin()?,
        };
        let length = start.read(into)?;
        self.start = Some(start);
        if length > 0 { Ok(length) } else { self.file.read(into) }
    }
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
            Unmarked::new(text.as_bytes()).read_to_string(&mut read).unwrap();
            assert_eq!(read, rest);
        }
    }

    #[test]
    fn nothing_is_read_before_it_is_asked_for() {
        struct Never;
        impl Read for Never {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("nobody asked")
            }
        }
        drop(Unmarked::new(Never));
    }
}
