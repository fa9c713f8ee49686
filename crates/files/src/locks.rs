//! Locks on files, for whoever outlives the runtime in which they were opened.

use std::fs::File;
use std::sync::{Arc, Weak};

/// The locks on a device's files, by which others are kept from them. They end with the files by themselves, when the
/// last of what uses those has gone.
#[derive(Clone, Debug, Default)]
pub struct Locks(Vec<Weak<File>>);

impl Locks {
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Arc<File>>) -> Self {
        Self(files.map(Arc::downgrade).collect())
    }

    /// Gives up what locks there are still. For files of a runtime that has ended after a panic, where something that is left as it was
    /// holds on to them: nothing is read or written any more. Drives, which the system keeps from others besides, stay in use.
    pub fn give_up(&self) {
        for file in self.0.iter().filter_map(Weak::upgrade) {
            // One that cannot be given up is told whoever opens the file next.
            let _ = file.unlock();
        }
    }
}
