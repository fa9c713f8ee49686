//! The memory limit of an iterator for pages and values, and when to raise it.

use std::cell::Cell;

use crate::medium::Shape;
use crate::options::IteratorOptions;

/// The buffer of an iterator: its limit, not its current contents.
pub(super) struct Buffer {
    bytes: Cell<u64>,
    /// Bytes of values read since the buffer last grew or was due to grow.
    read: Cell<u64>,
}

impl Buffer {
    pub(super) fn new(options: &IteratorOptions) -> Self {
        Self { bytes: Cell::new(options.first_buffer()), read: Cell::new(0) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the buffer's size in pages.
    pub(super) fn pages(&self, shape: &Shape) -> u64 {
        self.bytes.get() / u64::from(shape.page_bytes)
    }

    /// Counts `bytes` bytes read for a value. Returns whether as many bytes were read as the buffer
    /// holds, so that it is worth enlarging.
    pub(super) fn note_read(&self, bytes: u64) -> bool {
        let read = self.read.get() + bytes;
        let is_enough = read >= self.bytes.get();
        self.read.set(if is_enough { 0 } else { read });
        is_enough
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_worth_more_when_as_much_was_read_as_it_holds() {
        let options = IteratorOptions {
            buffer_bytes: 64,
            first_buffer_bytes: 8,
            ..IteratorOptions::default()
        };
        let buffer = Buffer::new(&options);
        let worth: Vec<bool> = (0..4).map(|_| buffer.note_read(4)).collect();
        assert_eq!(worth, [false, true, false, true]);
        buffer.add(8);
        let worth: Vec<bool> = (0..4).map(|_| buffer.note_read(4)).collect();
        assert_eq!(worth, [false, false, false, true]);
    }
}
