//! Configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use levelhead::Durability;

/// Addresses, access and limits of a server. Settings that `redis.conf` also has are named in
/// parentheses.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address for TCP; `None` disables TCP.
    pub listen: Option<SocketAddr>,
    /// The path of a Unix socket.
    pub unix: Option<PathBuf>,
    /// The address and certificates for TLS.
    pub tls: Option<Tls>,
    /// The address of the metrics and the dashboard.
    pub metrics: Option<SocketAddr>,
    /// The password that clients must present (`requirepass`). An empty one is refused because it
    /// would protect nothing.
    pub password: Option<String>,
    /// Whether to refuse an address that other hosts can reach while no password is set
    /// (`protected-mode`).
    pub protected: bool,
    /// When writes are acknowledged.
    pub durability: Durability,
    /// Maximum number of connections (`maxclients`).
    pub max_clients: usize,
    /// Maximum bytes in the buffers of all connections (`maxmemory-clients`).
    pub client_bytes: usize,
    /// Maximum bytes of unanswered commands of one connection (`client-query-buffer-limit`): the
    /// maximum length of a command, and the amount that is read ahead while the client does not
    /// read its replies.
    pub query_bytes: usize,
    /// Maximum bytes of one reply.
    pub reply_bytes: usize,
    /// Duration above which a command enters the slow log, in microseconds
    /// (`slowlog-log-slower-than`).
    pub slow_us: u64,
    /// Entries of the slow log (`slowlog-max-len`).
    pub slow_kept: usize,
    /// The slot map, if this server is one of a cluster; see `docs/serve.md`.
    pub cluster: Option<String>,
    /// How long a client may read no reply once its unanswered commands have reached their limit,
    /// in milliseconds. Then the connection is closed.
    pub patience_ms: u64,
    /// How long clients have to read their replies when the server stops, in milliseconds.
    pub grace_ms: u64,
    /// Threads that serve connections and execute commands. Should exceed the number of cores
    /// because commands may block in reads.
    pub workers: usize,
}

/// The TLS configuration.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The server's certificate chain, in PEM (`tls-cert-file`).
    pub certificate: PathBuf,
    /// The private key of the certificate, in PEM (`tls-key-file`).
    pub key: PathBuf,
    /// The certificate authorities for client certificates, in PEM (`tls-ca-cert-file`). Without it
    /// clients need no certificate.
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
    /// Returns the reason to refuse this configuration, or `None` if it is acceptable.
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

    /// A server with an empty password looks protected but is open.
    #[test]
    fn an_empty_password_is_refused() {
        for protected in [true, false] {
            let password = Some(String::new());
            let options = Options { password, protected, ..Options::default() };
            assert!(options.complaint().is_some_and(|words| words.contains("password is empty")));
        }
    }
}
