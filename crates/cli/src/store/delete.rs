//! `levelhead delete`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use super::durability::DurabilityArgument;
use super::encoding::EncodingArguments;
use super::open::{Does, Place, say_if_served};

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

pub(crate) fn delete(arguments: &DeleteArguments) -> anyhow::Result<ExitCode> {
    let encoding = arguments.encoding.encoding();
    let keys: anyhow::Result<Vec<_>> =
        arguments.keys.iter().map(|key| encoding.typed(key)).collect();
    let keys = keys?;
    let store = arguments.place.open(Does::Write)?;
    say_if_served(&store, "what clients put under these keys stays")?;
    for key in keys {
        store.delete_with(&key, DurabilityArgument::None.into())?;
    }
    store.close()?;
    Ok(ExitCode::SUCCESS)
}
