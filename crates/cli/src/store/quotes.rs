//! Quotes of CSV that are not closed. A reader of CSV takes all behind such a quote for one value, up to the end of the file;
//! here its bytes are watched on their way to it, and where the file ends within quotes the line where they opened is known.

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

/// The line of the quote that was open when the file ended, from 1.
pub(crate) type Unclosed = Rc<Cell<Option<u64>>>;

/// Watches what is read.
pub(crate) struct Quotes<R> {
    file: R,
    at: At,
    line: u64,
    opened: u64,
    unclosed: Unclosed,
}

impl<R> Quotes<R> {
    pub(crate) fn new(file: R) -> (Self, Unclosed) {
        let unclosed = Unclosed::default();
        let (at, line, opened) = (At::FieldStart, 1, 1);
        (Self { file, at, line, opened, unclosed: Rc::clone(&unclosed) }, unclosed)
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
        self.line += u64::from(byte == b'\n');
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(into)?;
        into[..length].iter().for_each(|byte| self.take(*byte));
        if length == 0 && matches!(self.at, At::Quoted) {
            self.unclosed.set(Some(self.opened));
        }
        Ok(length)
    }
}
