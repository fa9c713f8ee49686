//! Doing many small jobs of background work side by side. The published code has all 256 keys of a
//! flush under way at once; ours has as many for a medium of 64 dies, so that dies need not wait for
//! keys whose pages happen to lie elsewhere.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::Inner;
use crate::medium::Medium;

/// Jobs at a time for each operation that the medium can have under way.
const JOBS_PER_DIE: usize = 4;

/// Runs `job` on each of `items`, some at a time. After the first error
/// no further ones begin, and it is returned when those under way have ended.
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
