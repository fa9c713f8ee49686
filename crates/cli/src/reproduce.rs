//! `levelhead reproduce`.

use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use lab::reproduce::{self, Paper, Plan, Scale, Watcher};

use crate::files;

#[derive(Args)]
pub(crate) struct ReproduceArguments {
    /// Whose experiments
    paper: PaperName,
    /// How large: minutes, or the paper's number of pairs
    #[arg(long, value_enum, default_value_t = ScaleName::Quick)]
    scale: ScaleName,
    /// Directory for the report [default: reproduce-PAPER-SCALE]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Simulations at a time; the result does not depend on it [default: one a core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum PaperName {
    /// PinK (USENIX ATC'20): an LSM-tree with bounded tails against hash and Bloom filters
    Pink,
    /// IterKVSSD (SYSTOR'23): snapshot iterators, index and value prefetch
    Iter,
}

impl From<PaperName> for Paper {
    fn from(name: PaperName) -> Self {
        match name {
            PaperName::Pink => Self::Pink,
            PaperName::Iter => Self::Iter,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum ScaleName {
    Quick,
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

pub(crate) fn run(arguments: &ReproduceArguments) -> anyhow::Result<()> {
    let (paper, scale) = (Paper::from(arguments.paper), Scale::from(arguments.scale));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = Progress::new();
    let plan = Plan {
        paper,
        scale,
        threads: arguments.threads.map_or(cores, usize::from),
        seed: arguments.seed,
        watcher: &progress,
    };
    let report = reproduce::run(&plan);
    progress.bar.finish_and_clear();
    let report = report.map_err(anyhow::Error::msg)?;
    let directory = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("reproduce-{}-{}", paper.name(), scale.name())));
    files::write(&directory, report.files()?)?;
    println!("{}\n{}", report.title, report.scale);
    println!("{}", report.table());
    println!("figures: {}", directory.join("index.html").display());
    Ok(())
}

/// A bar that counts simulations and names those under way.
struct Progress {
    bar: ProgressBar,
    under_way: Mutex<Vec<String>>,
}

impl Progress {
    fn new() -> Self {
        let style = "{elapsed_precise} {bar:30} {pos}/{len} {wide_msg}";
        let style = ProgressStyle::with_template(style).expect("the template is right");
        let bar = ProgressBar::new(0).with_style(style);
        bar.enable_steady_tick(std::time::Duration::from_secs(1));
        Self { bar, under_way: Mutex::default() }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut under_way = self.under_way.lock().expect("nobody panics with it");
        change(&mut under_way);
        self.bar.set_message(under_way.join("; "));
    }
}

impl Watcher for Progress {
    fn begins(&self, name: &str) {
        self.change(|names| names.push(name.to_owned()));
    }

    fn ended(&self, name: &str, done: usize, total: usize) {
        self.change(|names| names.retain(|other| other != name));
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}
