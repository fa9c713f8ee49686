//! Values on their way from the medium to an iterator, and the pages it read last.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use pages::Value;
use pages::error::EngineError;
use pages::format::pointer::Pointer;
use pages::medium::{Medium, PageNo};
use runtime::{IoClass, JoinHandle, PageImage};

use crate::cache::Access;
use crate::lsm::Inner;

/// How far a value has come.
pub(crate) enum Fetch {
    Ready(Value),
    /// To be read when it is asked for.
    Demand(Pointer),
    /// Being read.
    UnderWay(UnderWay),
}

/// A value on its way.
pub(crate) struct UnderWay {
    /// Where it begins.
    pub page: PageNo,
    /// Of the reads that have not begun yet.
    pub class: Rc<Cell<IoClass>>,
    pub read: JoinHandle<Result<Value, EngineError>>,
}

/// Pages of values that an iterator read last.
pub(crate) struct Pages {
    kept: VecDeque<(PageNo, PageImage)>,
    most: usize,
}

impl Pages {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), most }
    }

    /// It may keep so many from now on.
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

/// Reads a value: from a page that the iterator still has, or from what a Get left in the cache, if it can. It
/// leaves nothing there itself: whoever reads on wants each value once, and what is wanted again is left when it is
/// returned.
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
