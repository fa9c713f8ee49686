//! `levelhead verify`.

use std::process::ExitCode;

use clap::Args;

use super::findings::{Work, end};
use super::open::{Does, Place};

#[derive(Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    place: Place,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(arguments: &VerifyArguments) -> ExitCode {
    let work = Work::begin("verify");
    let outcome =
        arguments.place.open(Does::Read).and_then(|store| Ok(store.verify(work.verified())?));
    end(&work, outcome, arguments.json, "")
}
