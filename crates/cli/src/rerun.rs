//! `levelhead rerun`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use kvbench::rerun;
use kvbench::rerun::{Rerun, Run};

use crate::results::ResultArguments;
use crate::{bench, compare, device, output};

#[derive(Args)]
pub(crate) struct RerunArguments {
    /// A result.json of `levelhead bench` or `levelhead device`
    result: PathBuf,
    #[command(flatten)]
    results: ResultArguments,
}

pub(crate) fn run(arguments: &RerunArguments) -> anyhow::Result<ExitCode> {
    let RerunArguments { result, results } = arguments;
    let place = || result.display().to_string();
    let text = compare::read(result)?;
    let json = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", place()))?;
    let of_result = rerun::of_result(&json);
    let Rerun { run, inputs, version } =
        of_result.map_err(|words| anyhow!("{} cannot be run again: {words}", place()))?;
    if version != env!("CARGO_PKG_VERSION") {
        output::say(&format!("{} is of version {version}: what comes out may differ", place()));
    }
    match run {
        Run::Bench(spec) => bench::again(*spec, inputs, results),
        Run::Device(spec) => device::again(*spec, inputs, results),
    }
}
