//! Processor-heavy work that does not use the runtime.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::workers::Workers;

struct State<T> {
    result: Option<thread::Result<T>>,
    waiter: Option<Waker>,
}

/// The future result of a computation. See [`crate::Handle::compute`].
#[must_use = "the result comes to whoever awaits it"]
pub struct Compute<T> {
    kind: Kind<T>,
}

enum Kind<T> {
    /// In virtual time: it was computed immediately.
    Done(Option<T>),
    Elsewhere(Arc<Mutex<State<T>>>),
}

// The result is never pinned.
impl<T> Unpin for Compute<T> {}

impl<T> Compute<T> {
    pub(crate) fn done(result: T) -> Self {
        Self { kind: Kind::Done(Some(result)) }
    }
}

impl<T: Send + 'static> Compute<T> {
    pub(crate) fn on(workers: &Workers, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let state = Arc::new(Mutex::new(State { result: None, waiter: None }));
        let for_worker = Arc::clone(&state);
        workers.run(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            let mut state = for_worker.lock().expect("nothing panics with it locked");
            state.result = Some(result);
            let waiter = state.waiter.take();
            drop(state);
            waiter.into_iter().for_each(Waker::wake);
        }));
        Self { kind: Kind::Elsewhere(state) }
    }
}

impl<T> Future for Compute<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.kind {
            Kind::Done(result) => Poll::Ready(result.take().expect("a result is taken once")),
            Kind::Elsewhere(state) => {
                let mut state = state.lock().expect("nothing panics with it locked");
                match state.result.take() {
                    Some(Ok(result)) => Poll::Ready(result),
                    Some(Err(panic)) => {
                        drop(state);
                        resume_unwind(panic)
                    }
                    None => {
                        state.waiter = Some(cx.waker().clone());
                        Poll::Pending
                    }
                }
            }
        }
    }
}
