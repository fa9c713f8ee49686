//! A value that is read outside of the runtime.

use runtime::{FileRead, PageImage};

use crate::format::data_page::{self, Found};
use crate::format::page::{self, Identity};
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::Medium;
use crate::store::PageStore;
use crate::store::epochs::Outside;

/// All that it takes to read a value and to check it, on any thread. As long as it is there its page stays what it is.
pub struct ValueRead {
    read: FileRead,
    identity: Identity,
    piece: u32,
    payload_bytes: u32,
    _reader: Outside,
}

/// What came of a [`ValueRead`].
pub enum ReadValue {
    /// The value, and the page that it is in if that was asked for.
    Whole(Value, Option<PageImage>),
    /// It has more pages than one.
    Large,
    /// Something is not as it should be: whoever asks the store is told what, or given what redundancy has.
    Wrong,
}

impl ValueRead {
    /// Reads the value of `key`, and the page with it if `with_page` says so.
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
    /// The read of a value that is in one page, if the medium leaves it to others.
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
