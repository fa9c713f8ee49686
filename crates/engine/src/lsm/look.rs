//! Gets that read outside of the runtime: in real time, where whoever asks has a thread.
//!
//! An ordinary Get is a future that waits for its read within the runtime, and takes part in it twice: until it knows what to
//! read, and to look at what was read. Here the second part needs nothing of the runtime: the read, the checks and the value are whoever
//! asks', and what is to be noted (counts, the value for the cache) is left in a list for who looks next. Where
//! that does not go, the index being in flash or something being wrong with a page, an ordinary Get does it.

use std::mem;
use std::sync::Arc;

use pages::Value;
use pages::effort::Effort;
use pages::error::EngineError;
use pages::format::pointer::Pointer;
use pages::medium::Medium;
use pages::operations::check_key;
use pages::store::value_read::{ReadValue, ValueRead};
use runtime::{Mutex, PageImage};

use crate::cache::Access;
use crate::lsm::reads::Located;
use crate::lsm::search::search;
use crate::lsm::{Engine, Inner};

/// Gets in a row that are not tried outside behind one that met a large value, where pointers do not tell: so of large ones at most one in so many takes a read more.
const ASKS_AFTER_LARGE: u32 = 64;

/// How far a look at what is in memory comes.
pub enum Look {
    /// The value of the key, if it has one.
    Known(Option<Value>),
    /// It has one, and this reads it.
    Read(Box<ReadOutside>),
    /// A Get is to find out.
    Ask,
}

/// A read of a value that needs no runtime.
pub struct ReadOutside {
    read: ValueRead,
    key: Box<[u8]>,
    pointer: Pointer,
    /// How often its extent had been opened when the pointer led there.
    life: u64,
    /// Whether there is a cache for its page or value.
    is_kept: bool,
    done: Arc<Done>,
}

/// What is to be noted of a Get that was read outside.
enum OutsideGet {
    /// It was one.
    Found,
    /// The same, and the page that it read, for the cache.
    Kept { key: Box<[u8]>, pointer: Pointer, life: u64, value_bytes: u32, image: PageImage },
    /// It was none: the value has more pages than one, which its pointer did not tell.
    Large,
}

/// Gets that are to be noted.
#[derive(Default)]
pub(crate) struct Done(Mutex<Vec<OutsideGet>>);

impl ReadOutside {
    /// Reads the value. `None` if a Get is to, because there is more to read than one page, or something is wrong with that.
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
    /// Looks for `key` as a Get does that reads nothing of the index. Counts as a Get once it comes to a value, or to none.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`].
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

    /// Where the newest entry of `key` is, if the whole index is in memory.
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

    /// Whether a value has more pages than one, or may have because one had of those that were read lately. Of such a one the first page
    /// would be read twice.
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

    /// Counts the Gets that were read outside, and leaves what they read in the cache.
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
