//! Group commit: makes the writes of many connections durable together.
//!
//! A command writes without waiting for durability; its connection waits here before it sends the
//! reply. One thread syncs the store for all waiting connections and repeats while there are any:
//! connections that arrive during a sync form the next group. No writer holds a thread while it
//! waits, so readers continue however many writers wait.

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

    /// Waits until all earlier writes are durable.
    pub(crate) async fn wait(&self) -> Result<(), Fault> {
        let (sender, receiver) = oneshot::channel();
        self.shared.queue.lock().expect("nothing panics with it locked").waiting.push(sender);
        self.shared.has_work.notify_one();
        let gone = || Fault::of_kind("MISCONF the server has stopped making writes durable");
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Stops the thread once no connection waits any more.
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
                // Fails if the connection has closed meanwhile, which does not matter.
                let _ = one.send(synced.clone());
            }
        }
    }

    /// Waits for and returns the next group; `None` once the server stops.
    fn next(&self) -> Option<Vec<Waiting>> {
        let queue = self.queue.lock().expect("nothing panics with it locked");
        let is_idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_over;
        let queue = self.has_work.wait_while(queue, is_idle);
        let waiting = std::mem::take(&mut queue.expect("nothing panics with it locked").waiting);
        if waiting.is_empty() { None } else { Some(waiting) }
    }
}
