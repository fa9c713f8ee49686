//! A store, served: what clients of Redis say over TCP, TLS or a Unix socket, carried out on a [`levelhead::Store`].
//!
//! ```text
//!   Server ..... listens, and stops without losing anything          (server.rs, listen.rs)
//!   Options .... what it is started with                             (options.rs)
//!   connection . one client: in, carried out, durable, out           (connection.rs, connection/)
//!   commits .... writes of many become durable together              (commits.rs)
//!   commands ... what each command does                              (commands/)
//!   data ....... Redis's data on pairs in key order                  (data/)
//!   resp ....... the protocol, as functions of bytes                 (resp/)
//!   cluster .... one of several servers, by a map that is given      (cluster.rs)
//!   metrics .... for Prometheus, and a page to look at               (metrics.rs)
//!   observed ... the store's counters, a moment ago                  (observed.rs)
//!   clock ...... where time comes in                                 (clock.rs)
//! ```
//!
//! Commands run on the threads that serve connections, a read of the drive included; nobody holds a thread while it
//! waits for its write to be durable, for room in a socket, or for a client to say something. One of those threads is kept out of the store, for
//! commands that need none. docs/serve.md says what clients may
//! count on.

#![forbid(unsafe_code)]

mod client;
mod clock;
mod cluster;
mod commands;
mod commits;
mod connection;
mod cursors;
mod data;
mod fault;
mod glob;
mod info;
mod limits;
mod listen;
mod metrics;
mod observed;
mod options;
pub mod resp;
mod server;
mod slowlog;
mod state;
mod statistics;

pub use clock::{Clock, Hand};
pub use data::database::is_served;
pub use limits::OpenFiles;
pub use options::{Options, Tls};
pub use server::{Addresses, Listening, ServeError, Server};

/// The version of Redis whose commands these are; some clients ask.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
