//! Waiting for tasks.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::Handle;

pub(crate) struct JoinState<T> {
    result: RefCell<Option<T>>,
    is_finished: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl<T> Default for JoinState<T> {
    fn default() -> Self {
        Self {
            result: RefCell::new(None),
            is_finished: Cell::new(false),
            waiter: RefCell::default(),
        }
    }
}

impl<T> JoinState<T> {
    pub(crate) fn finish(&self, result: T) {
        *self.result.borrow_mut() = Some(result);
        self.is_finished.set(true);
        if let Some(waker) = self.waiter.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A handle to a task and its future result. Awaiting it returns the result. If it is dropped, the
/// task continues.
pub struct JoinHandle<T> {
    state: Rc<JoinState<T>>,
    handle: Handle,
    task: u32,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(state: Rc<JoinState<T>>, handle: Handle, task: u32) -> Self {
        Self { state, handle, task }
    }

    /// Ends the task wherever it is, unless it has ended: its state is dropped and it does not run
    /// again. A task that aborts itself ends at its next await.
    pub fn abort(self) {
        if !self.is_finished() {
            self.handle.abort(self.task);
        }
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.state.is_finished.get()
    }

    /// Returns the result, if the task has ended and the result was not taken yet.
    pub fn take(&self) -> Option<T> {
        self.state.result.borrow_mut().take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(result) = self.take() {
            return Poll::Ready(result);
        }
        assert!(!self.is_finished(), "a task's result can be taken once");
        *self.state.waiter.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The result of the first of two futures to complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First<A, B> {
    /// The left one completed first, or both at the same time.
    Left(A),
    /// The right one completed first.
    Right(B),
}

/// Runs two futures concurrently within the calling task until one completes. The other one keeps
/// its state, and can be awaited or dropped.
pub async fn first<A: Future + Unpin, B: Future + Unpin>(
    left: &mut A,
    right: &mut B,
) -> First<A::Output, B::Output> {
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = Pin::new(&mut *left).poll(cx) {
            return Poll::Ready(First::Left(value));
        }
        Pin::new(&mut *right).poll(cx).map(First::Right)
    })
    .await
}

/// Runs all `futures` concurrently within the calling task and returns their results in order.
///
/// Every wake-up polls each unfinished future, so it suits dozens of futures, not thousands.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|f| Some(Box::pin(f))).collect();
    let mut results: Vec<_> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (slot, result) in running.iter_mut().zip(&mut results) {
            if let Some(future) = slot
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *result = Some(value);
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
