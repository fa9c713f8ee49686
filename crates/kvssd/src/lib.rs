//! A key-value drive on simulated flash.
//!
//! ```text
//!  host --> KvDrive: Store, Retrieve, Delete, Exist   (drive)
//!             |      Create, Seek, Next, Destroy       (iterators)
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
mod iterators;
mod opcode;
mod planted;
mod power;
mod profile;
mod raw_flash;
mod status;

pub use catalogue::CatalogueError;
pub use design::Design;
pub use drive::{DriveOptions, KeyFormat, KvDrive, Retrieved, SetupError, StoreMode, StoreOptions};
pub use handles::IteratorHandle;
pub use index::{Index, IndexOptions};
pub use iterators::{Batch, Pair};
pub use opcode::{Opcode, Transfer};
pub use planted::Planted;
pub use power::{PoweredOff, RecoverError};
pub use profile::{Controller, DeviceProfile, Dram};
pub use raw_flash::RawFlash;
pub use status::Status;
