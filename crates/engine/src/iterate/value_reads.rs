//! Reads of values for an iterator, and the pages that the iterator read last.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use runtime::{IoClass, JoinHandle, PageImage};

use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::{Medium, PageNo};
use crate::read::cache::Access;

/// The state of a value's read.
pub(crate) enum Fetch {
    Ready(Value),
    /// To be read on demand.
    Demand(Pointer),
    /// Being read.
    UnderWay(UnderWay),
}

/// A read in flight.
pub(crate) struct UnderWay {
    /// The page in which the value begins.
    pub page: PageNo,
    /// The I/O class of the reads that have not begun yet.
    pub class: Rc<Cell<IoClass>>,
    pub read: JoinHandle<Result<Value, EngineError>>,
}

/// The pages of values that an iterator read last.
pub(crate) struct Pages {
    kept: VecDeque<(PageNo, PageImage)>,
    most: usize,
}

impl Pages {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), most }
    }

    /// Sets the maximum number of pages kept.
    pub(crate) fn keep_most(&mut self, most: usize) {
        self.most = most;
    }

    fn get(&self, page: PageNo) -> Option<PageImage> {
        self.kept.iter().find(|(kept, _)| *kept == page).map(|(_, image)| image.clone())
    }

    fn keep(&mut self, page: PageNo, image: PageImage) {
        if self.get(page).is_none() {
            self.kept.push_back((page, image));
        }
        if self.kept.len() > self.most {
            self.kept.pop_front();
        }
    }
}

/// Reads a value: from a page that the iterator still holds, from the cache, or from the medium.
/// Does not insert into the cache: a scan needs each value once. Values that may be read again are
/// inserted when they are returned.
pub(crate) async fn fetch<M: Medium>(
    inner: &Inner<M>,
    pages: &RefCell<Pages>,
    key: &[u8],
    pointer: Pointer,
    access: Access,
    class: &Cell<IoClass>,
) -> Result<Value, EngineError> {
    let (page, _) = inner.store.format.locate(pointer);
    let kept = pages.borrow().get(page);
    let image = if let Some(image) = kept {
        inner.stats.borrow_mut().iterators.page_hits += 1;
        image
    } else {
        if inner.caches.has_values() {
            inner.spend_look_for_value().await;
            if let Some(value) = inner.cached_value(key, pointer, access) {
                return Ok(value);
            }
        }
        let image = inner.store.read_shared(page, class.get()).await?;
        pages.borrow_mut().keep(page, image.clone());
        image
    };
    inner.store.value_in(&image, key, pointer, class.get(), &mut 0).await
}

/// A pair that the merge has passed.
pub(crate) struct Item {
    pub key: Box<[u8]>,
    pub value: Fetch,
    /// The location of a value that is inserted into the cache when it is returned.
    pub to_cache: Option<Pointer>,
}

impl Item {
    /// Returns the kind of access: `Point` for values that may be read again, `Scan` for others.
    pub(crate) fn access(&self) -> Access {
        if self.to_cache.is_some() { Access::Point } else { Access::Scan }
    }
}
