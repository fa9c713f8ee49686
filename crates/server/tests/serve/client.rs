//! A client for tests, and servers on stores of their own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultfs::FaultFs;
use levelhead::Store;
use server::resp::Value;
use server::{Clock, Options, Server};

/// Returns an empty directory for a store.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// Mounts a file system that loses unsynced data. Without FUSE, prints a notice and returns `None`.
#[expect(clippy::disallowed_methods, reason = "what a person wants of the tests")]
pub(crate) fn faulty(name: &str, seed: u64) -> Option<FaultFs> {
    match FaultFs::mount(&directory(name), seed) {
        Ok(mounted) => Some(mounted),
        Err(error) if std::env::var("LEVELHEAD_NEED_FUSE").is_ok() => panic!("no FUSE: {error}"),
        Err(error) => {
            eprintln!("left out, because FUSE cannot be mounted here: {error}");
            None
        }
    }
}

/// Starts a server on a free port, on a small store.
pub(crate) fn start(directory: &Path, options: Options, clock: Clock) -> Server {
    start_by(levelhead::Io::Probe, directory, options, clock)
}

/// Like [`start`], with the given kind of I/O. On a file system that is served by this process use
/// threads: with `io_uring` both may wait for the allocator, and for each other (decision 57).
pub(crate) fn start_by(
    io: levelhead::Io,
    directory: &Path,
    options: Options,
    clock: Clock,
) -> Server {
    let store_options = levelhead::Options {
        io,
        capacity_bytes: 512 << 20,
        memory_bytes: 32 << 20,
        value_cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        durability: options.durability,
        ..levelhead::Options::default()
    };
    let store = Store::open(directory, &store_options).expect("a directory of our own");
    let options = Options { listen: Some(([127, 0, 0, 1], 0).into()), ..options };
    Server::start(store, options, clock).expect("a store of our own")
}

pub(crate) fn tcp(server: &Server) -> SocketAddr {
    server.addresses().tcp.expect("it listens there")
}

/// A connection that waits for each reply, at most a minute.
pub(crate) struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket takes that");
        stream.set_nodelay(true).expect("a socket takes that");
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn of(server: &Server) -> Self {
        Self::connect(tcp(server))
    }

    pub(crate) fn send(&mut self, words: &[&[u8]]) {
        self.stream.write_all(&encode(words)).expect("the server is there");
    }

    /// Returns the next reply, or `None` once the server has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        loop {
            if let Ok((value, length)) = Value::decode(&self.read) {
                self.read.drain(..length);
                return Some(value);
            }
            let mut buffer = [0; 16 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.read.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                // Completions of the store's reads may interrupt a thread that has opened a store.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    /// Sends a command of words separated by blanks and returns the reply.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send(&words);
        self.receive().expect("the server is there")
    }

    /// Like [`ask`](Self::ask), with the reply as text: `OK`, `(nil)`, numbers, plain strings,
    /// `[a b]`, `{a:b}`.
    pub(crate) fn say(&mut self, line: &str) -> String {
        shown(&self.ask(line))
    }
}

pub(crate) fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub(crate) fn shown(value: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(shown).collect::<Vec<_>>().join(" ");
    match value {
        Value::Simple(word) => word.clone(),
        Value::Error(message) => format!("-{message}"),
        Value::Integer(number) => number.to_string(),
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Null => "(nil)".to_owned(),
        Value::Boolean(is) => is.to_string(),
        Value::Double(number) => format!(",{number}"),
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Set(values) => format!("~[{}]", list(values)),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| format!("{}:{}", shown(key), shown(value));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
        }
    }
}
