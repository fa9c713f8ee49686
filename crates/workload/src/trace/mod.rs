//! Traces that were recorded elsewhere, read line by line: of block drives ([`block`]) and of key-value stores ([`kv`]).
//!
//! A parser takes a line and gives the operations that it stands for; a reader feeds it from anything that can be read, and says
//! of a line that is not as it should be what was found where, and what was expected. All of it is plain functions of
//! text: nobody knows of files or clocks here.
//!
//! Invariants: times count from the beginning of a trace and never go back; a reader holds one line, of [`MOST_LINE_BYTES`] at most,
//! and the operations of one line, whatever the length of the trace.

pub mod block;
mod clock;
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
pub(crate) use lines::{LineParser, TraceReader, detect};
pub(crate) use sources::Sources;
