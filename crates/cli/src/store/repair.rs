//! `levelhead repair`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use levelhead::{Error, Store};

use super::findings::{Work, end};
use super::open::{NewStore, Place, check_is_no_file};

#[derive(Args)]
pub(crate) struct RepairArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    /// Directory for the new store; must not contain a store
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn repair(arguments: &RepairArguments) -> ExitCode {
    let work = Work::begin("repair");
    let (directories, options) =
        (arguments.place.directories(), arguments.place.options_of_new(&arguments.new));
    let outcome = check_is_no_file(&arguments.out).and_then(|()| {
        let repaired = levelhead::repair(directories, &arguments.out, &options, work.progress());
        repaired.map_err(|error| match error {
            Error::Missing(_) if matches!(Store::is_in(directories), Ok(false)) => {
                anyhow!("{} has no store, and nothing that is left of one", arguments.place)
            }
            // Formatted as text, because the advice of `error` to run a repair would be wrong here.
            other => anyhow!("{other}"),
        })
    });
    end(&work, outcome, arguments.json, &format!("saved to {}", arguments.out.display()))
}
