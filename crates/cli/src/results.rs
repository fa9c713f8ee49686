//! Where the result of a run goes, and how far the work is shown: the same for all commands that measure.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::progress::ProgressForm;
use crate::sweep::Shard;
use crate::{files, output};

#[derive(Args, Clone)]
pub(crate) struct ResultArguments {
    /// Directory for the result as JSON, text, CSV and pictures; of several runs, one in it for each, and a page
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Write over results that are in that directory
    #[arg(long)]
    pub(crate) force: bool,
    /// Go on with a sweep that was stopped: take the runs that have ended from the directory of
    /// --out, and run the others
    #[arg(long, requires = "out", conflicts_with = "force")]
    pub(crate) resume: bool,
    /// Run a part of a sweep: with 1/4 every fourth combination, from the first on. The parts may
    /// go into one directory, also at the same time; the last to end, or --resume, makes the page
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, conflicts_with = "force")]
    pub(crate) shard: Option<Shard>,
    /// How it is shown how far the work is
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressForm,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ResultArguments {
    /// Whether the result of a single run can be written, asked before the work.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.resume || self.shard.is_some() {
            bail!(
                "--resume and --shard are for several runs, and these flags make one: give one of \
                 them several values"
            );
        }
        self.out.iter().try_for_each(|directory| files::check_results(directory, self.force))
    }

    /// Prints the result, then writes its files: a directory that is full does not cost the result.
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
