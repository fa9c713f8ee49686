//! Clients: they draw operations from a stream, execute them on the target, record their latencies,
//! and check the values read.

mod ledger;
mod notes;
mod pace;
mod phase;
mod replay;
mod scan;
mod session;
mod stop;

pub use pace::{Arrivals, ClientOptions, MAX_OUTSTANDING, Pace, RATES};
pub use session::{Session, StartError};
pub use stop::Stop;

pub(crate) use ledger::Ledger;
pub(crate) use pace::Schedule;
pub(crate) use session::{check_options, key_space};
