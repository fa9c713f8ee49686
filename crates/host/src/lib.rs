//! A host's store on block drives.
//!
//! ```text
//!  profile ... the host: cores and what work costs on them, memory, how files lie    (TOML; `hosts/`)
//!  storage ... a drive, a host, and a layout over the drive's sets: shapes and room  (arithmetic)
//!  windows ... whether the drive's windows are kept, and how
//!  journal ... where log and manifest lie: beside the data, or on a set of their own
//!  get_times . how much of the time of Gets was waiting for storage
//!  store ..... HostStore: Get, Put, Delete, iterators; an index on a medium, and what operations cost
//! ```
//! The medium is a range of the only set (`volume::BlockRange`), or a volume over all of them
//! (`volume::Volume`); of several sets the last may be the journal's alone. Cost of an operation in simulation: what the index and the drive add to one timer.

#![forbid(unsafe_code)]

mod get_times;
mod journal;
mod profile;
mod storage;
mod store;
mod windows;

pub use get_times::{Band, GetTimes};
pub use journal::{JournalPlace, Media};
pub use profile::{Files, HostProfile, Memory, Processor};
pub use storage::{Arrangement, MAX_PARTITIONS, Sets, Storage, StorageError};
pub use store::{HostIterator, HostStore, StoreOptions};
pub use windows::WindowPolicy;
