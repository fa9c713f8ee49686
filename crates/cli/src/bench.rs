//! `levelhead bench`.

mod arguments;
mod kept;
mod on_files;
mod outcome;
mod progress;
mod spec;
mod trace;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::bail;
use blockbench::inputs::Inputs;
use kvbench::{BenchError, BenchOutcome, BenchSpec, Observer};
use report::compare::Lack;
use serde_json::json;
use workload::Stop;

use crate::progress::{ProgressForm, time_text};
use crate::results::ResultArguments;
use crate::sweep::Combination;
use crate::{interrupt, memory, output, side_by_side, sweep};

pub(crate) use arguments::BenchArguments;
use kept::Drive;
use outcome::{end, files_of, texts, trouble};
use progress::Progress;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let cells = spec::runs(arguments)?;
    if !arguments.store.is_empty() {
        let [cell] = &cells[..] else {
            bail!(
                "a store on files runs in real time, one run at a time: give each flag one value"
            );
        };
        return on_files::run(&cell.arguments);
    }
    if arguments.save_drive.is_some() && cells.len() > 1 {
        bail!("--save-drive keeps the drive of one run: give each flag one value");
    }
    let mut warned = BTreeSet::new();
    let runs = sweep::planned(cells, |cell| planned(&cell.arguments, &mut warned))?;
    match &runs[..] {
        [Combination { plan: Ok(run), .. }] => one(&arguments.results, run),
        runs => several(arguments, runs),
    }
}

/// A run that is ready to start.
struct Planned {
    spec: BenchSpec,
    inputs: Inputs,
    drive: Drive,
}

/// Checks, before the first run starts, that a run can complete. Warnings in `warned` are not
/// repeated.
fn planned(
    arguments: &BenchArguments,
    warned: &mut BTreeSet<String>,
) -> anyhow::Result<anyhow::Result<Planned>> {
    let arguments = kept::on_kept(arguments.clone())?;
    let (spec, inputs) = spec::of(&arguments)?;
    if let Err(refusal) = kvbench::check(&spec) {
        return Ok(Err(refusal.into()));
    }
    let drive = kept::drive(&arguments, &spec)?;
    warn(&spec, warned);
    Ok(Ok(Planned { spec, inputs, drive }))
}

/// Prints the warnings of a run that are not in `warned` yet.
fn warn(spec: &BenchSpec, warned: &mut BTreeSet<String>) {
    let warnings = spec.workload.warnings.iter().cloned().chain(kvbench::fit::warnings(spec));
    for warning in warnings.filter(|warning| warned.insert(warning.clone())) {
        output::say(&warning);
    }
}

/// Runs the bench of an earlier result again.
pub(crate) fn again(
    spec: BenchSpec,
    inputs: Inputs,
    results: &ResultArguments,
) -> anyhow::Result<ExitCode> {
    warn(&spec, &mut BTreeSet::new());
    one(results, &Planned { spec, inputs, drive: Drive::Fresh })
}

/// Advice for a bench that needs more memory than is available.
const FOR_LESS_MEMORY: &str = "load fewer pairs (--records)";

/// Runs a single bench, with a progress bar and the result as text.
fn one(results: &ResultArguments, run: &Planned) -> anyhow::Result<ExitCode> {
    results.check()?;
    memory::check(kvbench::fit::memory_bytes(&run.spec), FOR_LESS_MEMORY)?;
    let stop = interrupt::stop_on_interrupt();
    let progress = Rc::new(RefCell::new(Progress::new(results.progress)));
    let outcome = bench(run, &progress, &stop);
    let ages = outcome.is_ok() && matches!(run.drive, Drive::Fresh);
    if ages && let Some(hint) = ageing_hint(progress.borrow().took("age")) {
        output::say(&hint);
    }
    match outcome {
        Err(error @ BenchError::Interrupted { .. }) => {
            output::say(&error.to_string());
            Ok(interrupt::exit_code())
        }
        outcome => end(results, &outcome?),
    }
}

/// Runs several benches side by side.
fn several(arguments: &BenchArguments, runs: &[Combination<Planned>]) -> anyhow::Result<ExitCode> {
    let plans = runs.iter().filter_map(|run| run.plan.as_ref().ok());
    let need = plans.map(|run| kvbench::fit::memory_bytes(&run.spec)).max().unwrap_or(0);
    let jobs = runs.iter().map(|run| {
        run.with(|run| {
            let slice = arguments.slice.map(|slice| slice.as_secs_f64());
            let inputs = json!({ "inputs": run.inputs, "seed": run.spec.seed, "slice": slice });
            side_by_side::Plan::new(inputs, move |stop| {
                let progress = Rc::new(RefCell::new(Progress::new(ProgressForm::None)));
                let outcome = bench(run, &progress, stop).map_err(|error| nothing(&error))?;
                let (json, text) = texts(&outcome).map_err(|error| error.to_string())?;
                Ok(side_by_side::Done {
                    files: files_of(&outcome, &json, &text).into(),
                    trouble: trouble(&outcome),
                })
            })
        })
    });
    let how = side_by_side::How {
        title: "Benches side by side",
        threads: arguments.threads,
        bytes_per_run: need,
        for_less_memory: FOR_LESS_MEMORY,
        results: &arguments.results,
    };
    side_by_side::run(jobs.collect(), &how)
}

fn nothing(error: &BenchError) -> side_by_side::Nothing {
    let lack = if error.is_refusal() { Lack::Refused } else { Lack::Failed };
    side_by_side::Nothing { lack, reason: error.to_string() }
}

/// Runs a bench and adds its inputs and host measurements to the result.
fn bench(
    run: &Planned,
    progress: &Rc<RefCell<Progress>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    let observer: Rc<RefCell<dyn Observer>> = progress.clone();
    let mut outcome = kept::run(&run.drive, &run.spec, &observer, stop)?;
    outcome.result.inputs = Some(run.inputs.clone());
    outcome.result.host = Some(progress.borrow().host(&outcome));
    Ok(outcome)
}

/// The ageing time from which on the hint about --save-drive is printed.
const LONG_AGEING: Duration = Duration::from_mins(1);

/// Returns a hint on how to age the drive only once, if ageing took long.
fn ageing_hint(took: Duration) -> Option<String> {
    (took >= LONG_AGEING).then(|| {
        let took = time_text(took);
        format!(
            "ageing took {took}: --save-drive FILE keeps the aged drive, and --drive FILE begins with it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_ageing_says_how_to_have_it_but_once() {
        let hint = ageing_hint(Duration::from_secs(225)).expect("it took long");
        assert!(hint.contains("--save-drive FILE") && hint.contains("--drive FILE"), "{hint}");
        assert_eq!(ageing_hint(Duration::from_secs(5)), None);
    }
}
