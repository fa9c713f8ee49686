//! Parallel execution of many small jobs of background work. The published code processes all 256
//! keys of a flush at once. This code processes four for each die, which is as many on a medium of
//! 64 dies, so that dies do not wait for keys with pages on other dies.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::Inner;
use crate::medium::Medium;

/// Parallel jobs for each operation that the medium can have in progress.
const JOBS_PER_DIE: usize = 4;

/// Runs `job` on each of `items`, several at a time. After an error no further job begins. Returns
/// when all jobs have ended; if several failed, with one of their errors.
pub(crate) async fn in_parallel<M: Medium, T: 'static, E: 'static>(
    inner: &Rc<Inner<M>>,
    items: Vec<T>,
    job: impl AsyncFn(&Rc<Inner<M>>, T) -> Result<(), E> + Clone + 'static,
) -> Result<(), E> {
    let width = items.len().min(JOBS_PER_DIE * inner.store.shape.parallelism as usize);
    let queue = Rc::new(RefCell::new(VecDeque::from(items)));
    let workers: Vec<_> = (0..width)
        .map(|_| {
            let (inner, queue, job) = (Rc::clone(inner), Rc::clone(&queue), job.clone());
            inner.store.handle.clone().spawn("index", async move {
                loop {
                    let next = queue.borrow_mut().pop_front();
                    let Some(item) = next else { return Ok(()) };
                    if let Err(error) = job(&inner, item).await {
                        queue.borrow_mut().clear();
                        return Err(error);
                    }
                }
            })
        })
        .collect();
    let mut outcome = Ok(());
    for worker in workers {
        outcome = outcome.and(worker.await);
    }
    outcome
}
