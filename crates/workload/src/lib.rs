//! Clients: YCSB workloads, closed and open loops, latency recorders, and a check of every value
//! that is read.
//!
//! A workload is a YCSB property file, a built-in one ([`builtin`]) or one of the user's
//! ([`Properties::parse`]); [`CoreWorkload`] is its checked form. A [`Session`] drives a
//! [`KvTarget`] with it, first [`Session::load`], then [`Session::run`] any number of times; each
//! returns a [`RunReport`].
//!
//! ```
//! use workload::{CoreWorkload, builtin};
//!
//! let mut properties = builtin("a").expect("a to f are built in");
//! properties.set("recordcount", "44000000");
//! let workload = CoreWorkload::from_properties(&properties)?;
//! assert_eq!(workload.record_count, 44_000_000);
//! assert_eq!(workload.keys.key_bytes(), 32);
//! # Ok::<(), workload::SettingsError>(())
//! ```
//!
//! A store in real time uses a [`SharedSession`], whose clients are threads, and a [`SharedTarget`]
//! (decision 42).
//!
//! Invariants: all time is the runtime's, so latencies of a [`Session`] are virtual nanoseconds;
//! all randomness comes from the session's seed, so the same seed on the same target gives an equal
//! report; a read counts only after the oracle has compared its value with the writes.

#![forbid(unsafe_code)]

mod builtin;
mod client;
mod generator;
mod key;
mod operation;
mod oracle;
mod properties;
mod record;
mod settings;
mod target;
mod threads;
pub mod trace;
mod unmix;
mod value;

pub use builtin::{BUILTIN_NAMES, builtin, builtin_text};
pub use client::{
    Arrivals, ClientOptions, MAX_OUTSTANDING, Pace, RATES, Session, StartError, Stop,
};
pub use generator::{KeyRanges, Pareto, PowerLaw, TwoTermExponential};
pub use key::{InsertOrder, KeyBuffer, KeyDigits, KeyFormat, scrambled};
pub use operation::OpKind;
pub use oracle::{Mismatch, MismatchKind};
pub use properties::{Origin, Properties, PropertiesError, Property};
pub use record::{Latencies, LatencySummary, RunReport, Timeline, TimelineWindow, WindowLatency};
pub use settings::{
    CoreWorkload, LengthDistribution, MAX_RECORDS, Mix, RequestDistribution, ScanEnd, ScanLengths,
    Scans, SettingsError, property_names,
};
pub use target::{KvIterator, KvTarget, NoIterators, Pair};
pub use threads::{Part, SharedSession, SharedTarget};
pub use value::{FieldLengths, ValueForm, ValueRecipe};
