//! The Redis protocol, versions 2 and 3, as functions of bytes: no socket, no clock.
//!
//! ```text
//!   Decoder .. decodes commands from input              (resp/decode.rs)
//!   inline ... a command typed by a person              (resp/inline.rs)
//!   Reply .... encodes replies                          (resp/reply.rs)
//!   Value .... decodes replies, for clients             (resp/value.rs)
//! ```
//!
//! Memory is bounded: a length announced by a client allocates nothing before its bytes arrive.

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
