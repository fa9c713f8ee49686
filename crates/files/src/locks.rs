//! Locks on files, for code that outlives the runtime in which the files were opened.

use std::fs::File;
use std::sync::{Arc, Weak};

/// The locks on a device's files, which exclude other processes. A lock is released with its file,
/// when the last user of the file is dropped.
#[derive(Clone, Debug, Default)]
pub struct Locks(Vec<Weak<File>>);

impl Locks {
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Arc<File>>) -> Self {
        Self(files.map(Arc::downgrade).collect())
    }

    /// Releases the remaining locks. For the files of a runtime that ended in a panic, where leaked
    /// objects still hold the files; no I/O is in progress any more. Drives stay in use, because
    /// the operating system excludes others from them by a second mechanism.
    pub fn give_up(&self) {
        for file in self.0.iter().filter_map(Weak::upgrade) {
            // If the unlock fails, the next open of the file reports it.
            let _ = file.unlock();
        }
    }
}
