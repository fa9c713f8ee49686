//! A server in its own process, and a client.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use server::resp::Value;

/// An empty directory that is removed on drop.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct Process {
    child: Child,
    pub address: SocketAddr,
    // Later output of the server must not find the pipe closed.
    _out: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a server, and waits until it accepts clients.
    pub(crate) fn start(directory: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_levelhead"))
            .arg("serve")
            .arg(directory)
            .args(["--listen", "127.0.0.1:0", "--capacity", "512MiB"])
            .args(["--memory", "32MiB", "--value-cache", "4MiB"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        let mut out = BufReader::new(child.stdout.take().expect("it has one"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let address = line.trim_end().strip_prefix("levelhead serves on tcp ");
        let address = address.and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("it said '{line}'"));
        Self { child, address, _out: out }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server as by kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("our own process");
        self.child.wait().expect("our own process");
    }

    /// Stops the server with SIGTERM; it has to exit with success.
    pub(crate) fn stop(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("our own process");
        let status = self.child.wait().expect("our own process");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A failed test leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that waits at most ten seconds for a reply.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes that");
        stream.set_nodelay(true).expect("a socket takes that");
        Self { stream, read: Vec::new() }
    }

    /// Sends commands. Returns false once the server is gone.
    pub(crate) fn send(&mut self, commands: &[Vec<Vec<u8>>]) -> bool {
        let mut bytes = Vec::new();
        for words in commands {
            bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        self.stream.write_all(&bytes).is_ok()
    }

    /// Returns the next reply; `None` once the server is gone.
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
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Value {
        let words = words.iter().map(|word| word.to_vec()).collect();
        assert!(self.send(&[words]), "the server is there");
        self.receive().expect("the server is there")
    }
}
