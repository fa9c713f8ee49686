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
    /// File that holds the value, byte for byte; `-` is standard input
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    /// The key, of 1 to 255 bytes
    key: OsString,
    /// Its value, of 2 MiB (2097152 bytes) at most; less in files of 4 GiB and less: 229376 bytes in those of 64 MiB
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    value: Option<OsString>,
}

#[derive(Args)]
pub(crate) struct GetArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Print the value and no line end behind it
    #[arg(short, long)]
    no_newline: bool,
    /// The key
    key: OsString,
}

#[derive(Args)]
pub(crate) struct DeleteArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// The keys; one that is not there is no error
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
}

/// Exit codes of commands on a store, as `grep` has them: what is asked for is not there, and it cannot be done.
const NO_SUCH_KEY: u8 = 1;
const TROUBLE: u8 = 2;

fn bytes(encoding: Encoding, typed: &OsString) -> anyhow::Result<Vec<u8>> {
    encoding.decode(typed.as_bytes()).map_err(|error| anyhow!(error))
}

/// Says what becomes of keys in a store of `levelhead serve`, which has its own form of them.
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
    // No store is made for a key that it would refuse.
    check_key(&key).map_err(|what| anyhow!(what))?;
    let store = arguments.place.open_or_make(&arguments.new)?;
    say_if_served(&store, "clients do not see this pair")?;
    // It is the only write of this process: it is durable when the command ends.
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

/// A missing key is told by the exit code; so that scripts can tell it from trouble, that has a code of its own.
pub(crate) fn get(arguments: &GetArguments) -> ExitCode {
    or_trouble(
        show(arguments).map(
            |is_there| {
                if is_there { ExitCode::SUCCESS } else { ExitCode::from(NO_SUCH_KEY) }
            },
        ),
    )
}

/// Says why a command could not be carried out, with the exit code of that.
pub(crate) fn or_trouble(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        output::say(&output::why(&error));
        ExitCode::from(TROUBLE)
    })
}

/// Prints the value, if there is one.
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
