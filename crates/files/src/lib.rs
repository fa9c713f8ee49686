//! Block devices on real files and drives.
//!
//! ```text
//!   FileDevice .. the seam `BlockDevice` over one file or drive for each set   (device.rs)
//!   open ........ making and opening: locks, sizes, direct I/O where it goes   (open.rs)
//!   Set ......... one file: blocks to bytes, offsets, discards                 (set.rs)
//!   holes ....... where a sparse file has data                                 (holes.rs)
//!   Locks ....... by which others are kept from the files                      (locks.rs)
//!   Rooms ....... which parts of a file have room of their own                 (room.rs)
//!   Plm ......... windows of an NVM set, by admin commands                     (plm.rs)
//!   passthrough . the drive below a file, and its admin commands               (passthrough.rs)
//!   windows ..... the window commands of a device: who has them, who refused   (windows.rs)
//!   Waiting ..... writes that wait for room on the disk                        (waiting.rs)
//!   Trouble ..... what went wrong, with the file's name and offset             (trouble.rs)
//! ```
//! A set is a file of fixed size, which has its room from the beginning or gets it as it is written, or a whole drive (a
//! block device of the system). Several sets may lie in several directories, on several drives: a volume over them bears the loss
//! of one. Blocks are stored as the bytes they are, one after the other, with nothing around them.
//!
//! I/O is that of a runtime in real time, past the system's page cache where the file system allows. Cost of a
//! read: one buffer and one operation.

#![forbid(unsafe_code)]

mod device;
mod holes;
mod locks;
mod open;
mod passthrough;
mod plm;
mod room;
mod set;
mod trouble;
mod waiting;
mod windows;

pub use device::FileDevice;
pub use holes::data_in;
pub use locks::Locks;
pub use open::{DirectIo, Discards, FileError, FileOptions, RoomOf, files_in};
pub use passthrough::Passthrough;
pub use plm::{Admin, Plm, PlmError};
pub use trouble::Trouble;
pub use waiting::Waits;
