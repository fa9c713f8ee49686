//! A key-value drive on simulated flash.
//!
//! ```text
//!  host --> KvDrive: Store, Retrieve, Delete, Exist   (drive; setup: what it is made of)
//!             |      Create, Seek, Next, Destroy       (iterators, iterator_table)
//!             |  queue slots, host link, firmware cores: what a command costs besides flash
//!             v
//!           Index: engine::Engine or hashkv::HashEngine  (index), on RawFlash: superblocks as extents  (raw_flash)
//!             |
//!           flash::Flash            reserved superblocks: the dump at power loss  (reserve, power)
//! ```
//!
//! Commands follow the NVMe Key Value Command Set; their outcome is a [`Status`]. Device profiles
//! and designs are TOML; those in `devices/` and `designs/` are built in.

#![forbid(unsafe_code)]

mod design;
mod drive;
mod handles;
mod index;
mod iterator_table;
mod iterators;
mod opcode;
mod planted;
mod power;
mod profile;
mod raw_flash;
mod setup;
mod status;

pub use catalogue::CatalogueError;
pub use design::Design;
pub use drive::{KvDrive, Retrieved, StoreMode, StoreOptions};
pub use handles::IteratorHandle;
pub use index::{Index, IndexOptions};
pub use iterator_table::{Batch, Pair};
pub use opcode::{Opcode, Transfer};
pub use planted::Planted;
pub use power::{PoweredOff, RecoverError};
pub use profile::{Controller, DeviceProfile, Dram};
pub use raw_flash::RawFlash;
pub use setup::{DriveOptions, KeyFormat, SetupError};
pub use status::Status;
