//! A key-value drive on simulated flash.
//!
//! ```text
//!  host --> KvDrive: Store, Retrieve, Delete, Exist   (drive; setup: its parts)
//!             |      Create, Seek, Next, Destroy       (iterators, iterator_table)
//!             |  queue slots, host link, firmware cores: costs of a command besides flash
//!             v
//!           crate::design::Index: an LSM-tree or a hash table, on RawFlash:
//!             |              superblocks as extents  (raw_flash)
//!             |
//!           drives::nand::Flash, reserved superblocks: the dump at power loss  (power)
//! ```
//!
//! Commands follow the NVMe Key Value Command Set; their outcome is a [`Status`]. Device profiles
//! are TOML files; those in `devices/` are built in.

mod drive;
mod handles;
mod iterator_table;
mod iterators;
mod opcode;
mod power;
mod profile;
mod raw_flash;
mod saved;
mod setup;
mod status;

pub use catalogue::CatalogueError;
pub use drive::{Index, KvDrive, Retrieved, StoreMode, StoreOptions};
pub use handles::IteratorHandle;
pub use iterator_table::{Batch, Pair};
pub use opcode::{Opcode, Transfer};
pub use power::{PoweredOff, RecoverError};
pub use profile::{Controller, DeviceProfile, Dram};
pub use raw_flash::RawFlash;
pub use saved::{SaveError, SavedDrive, SavedError};
pub use setup::{DriveOptions, KeyFormat, SetupError};
pub use status::Status;
