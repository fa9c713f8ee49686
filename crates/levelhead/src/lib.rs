//! An embedded key-value store on files and drives, built so that writes do not raise the tail
//! latency of reads.
//!
//! ```
//! use levelhead::{Options, Store};
//!
//! # fn main() -> Result<(), levelhead::Error> {
//! # let directory = std::env::temp_dir().join(format!("levelhead-doc-{}", std::process::id()));
//! let store = Store::open(&directory, &Options::default())?;
//! store.put(b"apple", b"red")?;
//! store.put(b"pear", b"green")?;
//! assert_eq!(store.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! let all: Result<Vec<_>, _> = store.range(..).collect();
//! assert_eq!(all?.len(), 2);
//! store.delete(b"apple")?;
//! store.close()?;
//! # std::fs::remove_dir_all(&directory).expect("it is ours");
//! # Ok(())
//! # }
//! ```
//!
//! A store is one directory. It may also span several directories, each on its own drive; then one
//! of them may be lost ([`Store::open_over`]). The engine is the LSM-tree that this project also
//! simulates, with the design `levelhead`: the index is in memory as far as
//! [`Options::memory_bytes`] allows, values are stored apart from it in write order, and a
//! write-ahead log makes writes durable. A [`Store`] is a handle that threads share. It brings its
//! own runtime.
//!
//! All methods block; none returns a future. Asynchronous programs call them from threads that may
//! block, as they do for file I/O (`tokio::task::spawn_blocking`). `examples/tour.rs` uses the
//! whole API once.
//!
//! A Get runs on the caller's thread, including its read, and so needs no switch to another thread.
//! Background work (flushes, compactions, garbage collection) runs on a thread of the store.
//!
//! ```text
//!   Store ...... the handle that callers hold                       (store.rs)
//!                opening and creating                               (store/opening.rs)
//!   Batch ...... writes that take effect together                   (batch.rs)
//!   Range ...... pairs of one instant in key order, from both ends  (range.rs)
//!   Snapshot ... the store as it was at one instant                 (snapshot.rs)
//!   draw ....... keys drawn at random                               (draw.rs)
//!   Options .... options of an open store                           (options.rs)
//!   Error ...... errors: cause, place and remedy                    (error.rs, error/place.rs)
//!   Statistics . counters and state                                 (statistics.rs)
//!   Inside ..... counters of the engine                             (introspect.rs)
//!   windows .... members that are written in turn                   (windows.rs, root/windows.rs)
//!   verify ..... reads and checks all of a store                    (verify.rs)
//!   parity ..... whether parity agrees with the data                (parity.rs)
//!   checkpoint . a copy of the store at one instant                 (checkpoint.rs)
//!   repair ..... saves the readable pairs of a damaged store        (repair.rs)
//!   salvage .... pairs of a store that does not open                (repair/salvage.rs)
//!   identity ... reconstruction of a damaged or missing LEVELHEAD   (repair/infer_identity.rs)
//!   walk ....... all pairs of one instant, past damage              (walk.rs)
//!   Report ..... the findings of a walk                             (report.rs)
//!   directory .. the files of a store, and the identity they record (directory.rs)
//!   drive ...... a block device in the place of a directory         (drive.rs)
//!   root ....... the engine on its files, inside the runtime        (root.rs)
//!                opening and creating, within the runtime           (root/open.rs)
//!   set_up ..... options of media, volume and engine                (set_up.rs)
//!   FileEngine . the engine, as a store uses it                     (file_engine.rs)
//!   reading .... snapshots and ranges, inside the runtime           (reading.rs)
//!   key_bounds . bounds of ranges of keys                           (key_bounds.rs)
//!   device ..... the files                                          (device.rs)
//!   Kept ....... in-memory writes of a store opened read-only       (read_only_writes.rs)
//!   runtime .... options of the runtime, and its thread             (store_runtime.rs)
//! ```

#![forbid(unsafe_code)]

mod batch;
#[cfg(test)]
mod broken_tests;
mod checkpoint;
mod device;
mod directory;
mod draw;
mod drive;
mod error;
mod file_engine;
mod introspect;
mod key_bounds;
mod options;
mod parity;
mod range;
mod read_only_writes;
mod reading;
mod repair;
mod report;
mod root;
mod set_up;
mod snapshot;
mod statistics;
mod store;
mod store_runtime;
mod verify;
mod walk;
mod windows;

pub use batch::Batch;
pub use directory::state::DirectoryState;
pub use engine::WantOf;
pub use error::Error;
pub use introspect::{Inside, Level};
pub use options::{Durability, Io, Options, Windows};
pub use range::{Keys, Range};
pub use repair::repair;
pub use report::{Finding, Report, Salvaged};
pub use snapshot::Snapshot;
pub use statistics::Statistics;
pub use store::{Closed, Store};
pub use verify::Verified;
pub use windows::{WindowState, WindowStatistics};

/// Compiles the Rust examples of the README and the guides as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guides/embed.md")]
struct Guides;
