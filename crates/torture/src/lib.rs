//! Trials of whole stacks: a host's store on its volume and its drives, against the model of crate `trial`, with
//! all that can go wrong below the store. For tests; what they ask of it is in `tests/trials`.
//!
//! ```text
//!  shape ......... what is tried: drives, host, design, windows, load     (drawn by seed)
//!  machine ....... a host and its store, from one power cut to the next
//!   |- store ..... a store on either kind of medium, as clients see it
//!   `- rack ...... its drives, and what goes wrong between them and the host
//!  client ........ what clients do, and what they see
//!  harm .......... what sets suffer, and what an operator does about it
//!  trial_of_seed . one trial: sessions that end with power cuts
//!  agree ......... many of them
//!  crash_points .. a short run that is cut off at every command that drives are given
//!  fault ......... a bug to plant
//!  tally ......... what happened
//! ```
//! The same seed runs the same way.

#![forbid(unsafe_code)]

pub mod agree;
mod client;
pub mod crash_points;
mod fault;
mod harm;
pub mod machine;
pub mod rack;
mod shape;
mod store;
mod tally;
mod trial_of_seed;

pub use agree::{agree, outcome};
pub use fault::Fault;
pub use shape::{Load, Shape};
pub use store::Store;
pub use tally::Tally;
pub use trial_of_seed::run_trial;
