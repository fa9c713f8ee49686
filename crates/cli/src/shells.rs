//! `levelhead completions` and `levelhead man`, both generated from the definition of the
//! arguments.

use std::process::ExitCode;

use anyhow::anyhow;
use catalogue::did_you_mean;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

/// The manual section of user commands.
const SECTION: &str = "1";

#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete for
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArguments {
    /// Command to document [default: the program]
    command: Option<String>,
}

pub(crate) fn completions(
    mut program: Command,
    arguments: &CompletionsArguments,
) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    print(&script)
}

pub(crate) fn man(mut program: Command, arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    program.build();
    let subject = match &arguments.command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let names = program.get_subcommands().map(Command::get_name);
            anyhow!("there is no command `{name}`{}", did_you_mean(name, names))
        })?,
    };
    let mut page = Vec::new();
    let source = concat!("levelhead ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(subject).section(SECTION).source(source).render(&mut page)?;
    print(&page)
}

fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    output::print(String::from_utf8_lossy(text).trim_end()).map(|()| ExitCode::SUCCESS)
}
