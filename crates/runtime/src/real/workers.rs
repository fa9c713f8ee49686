//! Threads that do what the executor's own must not wait for: blocking I/O where there is no ring, and work
//! that is heavy on the processor.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

pub(crate) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    has_changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("jobs run outside of the lock")
    }
}

/// What the system thinks of the threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// As the thread that began them.
    Normal,
    /// Whoever else has something to do on a processor goes first, mostly: callers with short work wait for those that
    /// compute otherwise, as long as the system's slices are.
    Low,
}

/// How nice a thread of low priority is: the least that there is.
const NICE: i32 = 19;

/// Up to so many threads, begun when there is work for them. Dropping it drops what was not begun and waits
/// for what was.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: RefCell<Vec<JoinHandle<()>>>,
    most: usize,
    name: &'static str,
    priority: Priority,
}

impl Workers {
    pub(crate) fn new(name: &'static str, most: usize, priority: Priority) -> Self {
        assert!(most > 0, "work needs a thread");
        Self { shared: Arc::default(), threads: RefCell::default(), most, name, priority }
    }

    /// Has `job` done. It must not panic.
    pub(crate) fn run(&self, job: Job) {
        let mut threads = self.threads.borrow_mut();
        let mut queue = self.shared.lock();
        queue.jobs.push_back(job);
        if queue.idle >= queue.jobs.len() || threads.len() >= self.most {
            drop(queue);
            self.shared.has_changed.notify_one();
            return;
        }
        drop(queue);
        let (shared, priority) = (Arc::clone(&self.shared), self.priority);
        let begin = move || {
            priority.take();
            work(&shared);
        };
        match thread::Builder::new().name(self.name.to_owned()).spawn(begin) {
            Ok(thread) => threads.push(thread),
            Err(_) if !threads.is_empty() => self.shared.has_changed.notify_one(),
            // Not one thread is to be had: this one does it, and whoever comes meanwhile waits.
            Err(_) => {
                let job = self.shared.lock().jobs.pop_back();
                if let Some(job) = job {
                    job();
                }
            }
        }
    }
}

impl Priority {
    /// Gives it to this thread.
    fn take(self) {
        if self == Self::Low {
            // On Linux nobody in particular is this thread, not its process. A system that refuses leaves it as it was.
            let _ = rustix::process::setpriority_process(None, NICE);
        }
    }
}

fn work(shared: &Shared) {
    let mut queue = shared.lock();
    while !queue.is_closed {
        if let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            job();
            queue = shared.lock();
        } else {
            queue.idle += 1;
            queue = shared.has_changed.wait(queue).expect("jobs run outside of the lock");
            queue.idle -= 1;
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.is_closed = true;
        let unbegun = std::mem::take(&mut queue.jobs);
        drop(queue);
        drop(unbegun);
        self.shared.has_changed.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // It ended for good: jobs do not panic. One that did has said so.
            let _ = thread.join();
        }
    }
}
