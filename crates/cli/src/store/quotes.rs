//! What a reader of CSV does not tell, found by watching the bytes on their way to it: quotes that are not closed, behind which it
//! takes all up to the end of the file for one value, and how lines end.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Where in a record the next byte stands.
#[derive(Clone, Copy)]
enum At {
    FieldStart,
    Bare,
    Quoted,
    /// Behind a quote within quotes, which closes them unless another follows.
    Closed,
}

/// What was seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The line of the quote that was open when the file ended, from 1.
    pub unclosed: Cell<Option<u64>>,
    /// Whether the first line, quotes apart, ends with a carriage return and a line feed.
    pub has_crlf: Cell<Option<bool>>,
}

/// Watches what is read.
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
