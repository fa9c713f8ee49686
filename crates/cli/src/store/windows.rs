//! The windows of a store over several directories: flags, and a note if there are none.

use clap::Args;
use levelhead::{Options, Store, Windows};

use crate::{output, values};

/// Flags of the windows of a store over several directories.
#[derive(Args)]
pub(crate) struct WindowsArguments {
    /// Keep reads fast during background writes of a store over three or more directories
    ///
    /// The store writes in the background to one directory at a time. Data in that directory is
    /// meanwhile rebuilt from the others.
    #[arg(long, value_enum, default_value = "off")]
    pub(super) windows: WindowsArgument,
    /// Memory for writes that wait for the turn of their directory (with --windows)
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "128MiB",
        value_parser = values::bytes(1..=1 << 40)
    )]
    plm_cache: u64,
}

/// The component that keeps the windows of a store's directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum WindowsArgument {
    /// No windows
    Off,
    /// By the store, on any directories
    Rails,
    /// By the drives, with NVMe's Predictable Latency Mode; if a drive lacks it, there are no
    /// windows, and a warning is printed
    Plm,
}

impl From<WindowsArgument> for Windows {
    fn from(argument: WindowsArgument) -> Self {
        match argument {
            WindowsArgument::Off => Self::Off,
            WindowsArgument::Rails => Self::Rails,
            WindowsArgument::Plm => Self::Plm,
        }
    }
}

impl WindowsArguments {
    /// Returns `options` with these windows.
    pub(crate) fn added_to(&self, mut options: Options) -> Options {
        options.windows = self.windows.into();
        options.plm_cache_bytes = self.plm_cache;
        options
    }
}

/// Prints why a store has no windows although they were requested.
pub(crate) fn say_if_refused(store: &Store, windows: Windows) {
    if windows == Windows::Off {
        return;
    }
    let statistics = store.statistics();
    if statistics.windows.is_none() {
        statistics.troubles.iter().for_each(|trouble| output::say(trouble));
    }
}
