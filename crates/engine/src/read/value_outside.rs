//! Reads of values outside of the runtime.

use runtime::{FileRead, PageImage};

use crate::format::data_page::Found;
use crate::format::page::Identity;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::format::{data_page, page};
use crate::medium::Medium;
use crate::space::PageStore;
use crate::space::epochs::Outside;

/// A read of a value, with the data needed to check it, that runs on any thread. While it exists,
/// its page is not released.
pub struct ValueRead {
    read: FileRead,
    identity: Identity,
    piece: u32,
    payload_bytes: u32,
    _reader: Outside,
}

/// The result of a [`ValueRead`].
pub enum ReadValue {
    /// The value, and its page if that was requested.
    Whole(Value, Option<PageImage>),
    /// The value has more than one page.
    Large,
    /// The read or a check failed. A read through the store returns the error, or the page from
    /// redundancy.
    Wrong,
}

impl ValueRead {
    /// Reads the value of `key`, and returns its page too if `with_page`.
    pub fn perform(self, key: &[u8], with_page: bool) -> ReadValue {
        let Some(read) = self.read.perform().ok() else { return ReadValue::Wrong };
        let Ok(length) = page::check(&read, self.identity) else { return ReadValue::Wrong };
        let bytes = &read.bytes()[..length];
        let fits =
            |value: &Value| data_page::fits_in_a_page(self.payload_bytes, key.len(), value.len());
        match data_page::find(bytes, self.piece, key) {
            Some(Found::Whole(value)) if fits(&value) => {
                ReadValue::Whole(value, with_page.then(|| PageImage::new(bytes)))
            }
            Some(Found::Large(..)) => ReadValue::Large,
            Some(Found::Whole(_)) | None => ReadValue::Wrong,
        }
    }
}

impl<M: Medium> PageStore<M> {
    /// Returns a read of a value in one page; `None` if the medium cannot be read outside of the
    /// runtime.
    pub fn value_read(&self, pointer: Pointer) -> Option<ValueRead> {
        let (page, piece) = self.format.locate(pointer);
        let read = self.medium.file_read(page)?;
        let (identity, payload_bytes) = (self.identity(page), self.shape.payload_bytes);
        Some(ValueRead {
            read,
            identity,
            piece,
            payload_bytes,
            _reader: self.epochs.enter_outside(),
        })
    }
}
