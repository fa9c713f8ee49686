//! `levelhead backup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use levelhead::Error;

use super::findings::{Work, end};
use super::open::{Does, NewStore, Place, check_is_no_file};
use crate::output;

#[derive(Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    /// Directory for the copy; must not contain a store
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn backup(arguments: &BackupArguments) -> ExitCode {
    let work = Work::begin("backup");
    let options = arguments.place.options_of_new(&arguments.new);
    let outcome = check_target(&arguments.place, &arguments.to).and_then(|()| {
        let store = arguments.place.open(Does::Read)?;
        let copied = store.checkpoint(&arguments.to, &options, work.progress());
        copied.map_err(damage_ends_it)
    });
    let outcome = match outcome {
        Err(error) if error.downcast_ref::<Refused>().is_some() => {
            work.bar.finish_and_clear();
            output::say(&output::why(&error));
            return ExitCode::FAILURE;
        }
        other => other,
    };
    end(&work, outcome, arguments.json, &format!("copied to {}", arguments.to.display()))
}

/// Refuses a target within the store's own directories: the copy would be lost together with them.
fn check_target(place: &Place, to: &Path) -> anyhow::Result<()> {
    check_is_no_file(to)?;
    // The part of the path that exists.
    let parents = to.ancestors().skip(1);
    let Some(parent) = parents.into_iter().find_map(|path| path.canonicalize().ok()) else {
        return Ok(());
    };
    let own = place.directories().iter().filter_map(|path| path.canonicalize().ok());
    if own.into_iter().any(|own| parent.starts_with(own)) {
        bail!("{} is within the store: name a directory elsewhere", to.display());
    }
    Ok(())
}

/// An error: a store cannot be copied because a part of it is damaged.
#[derive(Debug)]
struct Refused(Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = &self.0;
        write!(
            f,
            "{error}; a backup has all pairs or is none: delete what was begun, and see `levelhead verify` and `repair`"
        )
    }
}

impl std::error::Error for Refused {}

fn damage_ends_it(error: Error) -> anyhow::Error {
    match error {
        Error::Damaged { .. } => Refused(error).into(),
        other => other.into(),
    }
}
