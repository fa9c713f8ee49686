//! What tests of several crates use.
//!
//! ```text
//!  fuzz .... fuzzing of decoders with real encodings, mutations and noise
//!  trial ... the model that trials compare stores with, client operations, designs from seeds
//! ```

#![forbid(unsafe_code)]

pub mod fuzz;
pub mod trial;
