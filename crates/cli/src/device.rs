//! `levelhead device`.

mod arguments;
mod planned;
mod progress;

use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, bail};
use blockbench::inputs::Inputs;
use blockbench::{DeviceHost, DeviceResult, DeviceSpec, JobReport, picture, table};
use serde_json::json;
use workload::Stop;

use crate::host::peak_rss_bytes;
use crate::progress::ProgressForm;
use crate::results::ResultArguments;
use crate::sweep::Combination;
use crate::{interrupt, memory, output, side_by_side, sweep};

pub(crate) use arguments::DeviceArguments;
use planned::{Planned, planned, runs, say_what_commas_are};
use progress::Progress;

pub(crate) fn run(arguments: &DeviceArguments) -> anyhow::Result<ExitCode> {
    let runs = sweep::planned(runs(arguments)?, planned)?;
    say_what_commas_are(arguments);
    let mut said: Vec<String> = Vec::new();
    let plans = runs.iter().filter_map(|run| run.plan.as_ref().ok());
    let of_run = |run: &Planned| [run.notes.clone(), run.spec.warnings()].concat();
    for words in arguments.passed_over.words().into_iter().chain(plans.flat_map(of_run)) {
        if !said.contains(&words) {
            output::say(&words);
            said.push(words);
        }
    }
    match &runs[..] {
        [Combination { plan: Ok(run), .. }] => one(&arguments.results, run),
        runs => several(arguments, runs),
    }
}

/// Advice for a job that needs more memory than is available.
const FOR_LESS_MEMORY: &str = "take a smaller drive, or write less (--operations, --runtime)";

/// Runs the job of an earlier result again.
pub(crate) fn again(
    spec: DeviceSpec,
    inputs: Inputs,
    results: &ResultArguments,
) -> anyhow::Result<ExitCode> {
    spec.warnings().iter().for_each(|words| output::say(words));
    one(results, &Planned { spec, inputs, notes: Vec::new() })
}

/// Runs a single job, with a progress bar and the result as text.
fn one(results: &ResultArguments, run: &Planned) -> anyhow::Result<ExitCode> {
    results.check()?;
    memory::check(blockbench::memory_bytes(&run.spec), FOR_LESS_MEMORY)?;
    let stop = interrupt::stop_on_interrupt();
    let done = simulate(run, &Rc::new(Progress::new(&run.spec, results.progress)), &stop)?;
    show(results, run, &done)?;
    if let Some(trouble) = trouble(&done.report) {
        bail!(trouble);
    }
    Ok(if done.report.is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// Runs several jobs side by side.
fn several(arguments: &DeviceArguments, runs: &[Combination<Planned>]) -> anyhow::Result<ExitCode> {
    let plans = runs.iter().filter_map(|run| run.plan.as_ref().ok());
    let need = plans.map(|run| blockbench::memory_bytes(&run.spec)).max().unwrap_or(0);
    let jobs = runs.iter().map(|run| {
        run.with(|run| {
            let inputs = json!({ "inputs": run.inputs, "seed": run.spec.seed });
            side_by_side::Plan::new(inputs, move |stop| {
                let progress = Rc::new(Progress::new(&run.spec, ProgressForm::None));
                let done = simulate(run, &progress, stop).map_err(|error| format!("{error:#}"))?;
                let (json, text) = done.texts().map_err(|error| error.to_string())?;
                Ok(side_by_side::Done {
                    files: files_of(&run.spec, &done.report, &json, &text),
                    trouble: trouble(&done.report),
                })
            })
        })
    });
    let how = side_by_side::How {
        title: "Jobs side by side",
        threads: arguments.threads,
        bytes_per_run: need,
        for_less_memory: FOR_LESS_MEMORY,
        results: &arguments.results,
    };
    side_by_side::run(jobs.collect(), &how)
}

/// The report and the result of a run.
struct Done {
    report: JobReport,
    result: DeviceResult,
}

impl Done {
    /// Returns the result as JSON and as text.
    fn texts(&self) -> serde_json::Result<(String, String)> {
        Ok((serde_json::to_string_pretty(&self.result)?, table::render(&self.result)))
    }
}

/// Returns the failure of a job, if it failed.
fn trouble(report: &JobReport) -> Option<String> {
    let mismatches = report.checks.mismatches;
    if mismatches > 0 {
        return Some(format!("{mismatches} reads returned wrong data: this is a bug"));
    }
    report.first_error.as_ref().map(|error| format!("the job ended early: {error}"))
}

/// Prints the result, then writes its files, so that a full disk does not lose the result.
fn show(results: &ResultArguments, run: &Planned, done: &Done) -> anyhow::Result<()> {
    let (json, text) = done.texts()?;
    results.show(&json, &text, || files_of(&run.spec, &done.report, &json, &text))
}

/// Runs the job and measures its wall time and memory.
fn simulate(run: &Planned, progress: &Rc<Progress>, stop: &Stop) -> anyhow::Result<Done> {
    let spec = &run.spec;
    let observer = Rc::clone(progress);
    let report = blockbench::run_until(spec, stop, move |share| observer.tell(share));
    let report =
        report.with_context(|| format!("job {} on {}", spec.job.name, spec.profile.name))?;
    let (setup, job) = *progress.took.borrow();
    let mut result = DeviceResult::new(spec, &report);
    result.inputs = Some(run.inputs.clone());
    result.host = Some(DeviceHost {
        setup_wall_seconds: setup.as_secs_f64(),
        wall_seconds: job.as_secs_f64(),
        simulated_ops_per_wall_second: report.operations() as f64 / job.as_secs_f64().max(1e-9),
        peak_rss_bytes: peak_rss_bytes(),
    });
    Ok(Done { report, result })
}

/// Returns the result as files: names and contents.
fn files_of(
    spec: &DeviceSpec,
    report: &JobReport,
    json: &str,
    text: &str,
) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("result.json", format!("{json}\n")),
        ("result.txt", format!("{text}\n")),
        ("latency.csv", picture::latency_csv(report)),
        ("timeline.csv", picture::timeline_csv(report)),
        ("latency.svg", picture::latency_svg(spec, report)),
        ("timeline.svg", picture::timeline_svg(spec, report)),
    ];
    files.extend(picture::samples_csv(report).map(|csv| ("samples.csv", csv)));
    files
}
