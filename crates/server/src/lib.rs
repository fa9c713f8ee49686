//! A server for the Redis protocol: clients connect over TCP, TLS or a Unix socket, and their
//! commands are executed on a [`levelhead::Store`].
//!
//! ```text
//!   Server ..... listens; stops without losing acknowledged writes  (server.rs, listen.rs)
//!   Options .... the configuration                                  (options.rs)
//!   connection . one client: read, execute, commit, reply           (connection.rs, connection/)
//!   commits .... group commit of the writes of many connections     (commits.rs)
//!   commands ... the commands                                       (commands/)
//!   data ....... Redis's data types on pairs in key order           (data/)
//!   resp ....... the protocol, as functions of bytes                (resp/)
//!   cluster .... one of several servers, by a fixed slot map        (cluster.rs)
//!   metrics .... Prometheus metrics and a dashboard                 (metrics.rs)
//!   observed ... recent counters of the store                       (observed.rs)
//!   clock ...... the only source of time                            (clock.rs)
//! ```
//!
//! Commands run on the threads that serve connections, including their reads of the drive. A
//! connection holds no thread while it waits for a write to become durable, for room in the socket,
//! or for input. One of these threads never enters the store, so that commands that need no store
//! are always answered. docs/serve.md describes the guarantees for clients.

#![forbid(unsafe_code)]

mod accept;
mod client;
mod clock;
mod cluster;
mod commands;
mod commits;
mod connection;
mod cursors;
mod data;
mod error;
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
pub use error::ServeError;
pub use limits::OpenFiles;
pub use listen::Addresses;
pub use options::{Options, Tls};
pub use server::{Listening, Server};

/// The Redis version that the command set corresponds to; some clients query it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
