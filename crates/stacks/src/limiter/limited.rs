//! The medium that limits the background I/O of another medium.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, OneshotReceiver, PageImage, oneshot};

use super::class::{Lane, Use, use_of};
use super::gate::Limiter;
use super::options::LimiterOptions;
use super::stats::LimiterStats;

/// A medium whose background I/O is limited. Clones share one medium and one limiter.
///
/// Reads of a single page never wait: they are the inner medium's futures, and the bytes of
/// internal ones are deducted from later refills. Compactions of tables read runs.
pub struct Limited<M> {
    handle: Handle,
    medium: Rc<M>,
    limiter: Option<Rc<Limiter>>,
    /// Extents of the log. Their appends carry the journal's class, but clients wait for them.
    of_log: Rc<RefCell<BTreeSet<ExtentId>>>,
    shape: Shape,
}

impl<M> Clone for Limited<M> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            medium: Rc::clone(&self.medium),
            limiter: self.limiter.clone(),
            of_log: Rc::clone(&self.of_log),
            shape: self.shape,
        }
    }
}

/// An I/O that has been submitted to the medium, or waits in the limiter.
enum Way<F, T> {
    Now(F),
    Later(OneshotReceiver<T>),
}

impl<T, F: Future<Output = T>> Way<F, T> {
    async fn end(self) -> T {
        match self {
            Self::Now(future) => future.await,
            Self::Later(outcome) => outcome.await.expect("an I/O comes to its end"),
        }
    }
}

impl<M: Medium> Limited<M> {
    /// Wraps `medium` with the limits of `options`.
    ///
    /// # Panics
    /// Panics if the options have problems.
    pub fn new(handle: &Handle, medium: M, options: &LimiterOptions) -> Self {
        let (limiter, shape) = (Limiter::new(handle, options), medium.shape());
        let (handle, medium) = (handle.clone(), Rc::new(medium));
        Self { handle, medium, limiter, of_log: Rc::default(), shape }
    }

    /// Wraps another medium on the same drive, under the same limits: bytes of both count against
    /// one limit.
    #[must_use]
    pub fn beside(&self, medium: M) -> Self {
        let (limiter, shape) = (self.limiter.clone(), medium.shape());
        let (handle, medium) = (self.handle.clone(), Rc::new(medium));
        Self { handle, medium, limiter, of_log: Rc::default(), shape }
    }

    /// Returns the inner medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the counters so far; zeros without a limit.
    pub fn stats(&self) -> LimiterStats {
        self.limiter.as_ref().map_or_else(LimiterStats::default, |limiter| limiter.stats())
    }

    fn bytes_of(&self, pages: usize) -> u64 {
        pages as u64 * u64::from(self.shape.page_bytes)
    }

    /// Returns the treatment of an append to an extent.
    fn use_of_append(&self, extent: ExtentId, class: IoClass) -> Use {
        match use_of(class) {
            Use::Free if self.of_log.borrow().contains(&extent) => Use::Client,
            other => other,
        }
    }

    /// Calls `start` now, or once the limiter lets this many pages pass.
    fn submit<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        what: Use,
        pages: usize,
        extent: Option<ExtentId>,
        start: impl FnOnce(&M) -> F + 'static,
    ) -> Way<F, T> {
        let bytes = self.bytes_of(pages);
        let limited = self.limiter.as_deref().and_then(|limiter| {
            let lane = limiter.lane(what, bytes)?;
            (!limiter.take(lane, bytes)).then_some((limiter, lane))
        });
        let Some((limiter, lane)) = limited else { return Way::Now(start(&self.medium)) };
        let (tells, outcome) = oneshot();
        let (medium, handle) = (Rc::clone(&self.medium), self.handle.clone());
        let submit = Box::new(move || {
            let under_way = start(&medium);
            handle.spawn("limited I/O", async move { tells.send(under_way.await) });
        });
        limiter.enqueue(lane, bytes, extent, submit);
        Way::Later(outcome)
    }

    /// Counts a read that does not wait.
    fn note_read(&self, class: IoClass) {
        let Some(limiter) = &self.limiter else { return };
        let bytes = self.bytes_of(1);
        if let Some(lane) = limiter.lane(use_of(class), bytes) {
            limiter.owe(lane, bytes);
        }
    }
}

impl<M: Medium> Medium for Limited<M> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError> {
        self.medium.open(extent, generation, stream)?;
        if self.limiter.is_some() {
            let of_log = &mut *self.of_log.borrow_mut();
            let _was_there = match stream {
                Stream::Log => of_log.insert(extent),
                _ => of_log.remove(&extent),
            };
        }
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        let extent = self.shape.extent_of(first);
        let what = self.use_of_append(extent, class);
        let start = move |medium: &M| medium.append(first, pages, class);
        self.submit(what, self.shape.append_unit as usize, Some(extent), start).end()
    }

    fn append_run(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        let (extent, count) = (self.shape.extent_of(first), pages.len());
        let what = self.use_of_append(extent, class);
        let start = move |medium: &M| medium.append_run(first, pages, class);
        self.submit(what, count, Some(extent), start).end()
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.medium.sync(stream)
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<M> {
        self.note_read(class);
        self.medium.read(page, class)
    }

    fn read_versions(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        self.note_read(class);
        self.medium.read_versions(page, class)
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<M> {
        let start = move |medium: &M| medium.read_run(first, pages, class);
        self.submit(use_of(class), pages as usize, None, start).end()
    }

    fn promote(&self, page: PageNo) {
        self.medium.promote(page);
    }

    fn set_write_stall(&self, is_on: bool) {
        self.medium.set_write_stall(is_on);
    }

    fn pauses(&self, class: IoClass) -> bool {
        let is_rest = matches!(use_of(class), Use::Internal(Lane::Rest, _));
        is_rest && self.limiter.as_ref().is_some_and(|limiter| limiter.is_paused())
            || self.medium.pauses(class)
    }

    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<M> {
        self.medium.frontier(extent)
    }

    fn knows(&self, extent: ExtentId) -> bool {
        self.medium.knows(extent)
    }

    fn is_written_anywhere(&self) -> bool {
        self.medium.is_written_anywhere()
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.medium.release(extent)
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        self.medium.wear(extent, stream)
    }
}
