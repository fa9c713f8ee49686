//! `--save-drive` and `--drive`: files of loaded drives.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use anyhow::{Context, anyhow, bail};
use kvbench::{BenchError, BenchOutcome, BenchSpec, KeptDrive, Observer, Origin};
use workload::Stop;

use super::arguments::BenchArguments;
use super::spec;
use crate::{command_line, files, output};

/// The source of a run's drive.
pub(super) enum Drive {
    /// The drive is loaded for this run.
    Fresh,
    /// The drive is loaded for this run and saved to this file.
    Keep(PathBuf, Origin),
    /// The drive is read from this file.
    Kept(PathBuf),
}

/// Completes the arguments of a run on a kept drive with the values that the drive was made with.
pub(super) fn on_kept(mut arguments: BenchArguments) -> anyhow::Result<BenchArguments> {
    let Some(file) = &arguments.drive else { return Ok(arguments) };
    let kept = open(file).map_err(|words| anyhow!(words))?;
    let Origin { design, device, records, seed, ages, .. } = kept.origin().clone();
    let or = |given: &mut Vec<String>, kept| {
        if given.is_empty() {
            given.push(kept);
        }
    };
    or(&mut arguments.design, design);
    or(&mut arguments.device, device);
    if arguments.seed.is_empty() {
        arguments.seed.push(seed);
    }
    arguments.records = vec![records];
    arguments.age = ages;
    Ok(arguments)
}

/// Checks, before any work, that the drive can be saved to its file or read from it.
pub(super) fn drive(arguments: &BenchArguments, spec: &BenchSpec) -> anyhow::Result<Drive> {
    if let Some(file) = &arguments.drive {
        kvbench::check_keeping(spec)?;
        return Ok(Drive::Kept(file.clone()));
    }
    let Some(file) = &arguments.save_drive else { return Ok(Drive::Fresh) };
    kvbench::check_keeping(spec)?;
    if file.exists() && !arguments.results.force {
        bail!(
            "{} is there already: give another file, or --force to write over it",
            file.display()
        );
    }
    if file.exists() && !file.is_file() {
        bail!(
            "{} is there and is no file, so that no drive can be kept in its place",
            file.display()
        );
    }
    files::check(file)?;
    let (design, device) = spec::design_and_device(arguments, spec);
    let origin = Origin {
        command: command_line::command(),
        design,
        device,
        records: spec.workload.record_count,
        seed: spec.seed,
        ages: spec.ages,
    };
    Ok(Drive::Keep(file.clone(), origin))
}

/// Runs a bench on its drive.
pub(super) fn run(
    drive: &Drive,
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    match drive {
        Drive::Fresh => kvbench::run(spec, observer, stop),
        Drive::Kept(file) => {
            let kept = open(file).map_err(BenchError::Kept)?;
            kvbench::run_on_kept(spec, observer, stop, kept).map_err(|error| with_file(error, file))
        }
        Drive::Keep(file, origin) => keep(file, origin, spec, observer, stop),
    }
}

fn keep(
    file: &Path,
    origin: &Origin,
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    let part = files::part_of(file);
    let cannot =
        |error: io::Error| BenchError::Kept(format!("cannot write {}: {error}", part.display()));
    let mut output = File::create(&part).map_err(cannot)?;
    let mut whole = || {
        fs::rename(&part, file)?;
        let bytes = fs::metadata(file)?.len();
        output::say(&format!(
            "kept the drive in {}, {}",
            file.display(),
            report::units::bytes_text(bytes)
        ));
        Ok(())
    };
    let outcome = kvbench::run_and_keep(spec, observer, stop, origin, &mut output, &mut whole)
        .map_err(|error| with_file(error, file));
    // A part that still exists was not renamed: the drive was not saved.
    let _ = fs::remove_file(&part);
    outcome
}

/// Adds the file's name to an error of a kept drive.
fn with_file(error: BenchError, file: &Path) -> BenchError {
    match error {
        BenchError::Kept(words) => BenchError::Kept(format!("{}: {words}", file.display())),
        other => other,
    }
}

fn open(file: &Path) -> Result<KeptDrive<io::BufReader<File>>, String> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()));
    let opened = opened.map_err(|error| format!("{error:#}"))?;
    KeptDrive::begin(opened).map_err(|words| format!("{}: {words}", file.display()))
}
