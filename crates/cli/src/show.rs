//! `levelhead show`: prints or writes built-in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use catalogue::did_you_mean;
use clap::{Args, ValueEnum};

use crate::{files, names, output};

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// Name of a built-in file (see `levelhead list`)
    #[arg(required_unless_present = "out")]
    name: Option<String>,
    /// Kind of the file, if several kinds have this name
    #[arg(long)]
    kind: Option<Kind>,
    /// Write the file to this directory; without a name all files, in a subdirectory per kind
    #[arg(long)]
    out: Option<PathBuf>,
    /// Overwrite files that were changed
    #[arg(long, requires = "out")]
    force: bool,
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
    let ShowArguments { name, kind, out, force } = arguments;
    let all = names::built_in();
    let is_wanted = |of: &str| kind.is_none_or(|kind| kind.name() == of);
    let of_kind = || all.iter().filter(|(of, ..)| is_wanted(of));
    let Some(name) = name else {
        let out = out.as_deref().expect("one of the two is there");
        return write(out, of_kind(), *force);
    };
    let found: Vec<_> = of_kind().filter(|(_, other, _)| other == name).collect();
    match found[..] {
        [file] => match out {
            None => output::print(file.2.trim_end()).map(|()| ExitCode::SUCCESS),
            Some(out) => write(out, [file].into_iter(), *force),
        },
        [] => {
            let hint = did_you_mean(name, of_kind().map(|(_, name, _)| *name));
            bail!("there is no built-in file `{name}`{hint}: `levelhead list` has all names");
        }
        ref several => {
            let kinds: Vec<&str> = several.iter().map(|(kind, ..)| *kind).collect();
            bail!("{name} is a {}: say which with --kind", kinds.join(" and a "));
        }
    }
}

/// Returns an error if `file` exists with another text.
fn check_unchanged(file: &Path, text: &str) -> anyhow::Result<()> {
    if !file.exists() || fs::read(file).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    bail!(
        "{} is there, and is not as it is built in: give another directory, or --force to write over it",
        file.display()
    );
}

/// Writes files as `KIND/NAME.toml`, workloads as `.properties`. Writes none of them if a file
/// exists with another text and `may_write_over` is false.
fn write<'a>(
    out: &Path,
    built_in: impl Iterator<Item = &'a (&'static str, &'static str, &'static str)>,
    may_write_over: bool,
) -> anyhow::Result<ExitCode> {
    let files: Vec<(PathBuf, &str)> = built_in
        .map(|(kind, name, text)| {
            let ending = if *kind == "workload" { "properties" } else { "toml" };
            (PathBuf::from(kind).join(format!("{name}.{ending}")), *text)
        })
        .collect();
    if !may_write_over {
        files.iter().try_for_each(|(file, text)| check_unchanged(&out.join(file), text))?;
    }
    let count = files.len();
    for (file, text) in files {
        files::write(
            &out.join(file.parent().expect("its kind")),
            [(file.file_name().expect("its name"), text.to_owned())],
        )?;
    }
    output::say(&format!("wrote {count} files into {}", out.display()));
    Ok(ExitCode::SUCCESS)
}
