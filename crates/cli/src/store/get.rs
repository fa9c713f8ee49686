//! `levelhead get`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use super::encoding::EncodingArguments;
use super::exit::or_trouble;
use super::open::{Does, Place, say_if_served};
use super::output::unless_nobody_reads;

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

/// The exit code for a missing key, as for `grep`.
const NO_SUCH_KEY: u8 = 1;

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

/// Prints the value. Returns whether the key exists.
fn show(arguments: &GetArguments) -> anyhow::Result<bool> {
    let encoding = arguments.encoding.encoding();
    let key = encoding.typed(&arguments.key)?;
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
    unless_nobody_reads(out.write_all(&shown).and_then(|()| out.flush()))?;
    Ok(true)
}
