//! Several simulations at a time: their number, and their progress.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::ProgressBar;
use papers::{Bound, Simulation, Threads, Watcher};
use report::units::bytes_text;

use crate::host::{self, Stopwatch};
use crate::simulations::Taken;
use crate::{output, progress};

/// Returns the number of simulations to run in parallel, bounded by cores and available memory,
/// of which each takes up to `need` bytes. Prints a note if memory is the bound.
pub(crate) fn threads(need: u64) -> usize {
    let (cores, available) = (host::cores(), host::available_memory_bytes());
    let threads = papers::threads(cores, available, need);
    if let Some(words) = threads_words(threads, cores, available.unwrap_or(0), need) {
        output::say(&words);
    }
    threads.count
}

/// Returns the note for simulations that are bounded by memory.
fn threads_words(threads: Threads, cores: usize, available: u64, need: u64) -> Option<String> {
    let (available, need) = (bytes_text(available), bytes_text(need));
    match threads.bound {
        // Too little memory was checked before the work.
        Bound::Cores | Bound::TooLittleMemory => None,
        Bound::Memory => Some(format!(
            "simulations at a time: {}, though there are {cores} cores: one takes up to {need} of \
             memory, and {available} are available (--threads for another number)",
            threads.count
        )),
    }
}

const BAR: &str = "{elapsed_precise} {bar:30} {pos}/{len} eta {eta} {wide_msg}";

/// A bar that counts simulations and names those in progress; lines where it is hidden.
pub(crate) struct Progress {
    pub(crate) bar: ProgressBar,
    under_way: Mutex<Vec<UnderWay>>,
    ended: Arc<Ended>,
    taken: Arc<Taken>,
    stopwatch: Stopwatch,
}

/// Counts of simulations: finished, and in total.
#[derive(Default)]
pub(crate) struct Ended {
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Ended {
    /// Returns the simulations done, and their total.
    pub(crate) fn read(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

struct UnderWay {
    number: usize,
    name: String,
    stopwatch: Stopwatch,
}

impl Progress {
    /// Creates the progress of a run. `taken` counts simulations reused from an earlier run, and
    /// may stay 0.
    pub(crate) fn new(ended: &Arc<Ended>, taken: &Arc<Taken>) -> Self {
        let bar = progress::bar(BAR, 0);
        bar.enable_steady_tick(Duration::from_secs(1));
        ended.done.store(0, Ordering::Relaxed);
        let stopwatch = Stopwatch::start();
        let (ended, taken) = (Arc::clone(ended), Arc::clone(taken));
        Self { bar, under_way: Mutex::default(), ended, taken, stopwatch }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<UnderWay>) -> T) -> T {
        let mut under_way = self.under_way.lock().expect("nobody panics with it");
        let changed = change(&mut under_way);
        let names: Vec<_> = under_way.iter().map(|one| one.name.as_str()).collect();
        self.bar.set_message(names.join("; "));
        changed
    }
}

impl Watcher for Progress {
    fn begins(&self, simulation: Simulation<'_>) {
        let Simulation { name, number, total } = simulation;
        self.bar.set_length(total as u64);
        self.ended.total.store(total, Ordering::Relaxed);
        progress::line_without(&self.bar, &begin_line(simulation));
        let name = name.to_owned();
        self.change(|all| all.push(UnderWay { number, name, stopwatch: Stopwatch::start() }));
    }

    fn ended(&self, simulation: Simulation<'_>, succeeded: bool) {
        let ended = self.change(|all| {
            let at = all.iter().position(|one| one.number == simulation.number);
            all.remove(at.expect("what ends has begun"))
        });
        self.bar.inc(1);
        let done = self.ended.done.fetch_add(1, Ordering::Relaxed) + 1;
        let line = end_line(simulation, succeeded, ended.stopwatch.elapsed());
        let taken = [&self.taken.so_far, &self.taken.in_all].map(|n| n.load(Ordering::Relaxed));
        let how_far = how_far(done, simulation.total, taken, self.stopwatch.elapsed());
        progress::line_without(&self.bar, &format!("{line}; {how_far}"));
    }
}

fn begin_line(simulation: Simulation<'_>) -> String {
    let Simulation { name, number, total } = simulation;
    format!("[{number}/{total}] {name} ...")
}

fn end_line(simulation: Simulation<'_>, succeeded: bool, took: Duration) -> String {
    let how = if succeeded { "done" } else { "failed" };
    format!("{} {how} after {}", begin_line(simulation), progress::time_text(took))
}

/// Describes how many simulations are done, and the time left at the rate so far. `taken` are
/// simulations reused from an earlier run, so far and in total: they take no time.
fn how_far(done: usize, total: usize, taken: [usize; 2], took: Duration) -> String {
    let [so_far, in_all] = taken;
    let worked = done.saturating_sub(so_far) as u32;
    let left = total.saturating_sub(done).saturating_sub(in_all.saturating_sub(so_far)) as u32;
    let counts = format!("{done} of {total} done");
    if left == 0 || worked == 0 {
        return counts;
    }
    let rest = (took / worked).saturating_mul(left);
    format!("{counts}, some {} more at this rate", progress::time_text(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_bounds_is_spoken_of() {
        let words = |cores, available: u64, need: u64| {
            let threads = papers::threads(cores, Some(available), need);
            threads_words(threads, cores, available, need).unwrap_or_default()
        };
        assert_eq!(words(2, 32 << 30, 16 << 30), "");
        let bounded = words(2, 22 << 30, 16 << 30);
        assert!(bounded.contains("at a time: 1, though there are 2 cores"), "{bounded}");
        assert!(bounded.contains("16.0 GiB") && bounded.contains("22.0 GiB"), "{bounded}");
    }

    #[test]
    fn lines_say_which_simulation_and_how_long_it_took() {
        let simulation = Simulation { name: "PinK: Load, A, B", number: 3, total: 14 };
        assert_eq!(begin_line(simulation), "[3/14] PinK: Load, A, B ...");
        assert_eq!(
            end_line(simulation, true, Duration::from_secs(250)),
            "[3/14] PinK: Load, A, B ... done after 4 min 10 s"
        );
        assert!(end_line(simulation, false, Duration::ZERO).ends_with("failed after 0.0 s"));
        let ten = Duration::from_secs(10);
        let how_far = |done, taken| how_far(done, 14, taken, ten);
        assert_eq!(how_far(2, [0, 0]), "2 of 14 done, some 1 min 0 s more at this rate");
        assert_eq!(how_far(14, [0, 0]), "14 of 14 done");
        assert_eq!(how_far(2, [2, 12]), "2 of 14 done", "nothing was run yet");
        assert_eq!(how_far(12, [11, 12]), "12 of 14 done, some 10 s more at this rate");
    }
}
