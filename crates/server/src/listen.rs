//! Listeners for TCP, TLS and a Unix socket, and admission of clients.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::accept::next;
use crate::commands::session::Session;
use crate::connection;
use crate::error::ServeError;
use crate::metrics;
use crate::options::{Options, Tls};
use crate::state::State;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Pause before the next `accept` after it failed.
const PAUSE: Duration = Duration::from_millis(50);

/// The addresses at which a server listens, with the ports that the system chose.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// For TCP.
    pub tcp: Option<SocketAddr>,
    /// For TLS.
    pub tls: Option<SocketAddr>,
    /// The Unix socket.
    pub unix: Option<PathBuf>,
    /// For metrics and dashboard.
    pub metrics: Option<SocketAddr>,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.tcp.map(|address| format!("tcp {address}")));
        parts.extend(self.tls.map(|address| format!("tls {address}")));
        parts.extend(self.unix.as_ref().map(|path| format!("unix {}", path.display())));
        parts.extend(self.metrics.map(|address| format!("metrics http://{address}/")));
        f.write_str(&parts.join(", "))
    }
}

/// Listening sockets.
pub(crate) struct Doors {
    tcp: Option<TcpListener>,
    tls: Option<(TcpListener, TlsAcceptor)>,
    unix: Option<(UnixListener, PathBuf)>,
    metrics: Option<TcpListener>,
}

impl Doors {
    pub(crate) async fn open(options: &Options) -> Result<Self, ServeError> {
        let tls = match &options.tls {
            Some(tls) => Some((bind(tls.listen).await?, acceptor(tls)?)),
            None => None,
        };
        Ok(Self {
            tcp: match options.listen {
                Some(address) => Some(bind(address).await?),
                None => None,
            },
            tls,
            unix: options.unix.clone().map(bind_unix).transpose()?,
            metrics: match options.metrics {
                Some(address) => Some(bind(address).await?),
                None => None,
            },
        })
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let of = |listener: &TcpListener| listener.local_addr().ok();
        Addresses {
            tcp: self.tcp.as_ref().and_then(of),
            tls: self.tls.as_ref().and_then(|(listener, _)| of(listener)),
            unix: self.unix.as_ref().map(|(_, path)| path.clone()),
            metrics: self.metrics.as_ref().and_then(of),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| ServeError::new(format!("cannot listen on {address}: {error}")))
}

/// Binds a Unix socket. Replaces a stale socket of an earlier server, but neither a socket on which
/// a process listens nor a file that is not a socket.
fn bind_unix(path: PathBuf) -> Result<(UnixListener, PathBuf), ServeError> {
    let cannot =
        |error: io::Error| ServeError::new(format!("cannot listen on {}: {error}", path.display()));
    match UnixListener::bind(&path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = path.symlink_metadata().map_err(cannot)?.file_type().is_socket();
            if !is_socket || std::os::unix::net::UnixStream::connect(&path).is_ok() {
                return Err(cannot(error));
            }
            fs::remove_file(&path).map_err(cannot)?;
            let bound = UnixListener::bind(&path).map_err(cannot)?;
            Ok((bound, path))
        }
        bound => Ok((bound.map_err(cannot)?, path)),
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let wrong = |path: &PathBuf, error: &dyn std::fmt::Display| {
        ServeError::new(format!("{}: {error}", path.display()))
    };
    let certificates = |path: &PathBuf| {
        let read =
            CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        read.map_err(|error| wrong(path, &error))
    };
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| wrong(&tls.key, &error))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ServeError::new(error.to_string()))?;
    let config = match &tls.clients {
        None => config.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| wrong(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().map_err(|error| wrong(path, &error))?)
        }
    };
    let config = config.with_single_cert(certificates(&tls.certificate)?, key);
    let config = config.map_err(|error| wrong(&tls.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts clients until the server stops.
pub(crate) fn spawn(
    runtime: &Runtime,
    state: &Arc<State>,
    doors: Doors,
    stop: &watch::Receiver<bool>,
) {
    let with = || (Arc::clone(state), stop.clone());
    if let Some(listener) = doors.tcp {
        let (state, stop) = with();
        runtime.spawn(accept_tcp(state, listener, None, stop));
    }
    if let Some((listener, acceptor)) = doors.tls {
        let (state, stop) = with();
        runtime.spawn(accept_tcp(state, listener, Some(acceptor), stop));
    }
    if let Some((listener, path)) = doors.unix {
        let (state, stop) = with();
        runtime.spawn(accept_unix(state, listener, path, stop));
    }
    if let Some(listener) = doors.metrics {
        let (state, stop) = with();
        runtime.spawn(metrics::serve(state, listener, stop));
    }
}

async fn accept_tcp(
    state: Arc<State>,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    mut stop: watch::Receiver<bool>,
) {
    while let Some(accepted) = next(listener.accept(), &mut stop).await {
        let Ok((stream, address)) = accepted else {
            // Most likely the process is out of file descriptors. Existing connections continue.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Replies are sent when they are complete, so delaying them gains nothing.
        let _ = stream.set_nodelay(true);
        let stop = stop.clone();
        match &acceptor {
            None => let_in(&state, stream, address.to_string(), stop).await,
            Some(acceptor) => greet(&state, acceptor.clone(), stream, address, stop),
        }
    }
}

/// Performs the TLS handshake; drops a client that does not finish it in time. The client counts as
/// a connection meanwhile.
fn greet(
    state: &Arc<State>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    address: SocketAddr,
    stop: watch::Receiver<bool>,
) {
    let Some(session) = session(state, address.to_string()) else { return };
    let state = Arc::clone(state);
    tokio::spawn(async move {
        match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => connection::serve(&state, session, stream, stop).await,
            _ => state.clients.leave(&session.client),
        }
    });
}

async fn accept_unix(
    state: Arc<State>,
    listener: UnixListener,
    path: PathBuf,
    mut stop: watch::Receiver<bool>,
) {
    let address = format!("{}:0", path.display());
    while let Some(accepted) = next(listener.accept(), &mut stop).await {
        match accepted {
            Ok((stream, _)) => let_in(&state, stream, address.clone(), stop.clone()).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn let_in<S>(state: &Arc<State>, mut stream: S, address: String, stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(session) = session(state, address) else {
        let refusal = stream.write_all(b"-ERR max number of clients reached\r\n");
        // The socket buffer normally has room for this line; otherwise the client gets no message.
        let _ = tokio::time::timeout(Duration::from_millis(10), refusal).await;
        return;
    };
    let state = Arc::clone(state);
    tokio::spawn(async move { connection::serve(&state, session, stream, stop).await });
}

fn session(state: &State, address: String) -> Option<Session> {
    let now = state.database.clock.now_ms();
    let Some(client) = state.clients.join(address, now, state.options.max_clients) else {
        state.statistics.refused.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let is_authenticated = state.options.password.is_none();
    Some(Session::new(client, is_authenticated))
}
