//! Independent simulations in parallel, one per thread. The results do not depend on the number of
//! threads, because each job has its own runtime, drive and seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use crate::failure::Failure;
use crate::plan::Plan;
use crate::watcher::{Simulation, Watcher};

/// One simulation.
pub struct Job<'a, T> {
    /// Name of the simulation.
    pub name: String,
    /// Everything that the result depends on; `None` if the result is not saved.
    pub settings: Option<Value>,
    /// Runs the simulation.
    pub run: Box<dyn FnOnce() -> Result<T, Failure> + Send + 'a>,
}

impl<'a, T> Job<'a, T> {
    /// Creates a job without settings, whose result is not saved.
    pub fn new(
        name: impl Into<String>,
        run: impl FnOnce() -> Result<T, Failure> + Send + 'a,
    ) -> Self {
        Self { name: name.into(), settings: None, run: Box::new(run) }
    }
}

/// Runs `jobs` on `threads` threads. Returns the results in the order of the jobs.
///
/// Once a job has failed, threads take no further job; jobs that were taken are completed. Jobs are
/// taken in order, so the first failure in that order is always found: the returned failure does
/// not depend on `threads`.
///
/// # Errors
/// Returns the first failure, in the order of the jobs.
///
/// # Panics
/// If a job panics.
pub fn run_all<T: Send>(
    jobs: Vec<Job<'_, T>>,
    threads: usize,
    watcher: &dyn Watcher,
) -> Result<Vec<T>, Failure> {
    let total = jobs.len();
    let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let results: Vec<Mutex<Option<_>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        // Checked before a job is taken, because each job that is taken must run.
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = jobs.get(index) else { break };
            let job = slot.lock().expect("a job that panics ends the program").take();
            let Job { name, run, .. } = job.expect("each job is taken once");
            let simulation = Simulation { name: &name, number: index + 1, total };
            watcher.begins(simulation);
            let result = run().map_err(|failure| format!("{name}: {failure}"));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            watcher.ended(simulation, result.is_ok());
            *results[index].lock().expect("as above") = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, total.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    // Jobs that did not run come after a job that failed, and the collection ends at that job.
    let taken = results.into_iter().map(|result| result.into_inner().expect("as above"));
    taken.map(|result| result.expect("every job before a failure was run")).collect()
}

/// Runs the jobs that the plan selects. Returns `None` if they are not all jobs.
pub(super) fn run_those_asked_for<T: Send>(
    mut jobs: Vec<Job<'_, T>>,
    plan: &Plan<'_>,
) -> Result<Option<Vec<T>>, Failure> {
    let all = jobs.len();
    if let Some(part) = plan.only {
        if !jobs.iter().any(|job| job.name.contains(part)) {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            let names = names.join("\n  ");
            return Err(format!("no simulation has {part:?} in its name; there are:\n  {names}"));
        }
        jobs.retain(|job| job.name.contains(part));
    }
    let are_all = jobs.len() == all;
    let asked = jobs.iter().filter_map(|job| Some((job.name.as_str(), job.settings.as_ref()?)));
    plan.keeper.expect(&asked.collect::<Vec<_>>())?;
    let done = run_all(jobs, plan.threads, plan.watcher)?;
    Ok(are_all.then_some(done))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::Notes;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for threads in [1, 2, 7] {
            let jobs = (0..20).map(|i| Job::new(i.to_string(), move || Ok(i * i))).collect();
            let expected: Vec<i32> = (0..20).map(|i| i * i).collect();
            assert_eq!(run_all(jobs, threads, &Notes::default()), Ok(expected));
        }
    }

    fn failing_at(failures: &'static [u32]) -> Vec<Job<'static, u32>> {
        let run = |i: u32| if failures.contains(&i) { Err("no room".to_owned()) } else { Ok(i) };
        (0..20).map(|i| Job::new(format!("job {i}"), move || run(i))).collect()
    }

    #[test]
    fn the_first_failure_is_returned_whatever_the_threads() {
        for threads in [1, 2, 7] {
            let outcome = run_all(failing_at(&[3, 4, 11]), threads, &Notes::default());
            assert_eq!(outcome, Err("job 3: no room".to_owned()), "{threads} threads");
        }
    }

    #[test]
    fn a_watcher_hears_of_each_job_until_one_fails() {
        let notes = Notes::default();
        run_all(failing_at(&[1]), 1, &notes).unwrap_err();
        let heard = notes.heard();
        assert_eq!(heard, ["1/20 job 0", "job 0 done", "2/20 job 1", "job 1 failed"]);
    }
}
