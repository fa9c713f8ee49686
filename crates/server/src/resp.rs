//! The protocol of Redis, versions 2 and 3, as functions of bytes: no socket, no clock.
//!
//! ```text
//!   Decoder .. commands out of what a client sent       (resp/decode.rs)
//!   inline ... a command typed by a person              (resp/inline.rs)
//!   Reply .... what a client is told                    (resp/reply.rs)
//!   Value .... a reply as a client reads it             (resp/value.rs)
//! ```
//!
//! Everything is bounded before memory is taken for it: a length that a client claims costs nothing until its bytes are there.

mod decode;
#[cfg(test)]
mod fuzz_tests;
mod inline;
#[cfg(test)]
mod properties;
mod reply;
mod value;

pub use decode::{Command, Decoder, Limits, ProtocolError};
pub use reply::{Protocol, Reply};
pub use value::{Value, ValueError};
