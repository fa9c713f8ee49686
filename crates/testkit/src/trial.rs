//! Shared parts of the trials that check stores against a model, for any kind of medium below the
//! store.
//!
//! ```text
//!  world ..... the model: the values written to each key, and the values a read may return
//!   |- survival .. the acknowledged but not yet durable writes that a power cut may lose
//!   |- walk ...... the pairs that an iterator may return
//!   `- complaint . an error that was found, by kind
//!  names ..... keys
//!  loads ..... random client operations
//!  designs ... random options of LSM-trees
//! ```

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
