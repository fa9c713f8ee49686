//! The configuration of a trial: drives, host, design and load. `draw.rs` draws it by seed.

mod draw;

use engine::{LogSync, StoreId};
use runtime::Nanos;
use stacks::design::IndexOptions;
use stacks::host::{Arrangement, Storage, StoreOptions};
use testkit::trial::Names;
use volume::windows::{Keeper, WindowOptions};

use crate::fault::Fault;

/// The load of the clients.
#[derive(Clone)]
pub struct Load {
    /// The number of keys.
    pub keys: usize,
    /// The lengths of key names.
    pub names: Names,
    /// Most values are shorter than this, in bytes.
    pub usual_value: u32,
    /// Maximum length of a value in bytes, as far as the store accepts it.
    pub longest_value: u32,
    /// The number of clients that write and read.
    pub clients: usize,
    /// The number of clients that iterate.
    pub scanners: usize,
    /// Whether each write draws its own durability.
    pub draws_sync: bool,
}

/// The configuration of a trial.
pub struct Shape {
    /// Drives, host, and the arrangement of the store on them.
    pub storage: Storage,
    /// The design.
    pub index: IndexOptions,
    /// The identity of a new store.
    pub id: StoreId,
    /// The key length in bytes that the store is sized for.
    pub expected_key_bytes: u32,
    /// The value length in bytes that the store is sized for.
    pub expected_value_bytes: u32,
    /// The load of the clients.
    pub load: Load,
    /// The number of sessions. Each ends with a power cut.
    pub sessions: u32,
    /// Maximum length of a session, except the last.
    pub session: Nanos,
    /// Windows that the host keeps on the data sets.
    pub windows: Option<WindowOptions>,
}

impl Shape {
    /// Returns the number of data sets.
    pub fn data_sets(&self) -> u32 {
        self.storage.data_sets().expect("trials have sets for data")
    }

    /// Returns the store options.
    pub fn options(&self, fault: Option<Fault>) -> StoreOptions {
        StoreOptions {
            index: self.index.clone(),
            expected_key_bytes: self.expected_key_bytes,
            expected_value_bytes: self.expected_value_bytes,
            planted: Fault::in_store(fault),
            id: self.id,
        }
    }

    /// Returns the slowest program time, in microseconds.
    fn program_us(&self) -> f64 {
        let timing = &self.storage.drive.flash.timing;
        timing.program_us.iter().fold(0.0, |most: f64, us| most.max(*us))
    }

    /// Returns the additional lag of the log per KiB that clients write. Worst case: all data is on
    /// one die, each program writes one block, and a flush writes the same amount.
    pub fn log_behind_per_kib(&self) -> Nanos {
        Nanos(
            2 * Nanos::from_micros_f64(self.program_us()).0 * 1024 / u64::from(block::BLOCK_BYTES),
        )
    }

    /// Returns the maximum lag of the log apart from that: each client may wait for the commit
    /// groups of others, and these for programs.
    pub fn log_may_be_behind(&self) -> Nanos {
        let (timing, program) = (&self.storage.drive.flash.timing, self.program_us());
        let us = program + timing.erase_us + timing.background_deadline_us;
        Nanos(Nanos::from_micros_f64(us).0 * self.load.clients as u64 * 20)
    }

    /// Returns the default durability of writes.
    pub fn usual_sync(&self) -> LogSync {
        self.index.log_sync()
    }

    /// Whether the drives have and keep windows.
    pub(crate) fn has_windows_of_drives(&self) -> bool {
        self.windows.is_some_and(|windows| windows.keeper == Keeper::Device)
    }

    /// Whether the store survives the loss of a set.
    pub fn is_redundant(&self) -> bool {
        matches!(self.storage.arrangement, Arrangement::Parity | Arrangement::Mirrored)
    }
}
