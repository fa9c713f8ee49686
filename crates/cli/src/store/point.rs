//! `levelhead put`, `get` and `delete`.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use levelhead::Store;

use super::encoding::{Encoding, EncodingArguments};
use super::load::check_key;
use super::place::{Does, DurabilityArgument, NewStore, Place};
use crate::output;

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

#[derive(Args)]
pub(crate) struct GetArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Print the value without a newline after it
    #[arg(short, long)]
    no_newline: bool,
    /// Key
    key: OsString,
}

#[derive(Args)]
pub(crate) struct DeleteArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Keys; a missing key is no error
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
}

/// Exit codes of commands on a store, as for `grep`: 1 if the key is missing, 2 on an error.
const NO_SUCH_KEY: u8 = 1;
const TROUBLE: u8 = 2;

fn bytes(encoding: Encoding, typed: &OsString) -> anyhow::Result<Vec<u8>> {
    encoding.decode(typed.as_bytes()).map_err(|error| anyhow!(error))
}

/// Warns that a store of `levelhead serve` encodes its keys differently. `so` is the consequence.
fn say_if_served(store: &Store, so: &str) -> anyhow::Result<()> {
    if server::is_served(store)? {
        output::say(&format!(
            "this store is served to clients of Redis, and its keys have a byte in front that says what they are (docs/serve.md): {so}"
        ));
    }
    Ok(())
}

pub(crate) fn put(arguments: &PutArguments) -> anyhow::Result<ExitCode> {
    let encoding = arguments.encoding.encoding();
    let key = bytes(encoding, &arguments.key)?;
    let value = match (&arguments.value_file, &arguments.value) {
        (Some(file), _) => read(file)?,
        (None, Some(value)) => bytes(encoding, value)?,
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

/// Reports a missing key with an exit code of its own, so that scripts can distinguish it from an
/// error.
pub(crate) fn get(arguments: &GetArguments) -> ExitCode {
    or_trouble(
        show(arguments).map(
            |is_there| {
                if is_there { ExitCode::SUCCESS } else { ExitCode::from(NO_SUCH_KEY) }
            },
        ),
    )
}

/// Prints the error of a failed command and returns its exit code.
pub(crate) fn or_trouble(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        output::say(&output::why(&error));
        ExitCode::from(TROUBLE)
    })
}

/// Prints the value. Returns whether the key exists.
fn show(arguments: &GetArguments) -> anyhow::Result<bool> {
    let encoding = arguments.encoding.encoding();
    let key = bytes(encoding, &arguments.key)?;
    let store = arguments.place.open(Does::Read)?;
    let Some(value) = store.get(&key)? else {
        say_if_served(&store, "what clients put under this key is not found so")?;
        return Ok(false);
    };
    let mut shown = encoding.encode(&value).into_owned();
    if !arguments.no_newline {
        shown.push(b'\n');
    }
    let mut out = io::stdout().lock();
    super::output::unless_nobody_reads(out.write_all(&shown).and_then(|()| out.flush()))?;
    Ok(true)
}

pub(crate) fn delete(arguments: &DeleteArguments) -> anyhow::Result<ExitCode> {
    let encoding = arguments.encoding.encoding();
    let keys: anyhow::Result<Vec<_>> =
        arguments.keys.iter().map(|key| bytes(encoding, key)).collect();
    let keys = keys?;
    let store = arguments.place.open(Does::Write)?;
    say_if_served(&store, "what clients put under these keys stays")?;
    for key in keys {
        store.delete_with(&key, DurabilityArgument::None.into())?;
    }
    store.close()?;
    Ok(ExitCode::SUCCESS)
}
