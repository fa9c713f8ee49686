//! Clients: they take operations from a stream, do them on the target, and write down how long
//! each took and whether what it read was right.

mod pace;
mod phase;
mod scan;
mod session;

pub use pace::{Arrivals, ClientOptions, Pace};
pub use session::{Session, StartError};
