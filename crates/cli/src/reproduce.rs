//! `levelhead reproduce`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use papers::{Bound, Paper, Plan, Scale, Simulation, Threads, Watcher};
use report::units::{bytes_text, printable};

use crate::host::Stopwatch;
use crate::simulations::{Simulations, Take, Taken};
use crate::{files, host, interrupt, memory, output, progress, values};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ReproduceArguments {
    /// Paper to reproduce
    paper: PaperName,
    /// Size of the experiments
    #[arg(long, value_enum, default_value_t = ScaleName::Quick)]
    scale: ScaleName,
    /// Directory for the report [default: reproduce-PAPER-SCALE]
    #[arg(long)]
    out: Option<PathBuf>,
    #[arg(long, help = threads_help(), value_parser = values::threads)]
    threads: Option<u64>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1, value_parser = values::seed)]
    seed: u64,
    /// Continue an interrupted run: keep its finished simulations and run the others
    ///
    /// --resume=any also keeps simulations of another build of this program.
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "own",
        value_name = "BUILD"
    )]
    resume: Option<ResumeName>,
    /// Overwrite the report and the saved simulations in the --out directory
    #[arg(long)]
    force: bool,
    /// Run each YCSB workload on a freshly loaded drive, not on the state that the previous one
    /// left (pink only)
    #[arg(long)]
    fresh_loads: bool,
    /// Run only simulations with this text in their name, and save their results for --resume;
    /// writes no report
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ResumeName {
    /// Results of this build
    Own,
    /// Results of any build; the report notes it
    Any,
}

#[derive(Clone, Copy, ValueEnum)]
enum PaperName {
    /// PinK (USENIX ATC'20): an LSM-tree with bounded tail latency, against hash tables and Bloom
    /// filters
    Pink,
    /// IterKVSSD (SYSTOR'23): snapshot iterators, index and value prefetch
    Iter,
    /// Vigil-KV's hardware (USENIX ATC'22): NVM sets and predictable-latency windows
    Device,
    /// Vigil-KV (USENIX ATC'22): RocksDB over NVM sets with scheduled windows
    Vigil,
    /// All papers, one after the other, with a report each
    All,
}

