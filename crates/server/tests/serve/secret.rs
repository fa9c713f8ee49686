//! TLS end to end, with generated certificates.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{directory, encode, start};
use server::{Clock, Options, Server, Tls};

/// Runs `openssl`; returns false if it is not installed.
fn openssl(directory: &Path, line: &str) -> bool {
    let ran = Command::new("openssl")
        .args(line.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output();
    let Ok(ran) = ran else { return false };
    assert!(ran.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&ran.stderr));
    true
}

/// Creates a certificate and key of `name`, signed by `ca`.
fn certificate(directory: &Path, name: &str) {
    let request = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=levelhead";
    let more = "-addext subjectAltName=IP:127.0.0.1";
    openssl(directory, &format!("{request} {more} -keyout {name}.key -out {name}.csr"));
    let sign = "x509 -req -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy";
    openssl(directory, &format!("{sign} -in {name}.csr -out {name}.pem"));
}

/// Creates a directory with certificates of an authority, a server and a client.
pub(crate) fn certificates(name: &str) -> Option<PathBuf> {
    let directory = directory(name);
    std::fs::create_dir_all(&directory).expect("a directory of our own");
    let authority = "req -x509 -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=authority";
    if !openssl(&directory, &format!("{authority} -keyout ca.key -out ca.pem")) {
        eprintln!("left out: there is no openssl to make certificates with");
        return None;
    }
    certificate(&directory, "server");
    certificate(&directory, "client");
    Some(directory)
}

pub(crate) fn served(certificates: &Path, name: &str, asks_clients: bool) -> (Server, SocketAddr) {
    let tls = Tls {
        listen: ([127, 0, 0, 1], 0).into(),
        certificate: certificates.join("server.pem"),
        key: certificates.join("server.key"),
        clients: asks_clients.then(|| certificates.join("ca.pem")),
    };
    let options = Options { tls: Some(tls), ..Options::default() };
    let server = start(&directory(name), options, Clock::system());
    let address = server.addresses().tls.expect("it was asked for");
    (server, address)
}

/// Connects with or without a client certificate.
pub(crate) fn connect(
    address: SocketAddr,
    certificates: &Path,
    has_own: bool,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let pem = |name: &str| CertificateDer::from_pem_file(certificates.join(name)).expect("one");
    roots.add(pem("ca.pem")).expect("it is one of an authority");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots);
    let config = if has_own {
        let key = PrivateKeyDer::from_pem_file(certificates.join("client.key")).expect("a key");
        config.with_client_auth_cert(vec![pem("client.pem")], key).expect("they belong together")
    } else {
        config.with_no_client_auth()
    };
    let name = ServerName::from(address.ip());
    let session = ClientConnection::new(Arc::new(config), name).expect("a good name");
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes that");
    StreamOwned::new(session, stream)
}

/// Sends commands and returns the replies up to the end of the connection.
fn talk(
    address: SocketAddr,
    certificates: &Path,
    has_own: bool,
    sent: &[u8],
) -> std::io::Result<Vec<u8>> {
    let mut stream = connect(address, certificates, has_own);
    stream.write_all(sent)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

#[test]
fn clients_talk_in_secret() {
    let Some(certificates) = certificates("tls-certificates") else { return };
    let (_server, address) = served(&certificates, "tls", false);
    let long = vec![b'v'; 100_000];
    let sent =
        [encode(&[b"SET", b"a", &long]), encode(&[b"GET", b"a"]), encode(&[b"QUIT"])].concat();
    let answer = talk(address, &certificates, false, &sent).expect("an answer");
    let expected = [b"+OK\r\n$100000\r\n", &long[..], b"\r\n+OK\r\n"].concat();
    assert!(answer == expected, "{} bytes came", answer.len());
    // A client without TLS gets no reply.
    let mut plain = TcpStream::connect(address).expect("it listens");
    plain.write_all(&encode(&[b"GET", b"a"])).expect("it reads");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.windows(3).any(|bytes| bytes == b"vvv"));
}

#[test]
fn clients_have_to_show_certificates() {
    let Some(certificates) = certificates("tls-both-certificates") else { return };
    let (_server, address) = served(&certificates, "tls-both", true);
    let sent = [encode(&[b"PING"]), encode(&[b"QUIT"])].concat();
    let answer = talk(address, &certificates, true, &sent).expect("an answer");
    assert_eq!(answer, b"+PONG\r\n+OK\r\n");
    assert!(talk(address, &certificates, false, &sent).is_err(), "a stranger was let in");
}
