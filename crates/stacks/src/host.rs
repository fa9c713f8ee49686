//! A host's store on block drives.
//!
//! ```text
//!  profile ... the host: cores, costs of work, memory, layout of files     (TOML; `hosts/`)
//!  storage ... a drive, a host, a layout over the drive's sets: capacity    (arithmetic)
//!  windows ... policies of the drive's windows
//!  journal ... place of log and manifest: beside the data, or on a set of their own
//!  get_times . share of the time of Gets that is spent waiting for storage
//!  store ..... HostStore: Get, Put, Delete, iterators; an index on a medium, with costs
//! ```
//! The medium is a range of the only set (`volume::BlockRange`), or a volume over all sets
//! (`volume::Volume`); with several sets the last one may be reserved for the journal. Cost of an
//! operation in simulation: those of the index and the drive, and one timer.

mod arrangement;
mod get_times;
mod journal;
mod profile;
mod storage;
mod store;
mod windows;

pub use arrangement::Arrangement;
pub use get_times::{Band, GetTimes};
pub use journal::{JournalPlace, Media};
pub use profile::{Files, HostProfile, Memory, Processor};
pub use storage::{MAX_PARTITIONS, Sets, Storage, StorageError};
pub use store::{HostIterator, HostStore, StoreOptions};
pub use windows::WindowPolicy;
