//! `levelhead bench --store`: on a store on files, in real time.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use kvbench::BenchError;
use levelhead::{Options, Store, Windows};
use stacks::host::WindowPolicy;

use super::arguments::BenchArguments;
use super::outcome::end;
use super::progress::Progress;
use super::spec;
use crate::host::{Drives, cores};
use crate::store::{DurabilityArgument, check_directories, say_if_refused, windows_text};
use crate::values::BenchWindows;
use crate::{interrupt, output};

pub(super) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let mut options = options(arguments)?;
    let (spec, inputs) = spec::live_spec(arguments, &options, cores())?;
    kvbench::live::check(&spec)?;
    for warning in &spec.workload.warnings {
        output::say(warning);
    }
    let (key_bytes, value_bytes) = (spec.workload.keys.key_bytes(), &spec.workload.values);
    options.expected_key_bytes = key_bytes as u32;
    options.expected_value_bytes = value_bytes.typical_bytes();
    check_place(&arguments.store)?;
    arguments.results.check()?;
    let store = Store::open_over(&arguments.store, &options)?;
    say_if_refused(&store, options.windows);
    let mut progress = Progress::new(arguments.results.progress);
    let stop = interrupt::stop_on_interrupt();
    let outcome = kvbench::live::run(&spec, &store, &Drives, &mut progress, &stop);
    output::say(&format!("the store stays in {}", spec.place));
    if let Err(error @ BenchError::Interrupted { .. }) = &outcome {
        output::say(&error.to_string());
        return Ok(interrupt::exit_code());
    }
    let mut outcome = outcome?;
    outcome.result.inputs = Some(inputs);
    outcome.result.host = Some(progress.host(&outcome));
    let ended = end(&arguments.results, &outcome)?;
    if let Some(windows) = store.statistics().windows {
        output::say(&format!("windows, load and settling included: {}", windows_text(&windows)));
    }
    store.close()?;
    Ok(ended)
}

fn options(arguments: &BenchArguments) -> anyhow::Result<Options> {
    let usual = Options::default();
    let durability = arguments.durability.unwrap_or(DurabilityArgument::Group);
    let windows = match arguments.windows.first() {
        None | Some(BenchWindows::Policy(WindowPolicy::Off)) => Windows::Off,
        Some(BenchWindows::Policy(WindowPolicy::Rails)) => Windows::Rails,
        Some(BenchWindows::Plm) => Windows::Plm,
        Some(BenchWindows::Policy(other)) => bail!(
            "--windows {} is for simulated drives; a store on files takes off, rails or plm",
            other.name()
        ),
    };
    if arguments.plm_cache.is_some() && windows == Windows::Off {
        bail!("--plm-cache holds what waits for windows: take --windows rails or plm");
    }
    Ok(Options {
        create_if_missing: true,
        windows,
        plm_cache_bytes: arguments.plm_cache.unwrap_or(usual.plm_cache_bytes),
        capacity_bytes: arguments.capacity.unwrap_or(usual.capacity_bytes),
        memory_bytes: arguments.memory.unwrap_or(usual.memory_bytes),
        value_cache_bytes: arguments.value_cache.unwrap_or(usual.value_cache_bytes),
        durability: durability.into(),
        ..usual
    })
}

/// Checks that the directories are empty. Reads are verified against the run's own writes, so no
/// earlier data may exist; and files of others must not be touched.
fn check_place(directories: &[PathBuf]) -> anyhow::Result<()> {
    check_directories(directories)?;
    for directory in directories {
        let is_used = std::fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some());
        if is_used {
            bail!(
                "{} has something in it: a bench makes a store of its own, in a directory that is empty or not there yet",
                directory.display()
            );
        }
    }
    Ok(())
}
