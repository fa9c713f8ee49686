//! An in-memory test file system mounted by FUSE. A simulated power cut may lose unsynced data, and
//! requests fail on demand.
//!
//! Programs see a normal directory, so tests cover their whole path through the operating system
//! (direct I/O, `io_uring`, renames, directories) without test hooks. Syncs guarantee no more than
//! POSIX requires: `fsync` of a file does not cover its name, and covers only writes that had ended
//! when it began.
//!
//! ```text
//!   File ...... one file: current contents, and contents after a cut    (file.rs)
//!   Disk ...... files and directories, and the state after a cut         (disk.rs)
//!   Faults .... requests that fail, and syncs that have no effect        (faults.rs)
//!   FaultFs ... the mount: power on and off                              (mount.rs)
//!   State ..... the state that requests and the test share               (state.rs)
//!   requests .. the kernel's requests                                    (requests.rs)
//! ```
//! Cost: some tens of microseconds per request. All written data stays in memory.

#![forbid(unsafe_code)]

mod disk;
mod faults;
mod file;
mod mount;
mod requests;
mod state;

pub use faults::{Fails, Faults, Ignored, Kind};
pub use mount::FaultFs;
