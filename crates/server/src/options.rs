//! What a server is started with.

use std::net::SocketAddr;
use std::path::PathBuf;

use levelhead::Durability;

/// Where clients find the server, who may come, and how much they may take. Names of settings are those of `redis.conf` where it has them.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address for TCP, unless there is none.
    pub listen: Option<SocketAddr>,
    /// The path of a Unix socket.
    pub unix: Option<PathBuf>,
    /// The address for TLS, and what it needs.
    pub tls: Option<Tls>,
    /// The address of metrics and dashboard.
    pub metrics: Option<SocketAddr>,
    /// What clients have to know (`requirepass`). An empty one is refused: it would keep nobody out.
    pub password: Option<String>,
    /// Whether to refuse an address that others can reach while there is no password (`protected-mode`).
    pub protected: bool,
    /// When writes are acknowledged.
    pub durability: Durability,
    /// Connections at a time (`maxclients`).
    pub max_clients: usize,
    /// Bytes in the buffers of all connections (`maxmemory-clients`).
    pub client_bytes: usize,
    /// Bytes that one connection may have sent and not had answered (`client-query-buffer-limit`): no command may be longer, and no more are
    /// read while replies wait to be taken.
    pub query_bytes: usize,
    /// Bytes of one reply.
    pub reply_bytes: usize,
    /// Commands that take longer are kept, in microseconds (`slowlog-log-slower-than`).
    pub slow_us: u64,
    /// Slow commands that are kept (`slowlog-max-len`).
    pub slow_kept: usize,
    /// The map of a cluster of which this server is one; see `docs/serve.md`.
    pub cluster: Option<String>,
    /// How long a connection may take none of its replies while it has sent as much as may wait behind them, in milliseconds.
    pub patience_ms: u64,
    /// How long connections have to take their replies when the server stops, in milliseconds.
    pub grace_ms: u64,
    /// Threads that serve connections, and carry out what they ask for; more than cores, as they may wait for a read.
    pub workers: usize,
}

/// What TLS needs.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The address.
    pub listen: SocketAddr,
    /// The server's certificate, and those above it, in PEM (`tls-cert-file`).
    pub certificate: PathBuf,
    /// Its key, in PEM (`tls-key-file`).
    pub key: PathBuf,
    /// Whose certificates clients have to show, in PEM (`tls-ca-cert-file`); without it they need none.
    pub clients: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 6379))),
            unix: None,
            tls: None,
            metrics: None,
            password: None,
            protected: true,
            durability: Durability::Group,
            max_clients: 10_000,
            client_bytes: 256 << 20,
            query_bytes: 64 << 20,
            reply_bytes: 64 << 20,
            slow_us: 10_000,
            slow_kept: 128,
            cluster: None,
            patience_ms: 10_000,
            grace_ms: 5_000,
            workers: 8,
        }
    }
}

impl Options {
    /// Why a server should not be started like that.
    pub(crate) fn complaint(&self) -> Option<String> {
        if self.listen.is_none() && self.unix.is_none() && self.tls.is_none() {
            return Some("there is no address to listen on".to_owned());
        }
        if self.password.as_deref() == Some("") {
            return Some(
                "the password is empty, which everybody knows: give one, or none at all".to_owned(),
            );
        }
        let addresses = [self.listen, self.tls.as_ref().map(|tls| tls.listen), self.metrics];
        let open = addresses.into_iter().flatten().find(|address| !address.ip().is_loopback());
        match open {
            Some(address) if self.protected && self.password.is_none() => Some(format!(
                "others can reach {address}, and there is no password: give one, or switch the protected mode off"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_doors_are_refused() {
        let options = Options::default();
        assert_eq!(options.complaint(), None);
        let open = Options { listen: Some(([0, 0, 0, 0], 6379).into()), ..options };
        assert!(open.complaint().is_some());
        assert_eq!(Options { protected: false, ..open.clone() }.complaint(), None);
        assert_eq!(Options { password: Some("a".to_owned()), ..open.clone() }.complaint(), None);
        assert!(Options { listen: None, ..open }.complaint().is_some());
    }

    /// A server that asks for a password which is nothing looks closed, and is open.
    #[test]
    fn an_empty_password_is_refused() {
        for protected in [true, false] {
            let password = Some(String::new());
            let options = Options { password, protected, ..Options::default() };
            assert!(options.complaint().is_some_and(|words| words.contains("password is empty")));
        }
    }
}
