//! Futures of submitted operations.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use runtime::PageImage;

use super::Inner;
use crate::nand::ReadError;
use crate::nand::operation::{OperationId, Outcome};

/// The future of a read. Dropping it does not stop the operation.
#[must_use = "the read goes on without it, but nobody learns what it brought"]
pub struct PageReading(pub(super) InFlight);

impl Future for PageReading {
    type Output = Result<PageImage, ReadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map_ok(|page| page.expect("a read that did not fail brings a page"))
    }
}

/// The future of an operation. Dropping it does not stop the operation.
pub(super) struct InFlight {
    pub(super) inner: Rc<Inner>,
    pub(super) id: OperationId,
    pub(super) is_taken: bool,
}

impl Future for InFlight {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Self { inner, id, is_taken } = &mut *self;
        let operations = &mut inner.state.borrow_mut().operations;
        let operation = operations.get(*id);
        if let Some(outcome) = operation.outcome.take() {
            *is_taken = true;
            operations.remove(*id);
            return Poll::Ready(outcome);
        }
        match &mut operation.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let operations = &mut self.inner.state.borrow_mut().operations;
        let operation = operations.get(self.id);
        if operation.outcome.is_some() {
            operations.remove(self.id);
        } else {
            operation.is_abandoned = true;
        }
    }
}
