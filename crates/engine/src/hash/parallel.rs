//! Doing many small jobs of background work side by side, as many as the medium can serve.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::hash::Inner;
use crate::store::medium::Medium;

/// Runs `job` on each of `items`, up to the medium's parallelism at a time. After the first error
/// no further ones begin, and it is returned when those under way have ended.
pub(crate) async fn in_parallel<M: Medium, T: 'static, E: 'static>(
    inner: &Rc<Inner<M>>,
    items: Vec<T>,
    job: impl AsyncFn(&Rc<Inner<M>>, T) -> Result<(), E> + Clone + 'static,
) -> Result<(), E> {
    let width = items.len().min(inner.store.shape.parallelism as usize);
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
