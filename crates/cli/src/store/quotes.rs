//! Watches the bytes on their way to a CSV reader for facts that the reader does not report: quotes
//! that are not closed, after which it reads the rest of the file as one value, and the kind of
//! line end.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The position of the next byte in a record.
#[derive(Clone, Copy)]
enum At {
    FieldStart,
    Bare,
    Quoted,
    /// After a quote within quotes, which closes them unless another quote follows.
    Closed,
}

/// The facts found.
#[derive(Default)]
pub(crate) struct Seen {
    /// The line, counted from 1, of the quote that was open at the end of the file.
    pub unclosed: Cell<Option<u64>>,
    /// Whether the first line end outside quotes is a carriage return and a line feed.
    pub has_crlf: Cell<Option<bool>>,
}

/// A reader that watches the bytes read.
pub(crate) struct Quotes<R> {
    file: R,
    at: At,
    line: u64,
    opened: u64,
    last: u8,
    seen: Rc<Seen>,
}

impl<R> Quotes<R> {
    pub(crate) fn new(file: R) -> (Self, Rc<Seen>) {
        let seen = Rc::<Seen>::default();
        let (at, line, opened, last) = (At::FieldStart, 1, 1, 0);
        (Self { file, at, line, opened, last, seen: Rc::clone(&seen) }, seen)
    }

    fn take(&mut self, byte: u8) {
        self.at = match (self.at, byte) {
            (At::FieldStart, b'"') => {
                self.opened = self.line;
                At::Quoted
            }
            (At::Quoted, b'"') => At::Closed,
            (At::Closed, b'"') | (At::Quoted, _) => At::Quoted,
            (_, b',' | b'\n' | b'\r') => At::FieldStart,
            _ => At::Bare,
        };
        if byte == b'\n' {
            self.line += 1;
            if self.seen.has_crlf.get().is_none() && !matches!(self.at, At::Quoted) {
                self.seen.has_crlf.set(Some(self.last == b'\r'));
            }
        }
        self.last = byte;
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(into)?;
        into[..length].iter().for_each(|byte| self.take(*byte));
        if length == 0 && matches!(self.at, At::Quoted) {
            self.seen.unclosed.set(Some(self.opened));
        }
        Ok(length)
    }
}
