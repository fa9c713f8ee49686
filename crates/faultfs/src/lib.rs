//! A file system for tests, in memory, mounted by FUSE: what was not synced may be lost when its power is cut, and
//! it fails when it is told to.
//!
//! Programs see a directory like any other, so what is tried is their whole path through the system (direct I/O,
//! `io_uring`, renames, directories), with nothing built in for the test. What a sync covers is taken as strictly as
//! POSIX has it: `fsync` of a file says nothing of its name, and covers only writes that had ended when it began.
//!
//! ```text
//!   File ...... one file: what it is, and what it may be after a cut      (file.rs)
//!   Disk ...... files and directories, and what a cut makes of them      (disk.rs)
//!   Faults .... which requests fail, and which syncs do nothing          (faults.rs)
//!   FaultFs ... the mount: power on and off                              (mount.rs)
//!   requests .. what the kernel asks for                                 (requests.rs)
//! ```
//! Cost: some tens of microseconds a request, and all that is written stays in memory.

#![forbid(unsafe_code)]

mod disk;
mod faults;
mod file;
mod mount;
mod requests;

pub use faults::{Fails, Faults, Ignored, Kind};
pub use mount::FaultFs;
