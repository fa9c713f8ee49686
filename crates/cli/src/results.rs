//! Flags for the output of a run, the same for all commands that measure.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::progress::ProgressForm;
use crate::sweep::Shard;
use crate::{files, output};

#[derive(Args, Clone)]
pub(crate) struct ResultArguments {
    /// Directory for the result as JSON, text, CSV and pictures
    ///
    /// Several runs get a subdirectory each, and one page for all.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite results in the --out directory
    #[arg(long)]
    pub(crate) force: bool,
    /// Continue an interrupted sweep: keep the finished runs of the --out directory and run the
    /// others
    #[arg(long, requires = "out", conflicts_with = "force")]
    pub(crate) resume: bool,
    /// Run one part of a sweep: 1/4 is every fourth combination, starting with the first
    ///
    /// The parts may share one --out directory, even at the same time. The last part to finish, or
    /// --resume, writes the page.
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, conflicts_with = "force")]
    pub(crate) shard: Option<Shard>,
    /// Form of the progress report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressForm,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ResultArguments {
    /// Checks, before the work, that the result of a single run can be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.resume || self.shard.is_some() {
            bail!(
                "--resume and --shard are for several runs, and these flags make one: give one of \
                 them several values"
            );
        }
        self.out.iter().try_for_each(|directory| files::check_results(directory, self.force))
    }

    /// Prints the result, then writes its files, so that a full disk does not lose the result.
    pub(crate) fn show<F: IntoIterator<Item = (&'static str, String)>>(
        &self,
        json: &str,
        text: &str,
        files: impl FnOnce() -> F,
    ) -> anyhow::Result<()> {
        let printed = output::print(if self.json { json } else { text });
        if let Some(directory) = &self.out {
            files::write_results(directory, self.force, files())?;
        }
        printed
    }
}
