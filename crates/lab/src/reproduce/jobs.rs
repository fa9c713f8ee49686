//! Independent simulations side by side, one thread each. What comes out does not depend on how
//! many threads there are: every job has a runtime, a drive and a seed of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Watcher;

/// One simulation.
pub(super) struct Job<T> {
    pub name: String,
    pub run: Box<dyn FnOnce() -> T + Send>,
}

impl<T> Job<T> {
    pub(super) fn new(name: impl Into<String>, run: impl FnOnce() -> T + Send + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Runs `jobs` on `threads` threads; results in the order of the jobs.
pub(super) fn run_all<T: Send>(jobs: Vec<Job<T>>, threads: usize, watcher: &dyn Watcher) -> Vec<T> {
    let total = jobs.len();
    let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let results: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = jobs.get(index) else { break };
            let job = slot.lock().expect("a job that panics ends the program").take();
            let Job { name, run } = job.expect("each job is taken once");
            watcher.begins(&name);
            let result = run();
            *results[index].lock().expect("as above") = Some(result);
            watcher.ended(&name, done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, total.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let taken = results.into_iter().map(|result| result.into_inner().expect("as above"));
    taken.map(|result| result.expect("every job was run")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Watcher for Nobody {
        fn begins(&self, _name: &str) {}
        fn ended(&self, _name: &str, _done: usize, _total: usize) {}
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for threads in [1, 2, 7] {
            let jobs = (0..20).map(|i| Job::new(i.to_string(), move || i * i)).collect();
            let expected: Vec<i32> = (0..20).map(|i| i * i).collect();
            assert_eq!(run_all(jobs, threads, &Nobody), expected);
        }
    }
}
