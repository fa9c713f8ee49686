//! Gets that read outside of the runtime, in real time, on the caller's own thread.
//!
//! An ordinary Get is a future that waits for its read in the runtime. It runs there twice: to find
//! the page to read, and to decode the page that was read. Here the second part does not need the
//! runtime: the caller's thread does the read, the checks and the decoding, and appends the work
//! left for the runtime (counters, the value for the cache) to a list that the next call to
//! [`Engine::look`] processes. If that is not possible, because part of the index is on flash or a
//! page is damaged, an ordinary Get is done instead.

use std::mem;
use std::sync::Arc;

use runtime::{Mutex, PageImage};

use super::cache::Access;
use super::locate::Located;
use super::search::search;
use super::value_outside::{ReadValue, ValueRead};
use crate::effort::Effort;
use crate::engine::{Engine, Inner};
use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::Medium;
use crate::operations::check_key;

/// The number of Gets that are not read outside after one that met a large value, if pointers do
/// not contain lengths. It limits the extra page read for large values to one in this many Gets.
const ASKS_AFTER_LARGE: u32 = 64;

/// The result of a lookup in memory.
pub enum Look {
    /// The value of the key, if it has one.
    Known(Option<Value>),
    /// The key has a value; this reads it.
    Read(Box<ReadOutside>),
    /// An ordinary Get is required.
    Ask,
}

/// A read of a value that does not need the runtime.
pub struct ReadOutside {
    read: ValueRead,
    key: Box<[u8]>,
    pointer: Pointer,
    /// The generation of the extent (how often it was opened) at the time of the lookup.
    life: u64,
    /// Whether a cache exists for its page or value.
    is_kept: bool,
    done: Arc<Done>,
}

/// The record of a Get that was read outside.
enum OutsideGet {
    /// The Get found its value.
    Found,
    /// The Get found its value; the page it read goes to the cache.
    Kept { key: Box<[u8]>, pointer: Pointer, life: u64, value_bytes: u32, image: PageImage },
    /// The Get failed: the value has more than one page, which its pointer did not show.
    Large,
}

/// The Gets that are not recorded yet.
#[derive(Default)]
pub(crate) struct Done(Mutex<Vec<OutsideGet>>);

impl ReadOutside {
    /// Reads the value. Returns `None` if an ordinary Get is required, because the value has more
    /// than one page or the page is damaged.
    pub fn perform(self) -> Option<Value> {
        let Self { read, key, pointer, life, is_kept, done } = self;
        let (value, get) = match read.perform(&key, is_kept) {
            ReadValue::Whole(value, Some(image)) => {
                let value_bytes = value.len();
                (Some(value), OutsideGet::Kept { key, pointer, life, value_bytes, image })
            }
            ReadValue::Whole(value, None) => (Some(value), OutsideGet::Found),
            ReadValue::Large => (None, OutsideGet::Large),
            ReadValue::Wrong => return None,
        };
        done.0.lock().push(get);
        value
    }
}

impl<M: Medium> Engine<M> {
    /// Looks up `key` in memory, as a Get that reads nothing of the index. Counts as a Get once the
    /// result is known.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`] if the length of `key` is invalid.
    pub fn look(&self, key: &[u8]) -> Result<Look, EngineError> {
        check_key(key)?;
        let inner = &*self.inner;
        inner.note_done();
        Ok(inner.look(key))
    }
}

impl<M: Medium> Inner<M> {
    fn look(&self, key: &[u8]) -> Look {
        let entry = self.front.memtables.borrow().get(key);
        let located = match entry {
            Some((_, entry)) => Located::Known(entry),
            None => match self.locate_in_memory(key) {
                Some(located) => located,
                None => return Look::Ask,
            },
        };
        let known = match located {
            Located::Absent => None,
            Located::Known(entry) => entry,
            Located::At(pointer) if self.may_be_large(pointer) => return Look::Ask,
            Located::At(pointer) => {
                let cached = self.cached_value_if_any(key, pointer, Access::Point);
                if cached.is_none() {
                    return self.read_outside(key, pointer);
                }
                cached
            }
        };
        self.count_get(key, known.as_ref(), false, 0, 0);
        Look::Known(known)
    }

    /// Returns the location of the newest entry of `key`, if the whole index is in memory.
    fn locate_in_memory(&self, key: &[u8]) -> Option<Located> {
        let version = self.version.borrow();
        if version.most_reads() > 0 {
            return None;
        }
        let mut effort = Effort::default();
        let step = search(&version, key, 0, None, self.store.format, &mut effort);
        self.stats.borrow_mut().filter_probes += u64::from(effort.filter_probes);
        Located::of(step).ok()
    }

    /// Whether a value has more than one page, or may have because a recently read value had. The
    /// first page of such a value would be read twice.
    fn may_be_large(&self, pointer: Pointer) -> bool {
        if let Some(pages) = self.store.format.most_pages(pointer) {
            return pages > 1;
        }
        let left = self.asks_left.get();
        self.asks_left.set(left.saturating_sub(1));
        left > 0
    }

    fn read_outside(&self, key: &[u8], pointer: Pointer) -> Look {
        let Some(read) = self.store.value_read(pointer) else { return Look::Ask };
        Look::Read(Box::new(ReadOutside {
            read,
            key: key.into(),
            pointer,
            life: self.life_at(pointer),
            is_kept: self.caches.has_values(),
            done: Arc::clone(&self.done),
        }))
    }

    /// Counts the Gets that were read outside, and inserts their pages or values into the cache.
    pub(crate) fn note_done(&self) {
        let done = mem::take(&mut *self.done.0.lock());
        for get in done {
            match get {
                OutsideGet::Found => {}
                OutsideGet::Kept { key, pointer, life, value_bytes, image } => {
                    self.keep_read(&key, pointer, life, value_bytes, &image);
                }
                OutsideGet::Large => {
                    self.asks_left.set(ASKS_AFTER_LARGE);
                    continue;
                }
            }
            let stats = &mut *self.stats.borrow_mut();
            stats.gets_found += 1;
            stats.reads_per_get.add(1);
        }
    }
}
