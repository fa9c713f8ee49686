//! An embedded key-value store on files and drives, whose read tail does not follow its writes.
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
//! One directory is one store; over several directories, on as many drives, one may be lost
//! ([`Store::open_over`]). The engine is the one that is simulated elsewhere in this project, with the design
//! `levelhead`: an index in memory as far as [`Options::memory_bytes`] goes, values apart from it in the order in which
//! they were written, a log. A [`Store`] is a handle that threads share; it needs no runtime of its own around it.
//!
//! No method is a future. An asynchronous program calls them from threads that may wait, as it does with files (`tokio::task::spawn_blocking`).
//! `examples/tour.rs` uses all of it once.
//!
//! A Get runs on the caller's thread, its read included: it pays for no hop to another one. What goes on in
//! the background (flushes, compactions, the collection of garbage) is driven by a thread of the store.
//!
//! ```text
//!   Store ...... what callers hold                                  (store.rs)
//!   Batch ...... writes of one instant                              (batch.rs)
//!   care ....... checking a store, copying it, saving what is left  (care.rs)
//!   Range ...... pairs in key order, of one instant, from both ends (range.rs)
//!   Snapshot ... the store as it was at one instant                 (snapshot.rs)
//!   Statistics . counters, and how things stand                     (statistics.rs)
//!   Options .... what a store is opened with                        (options.rs)
//!   windows .... members that are written in turn                   (windows.rs)
//!   Inside ..... what the engine counts                             (inside.rs)
//!   Error ...... what went wrong, where, what to do                 (error.rs)
//!   directory .. the files of a store, and what they have to say    (directory.rs)
//!   device ..... the files, and the simulated drive beside them      (device.rs)
//!   kept ....... what is written to a store that is only read        (kept.rs)
//!   drive ...... a drive in the place of a directory                (drive.rs)
//!   draw ....... keys drawn at random                               (draw.rs)
//!   reading .... snapshots and ranges, within the runtime           (reading.rs)
//!   parity ..... whether what others are rebuilt from agrees     (parity.rs)
//!   salvage .... what is left of a store that does not open         (salvage.rs)
//!   surmise .... what a store was, where its LEVELHEAD is damaged   (surmise.rs)
//!   root ....... the engine on its files, within the runtime        (root.rs)
//! ```

#![forbid(unsafe_code)]

mod batch;
#[cfg(test)]
mod broken_tests;
mod care;
mod device;
mod directory;
mod draw;
mod drive;
mod error;
mod file_engine;
mod inside;
mod kept;
mod options;
mod parity;
mod range;
mod reading;
mod root;
mod salvage;
mod set_up;
mod snapshot;
mod statistics;
mod store;
mod surmise;
mod windows;

pub use batch::Batch;
pub use care::{Finding, Report, Verified, repair};
pub use error::Error;
pub use inside::{Inside, Level};
pub use options::{Durability, Io, Options, Windows};
pub use pages::WantOf;
pub use range::{Keys, Range};
pub use salvage::Salvaged;
pub use snapshot::Snapshot;
pub use statistics::{DirectoryState, Statistics};
pub use store::{Closed, Store};
pub use windows::{WindowState, WindowStatistics};

/// What guides show in Rust is compiled with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guides/embed.md")]
struct Guides;
