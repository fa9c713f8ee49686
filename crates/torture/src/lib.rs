//! Trials of whole stacks: a host's store on its volume and its drives, checked against the model
//! of crate `testkit`, with failures injected below the store. For tests; the trials are in
//! `tests/trials`.
//!
//! ```text
//!  shape ......... the configuration: drives, host, design, windows, load (drawn by seed)
//!  machine ....... a host and its store, from one power cut to the next
//!   |- store ..... a store on either kind of medium, as clients see it
//!   `- rack ...... its drives, and the failures between them and the host
//!  client ........ the clients and their checks
//!  harm .......... failures of sets, and the operator's response
//!  trial_of_seed . one trial: sessions that end with power cuts
//!  agree ......... many trials
//!  crash_points .. a short run that is cut off at each command of the drives
//!  fault ......... a bug to plant
//!  tally ......... event counters
//! ```
//! Trials are deterministic by seed.

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
