//! `levelhead put`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;

use super::durability::DurabilityArgument;
use super::encoding::EncodingArguments;
use super::load::check_key;
use super::open::{NewStore, Place, say_if_served};

#[derive(Args)]
pub(crate) struct PutArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// File with the value, byte for byte; `-` is standard input
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    /// Key, 1 to 255 bytes
    key: OsString,
    /// Value, at most 2 MiB (2097152 bytes)
    ///
    /// Stores with files of 4 GiB or less take less: 229376 bytes in files of 64 MiB.
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    value: Option<OsString>,
}

pub(crate) fn put(arguments: &PutArguments) -> anyhow::Result<ExitCode> {
    let encoding = arguments.encoding.encoding();
    let key = encoding.typed(&arguments.key)?;
    let value = match (&arguments.value_file, &arguments.value) {
        (Some(file), _) => read(file)?,
        (None, Some(value)) => encoding.typed(value)?,
        (None, None) => unreachable!("one of them is required"),
    };
    // A key that the store would refuse must not create a store.
    check_key(&key).map_err(|what| anyhow!(what))?;
    let store = arguments.place.open_or_make(&arguments.new)?;
    say_if_served(&store, "clients do not see this pair")?;
    // This is the only write of this process, so it has to be durable when the command ends.
    store.put_with(&key, &value, DurabilityArgument::Each.into())?;
    store.close()?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut value = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut value).context("cannot read standard input")?;
    } else {
        value = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    Ok(value)
}
