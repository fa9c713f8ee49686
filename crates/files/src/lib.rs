//! Block devices on real files and drives.
//!
//! ```text
//!   FileDevice .. implements `BlockDevice`: one file or drive per set          (device.rs,
//!                 and its window commands                                      device/windows.rs)
//!   FileOptions . the options of creating and opening                          (options.rs)
//!   FileError ... the errors of creating and opening                           (error.rs)
//!   open ........ create and open: locks, sizes, direct I/O where supported    (open.rs)
//!   Set ......... one file: blocks to bytes, offsets, discards                 (set.rs)
//!   holes ....... the data ranges of a sparse file                             (holes.rs)
//!   Locks ....... locks that exclude other processes from the files            (locks.rs)
//!   Rooms ....... the parts of a file that have space allocated                (room.rs)
//!   Plm ......... windows of an NVM set, by admin commands                     (plm.rs)
//!   passthrough . the drive below a file, and its admin commands               (passthrough.rs)
//!   windows ..... the answers of drives to window commands                     (windows.rs)
//!   Waiting ..... writes that wait for disk space                              (waiting.rs)
//!   Trouble ..... failures, with file name and offset                          (trouble.rs)
//! ```
//! A set is a file of fixed size, or a whole drive (a block device of the operating system). A
//! file's space is allocated at creation or as it is written. Sets may be in several directories,
//! on several drives: a volume over them tolerates the loss of one. Blocks are stored as plain
//! bytes, consecutively, without headers.
//!
//! I/O goes through a runtime in real time. It bypasses the operating system's page cache if the
//! file system allows that. A read costs one buffer and one operation.

#![forbid(unsafe_code)]

mod device;
mod error;
mod holes;
mod locks;
mod open;
mod options;
mod passthrough;
mod plm;
mod room;
mod set;
mod trouble;
mod waiting;
mod windows;

pub use device::FileDevice;
pub use error::FileError;
pub use holes::data_in;
pub use locks::Locks;
pub use open::files_in;
pub use options::{DirectIo, Discards, FileOptions, RoomOf};
pub use passthrough::Passthrough;
pub use plm::{Admin, Plm, PlmError};
pub use trouble::Trouble;
pub use waiting::Waits;
