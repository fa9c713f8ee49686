//! Ten thousand idle connections.

use std::net::TcpStream;

use rustix::process::{Resource, getrlimit, setrlimit};
use server::resp::Value;

use super::process::{Client, Process, Scratch};

const CROWD: usize = 10_000;
/// Open files of a process besides its connections.
const BESIDES: u64 = 500;

/// Raises the limit of open files to `files`. Returns whether that is allowed.
fn may_open(files: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current.is_none_or(|current| current >= files)
}

/// Returns the resident memory of a process, in bytes.
pub(super) fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

#[test]
fn ten_thousand_idle_connections() {
    if !may_open(CROWD as u64 + BESIDES) {
        eprintln!("left out: this process may not have {CROWD} files open (ulimit -Hn)");
        return;
    }
    let scratch = Scratch::new("serves-crowd");
    let server = Process::start(&scratch.0, &["--max-clients", "11000"]);
    let mut client = Client::connect(server.address);
    assert_eq!(client.ask(&[b"SET", b"a", b"b"]), Value::Simple("OK".to_owned()));
    let before = resident(server.id());
    let crowd: Vec<TcpStream> = (0..CROWD)
        .map(|number| {
            let stream = TcpStream::connect(server.address);
            stream.unwrap_or_else(|error| panic!("connection {number}: {error}"))
        })
        .collect();
    // Once the last connection is answered, all have been accepted.
    let mut last = Client::connect(server.address);
    assert_eq!(last.ask(&[b"PING"]), Value::Simple("PONG".to_owned()));
    let each = (resident(server.id()) - before) / CROWD as u64;
    println!("{each} bytes for each idle connection");
    assert!(each < 4 << 10, "{each} bytes for each idle connection");
    for _ in 0..200 {
        assert_eq!(client.ask(&[b"SET", b"a", b"c"]), Value::Simple("OK".to_owned()));
        assert_eq!(client.ask(&[b"GET", b"a"]), Value::Bulk(b"c".to_vec()));
    }
    drop(crowd);
    server.stop();
}
