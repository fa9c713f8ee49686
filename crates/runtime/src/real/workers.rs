//! Threads for work that must not block the executor's thread: blocking I/O without a ring, and
//! processor-heavy work.

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

/// The scheduling priority of the threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// That of the thread that started them.
    Normal,
    /// Other threads mostly run first. Else callers with short work would wait for computing
    /// threads, as long as the system's time slices.
    Low,
}

/// The nice value of low priority: the lowest priority of all.
const NICE: i32 = 19;

/// A pool of up to `most` threads, which are started when needed. Dropping it drops jobs that have
/// not started, and waits for the others.
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

    /// Runs `job` on a thread. It must not panic.
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
            // No thread could be started: runs the job here, and the caller waits.
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
    /// Applies the priority to this thread.
    fn take(self) {
        if self == Self::Low {
            // On Linux, `None` means this thread, not its process. If the system refuses, the
            // priority stays as it was.
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
            // Jobs do not panic. If one did, the panic was already reported.
            let _ = thread.join();
        }
    }
}
