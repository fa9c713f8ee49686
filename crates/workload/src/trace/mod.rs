//! Traces recorded elsewhere, read line by line: of block drives ([`block`]) and of key-value
//! stores ([`kv`]).
//!
//! A parser converts a line into its operations. A reader feeds it from any input; for an invalid
//! line it reports the place, the actual and the expected text. All of it is plain functions of
//! text, independent of files and clocks.
//!
//! Invariants: times count from the beginning of a trace and never decrease; a reader holds one
//! line, of at most [`MOST_LINE_BYTES`], and the operations of one line, independent of the length
//! of the trace.

pub mod block;
mod clock;
mod detect;
mod error;
mod fields;
#[cfg(test)]
mod fuzz_tests;
pub mod kv;
mod lines;
mod sources;

pub use error::TraceError;
pub use lines::MOST_LINE_BYTES;

pub(crate) use clock::Clock;
pub(crate) use error::Wrong;
pub(crate) use lines::{LineParser, TraceReader};
pub(crate) use sources::Sources;
