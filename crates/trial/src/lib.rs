//! What trials of stores against a model share, whatever stands below the store.
//!
//! ```text
//!  world ..... the model: what each key was given, and what a read may find
//!   |- survival .. what a power cut may take of writes that nobody waited for
//!   |- walk ...... what an iterator may meet
//!   `- complaint . what was found wrong, by kind
//!  names ..... keys
//!  loads ..... what clients do, drawn at random
//!  designs ... options of LSM-trees, drawn at random
//! ```

#![forbid(unsafe_code)]

mod complaint;
pub mod designs;
pub mod loads;
mod names;
mod survival;
mod walk;
mod world;

pub use complaint::{Complaint, Kind, is_same};
pub use designs::pick;
pub use names::Names;
pub use walk::Walk;
pub use world::{Answer, World};
