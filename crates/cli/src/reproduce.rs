//! `levelhead reproduce`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, ValueEnum};
use papers::{Paper, Plan, Scale};
use report::units::{bytes_text, printable};

use crate::parallel::{self, Ended, Progress};
use crate::simulations::{Simulations, Take};
use crate::{files, interrupt, memory, output, values};

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
    let threads =
        threads.unwrap_or_else(|| parallel::threads(papers::bytes_per_simulation(paper, scale)));
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
