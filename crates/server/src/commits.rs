//! Writes of many connections become durable together.
//!
//! A command writes without waiting; before its reply is sent, its connection waits here. One thread syncs the store for all that wait,
//! again and again as long as somebody does: those who come while it syncs are the next group. So however many writers
//! wait, none of them holds a thread, and readers go on.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use levelhead::Store;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::statistics::Statistics;

type Waiting = oneshot::Sender<Result<(), Fault>>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_over: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    has_work: Condvar,
}

/// See the module's documentation.
pub(crate) struct Commits {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Commits {
    pub(crate) fn start(store: Store, statistics: Arc<Statistics>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), has_work: Condvar::new() });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("commit".to_owned());
        let thread = thread.spawn(move || its.run(&store, &statistics))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until all that was written before is durable.
    pub(crate) async fn wait(&self) -> Result<(), Fault> {
        let (sender, receiver) = oneshot::channel();
        self.shared.queue.lock().expect("nothing panics with it locked").waiting.push(sender);
        self.shared.has_work.notify_one();
        let gone = || Fault::of_kind("MISCONF the server has stopped making writes durable");
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Ends the thread, when nobody waits any more.
    pub(crate) fn stop(&self) {
        self.shared.queue.lock().expect("nothing panics with it locked").is_over = true;
        self.shared.has_work.notify_one();
        let thread = self.thread.lock().expect("nothing panics with it locked").take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, store: &Store, statistics: &Statistics) {
        while let Some(waiting) = self.next() {
            let synced = store.sync().map_err(Fault::from);
            statistics.count_commit(waiting.len());
            for one in waiting {
                // Whoever has gone meanwhile does not want to know.
                let _ = one.send(synced.clone());
            }
        }
    }

    /// Those who wait, as soon as there are some; `None` at the end.
    fn next(&self) -> Option<Vec<Waiting>> {
        let queue = self.queue.lock().expect("nothing panics with it locked");
        let is_idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_over;
        let queue = self.has_work.wait_while(queue, is_idle);
        let waiting = std::mem::take(&mut queue.expect("nothing panics with it locked").waiting);
        if waiting.is_empty() { None } else { Some(waiting) }
    }
}
