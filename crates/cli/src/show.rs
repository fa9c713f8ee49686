//! `levelhead show`: a built-in file, to copy and change.

use std::process::ExitCode;

use anyhow::bail;
use catalogue::did_you_mean;
use clap::{Args, ValueEnum};

use crate::{names, output};

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// A name that `levelhead list` lists
    name: String,
    /// What is meant, where a name has several meanings
    #[arg(long)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Design,
    Device,
    Host,
    Configuration,
    Workload,
    Job,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Device => "device",
            Self::Host => "host",
            Self::Configuration => "configuration",
            Self::Workload => "workload",
            Self::Job => "job",
        }
    }
}

pub(crate) fn run(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let ShowArguments { name, kind } = arguments;
    let all = names::built_in();
    let is_wanted = |of: &str| kind.is_none_or(|kind| kind.name() == of);
    let of_kind = || all.iter().filter(|(of, ..)| is_wanted(of));
    let found: Vec<_> = of_kind().filter(|(_, other, _)| other == name).collect();
    match found[..] {
        [(_, _, text)] => output::print(text.trim_end())?,
        [] => {
            let hint = did_you_mean(name, of_kind().map(|(_, name, _)| *name));
            bail!("there is no built-in file `{name}`{hint}: `levelhead list` has all names");
        }
        ref several => {
            let kinds: Vec<&str> = several.iter().map(|(kind, ..)| *kind).collect();
            bail!("{name} is a {}: say which with --kind", kinds.join(" and a "));
        }
    }
    Ok(ExitCode::SUCCESS)
}