impl PaperName {
    fn name(self) -> &'static str {
        match self.papers() {
            [one] => one.name(),
            _ => "all",
        }
    }

    fn papers(self) -> &'static [Paper] {
        match self {
            Self::Pink => &[Paper::Pink],
            Self::Iter => &[Paper::Iter],
            Self::Device => &[Paper::Device],
            Self::Vigil => &[Paper::Vigil],
            Self::All => &Paper::ALL,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum ScaleName {
    /// Minutes: smaller drives and fewer pairs, in the same proportions
    Quick,
    /// The paper's number of pairs: hours for pink and vigil, up to 17 GiB of memory; --resume
    /// continues an interrupted run
    Paper,
}

impl From<ScaleName> for Scale {
    fn from(name: ScaleName) -> Self {
        match name {
            ScaleName::Quick => Self::Quick,
            ScaleName::Paper => Self::Paper,
        }
    }
}

pub(crate) fn run(arguments: &ReproduceArguments) -> anyhow::Result<ExitCode> {
    let scale = Scale::from(arguments.scale);
    let usual = || PathBuf::from(format!("reproduce-{}-{}", arguments.paper.name(), scale.name()));
    let directory = arguments.out.clone().unwrap_or_else(usual);
    let may_write_over = arguments.force || arguments.resume.is_some() || arguments.only.is_some();
    for paper in arguments.paper.papers() {
        let of_one = arguments.paper.papers().len() == 1;
        let place = if of_one { directory.clone() } else { directory.join(paper.name()) };
        files::check_results(&place, may_write_over)?;
    }
    check_memory(arguments)?;
    let ended = Arc::<Ended>::default();
    let heard = Arc::clone(&ended);
    interrupt::end_on_interrupt(move || {
        let (done, total) = heard.read();
        format!(
            "interrupted after {done} of {total} simulations: a report needs all of them (--resume goes on)"
        )
    });
    match arguments.paper.papers() {
        [paper] => one(arguments, *paper, &directory, &ended)?,
        papers => {
            for paper in papers {
                one(arguments, *paper, &directory.join(paper.name()), &ended)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if simulations need far more memory than is available. Not checked with
/// --threads, --resume or --only.
fn check_memory(arguments: &ReproduceArguments) -> anyhow::Result<()> {
    let is_meant =
        arguments.threads.is_some() || arguments.resume.is_some() || arguments.only.is_some();
    if is_meant {
        return Ok(());
    }
    let scale = Scale::from(arguments.scale);
    let needs =
        arguments.paper.papers().iter().map(|paper| papers::bytes_per_simulation(*paper, scale));
    let smaller = match arguments.scale {
        ScaleName::Paper => "take --scale quick, or --threads 1, which tries it",
        ScaleName::Quick => "--threads 1 tries it",
    };
    memory::check(needs.max().unwrap_or(0), smaller)
}

/// Runs one paper's experiments and writes their report into `directory`.
fn one(
    arguments: &ReproduceArguments,
    paper: Paper,
    directory: &Path,
    ended: &Arc<Ended>,
) -> anyhow::Result<()> {
    let scale = Scale::from(arguments.scale);
    let threads = arguments.threads.map(|threads| threads as usize);
    let threads = threads.unwrap_or_else(|| default_threads(paper, scale));
    let keeper = Simulations::in_directory(directory, take(arguments.resume), arguments.force);
    let progress = Progress::new(ended, &keeper.taken);
    let (seed, watcher) = (arguments.seed, &progress);
    let (only, fresh_loads) = (arguments.only.as_deref(), arguments.fresh_loads);
    let plan = Plan { paper, scale, threads, seed, watcher, keeper: &keeper, only, fresh_loads };
    let report = papers::run(&plan);
    progress.bar.finish_and_clear();
    let report = report.map_err(anyhow::Error::msg)?;
    if report.is_none() && keeper.not_kept() > 0 {
        bail!(
            "{} of these simulations could not be kept, see above: run them again",
            keeper.not_kept()
        );
    }
    let Some(report) = report else {
        output::say(
            "what these simulations gave is kept; without --only, --resume takes it and makes the report",
        );
        return Ok(());
    };
    let page = directory.join("index.html");
    let (title, scale) = (&report.title, &report.scale);
    let text = format!("{title}\n{scale}\n{}\nfigures: {}", report.table(), page.display());
    let printed = output::print(&printable(&text));
    files::write(directory, report.files()?)?;
    keeper.drop_drives();
    printed
}

fn take(resume: Option<ResumeName>) -> Take {
    match resume {
        None => Take::Nothing,
        Some(ResumeName::Own) => Take::OwnBuild,
        Some(ResumeName::Any) => Take::AnyBuild,
    }
}

fn threads_help() -> String {
    let need = |paper| bytes_text(papers::bytes_per_simulation(paper, Scale::Paper));
    format!(
        "Simulations at a time; the result does not depend on it [default: one a core, as long as \
         there is memory for them: at paper scale one takes up to {} (pink) or {} (iter)]",
        need(Paper::Pink),
        need(Paper::Iter)
    )
}

/// Returns the number of simulations to run in parallel, bounded by cores and available memory.
/// Prints a note if memory is the bound.
fn default_threads(paper: Paper, scale: Scale) -> usize {
    let (cores, available) = (host::cores(), host::available_memory_bytes());
    let need = papers::bytes_per_simulation(paper, scale);
    let threads = papers::threads(cores, available, need);
    if let Some(words) = threads_words(threads, cores, available.unwrap_or(0), need) {
        output::say(&words);
    }
    threads.count
}

/// Returns the note for simulations that are bounded by memory.
pub(crate) fn threads_words(
    threads: Threads,
    cores: usize,
    available: u64,
    need: u64,
) -> Option<String> {
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
    fn read(&self) -> (usize, usize) {
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
