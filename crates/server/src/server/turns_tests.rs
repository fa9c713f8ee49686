//! Behaviour of the server while all turns in the store are taken, and while a command walks far.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use super::*;

/// Far more keys than a command may walk over on a serving thread.
const KEYS: usize = 3_000;

struct Stand {
    server: Option<Server>,
    directory: PathBuf,
}

impl Stand {
    fn new(name: &str, workers: usize) -> Self {
        let directory = format!("levelhead-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&directory);
        let mut stand = Self { server: None, directory };
        stand.server = Some(stand.start(workers));
        stand
    }

    fn start(&self, workers: usize) -> Server {
        let store_options = levelhead::Options {
            capacity_bytes: 512 << 20,
            memtable_bytes: 1 << 20,
            ..levelhead::Options::default()
        };
        let store = Store::open(&self.directory, &store_options).expect("a directory of our own");
        let listen = Some(([127, 0, 0, 1], 0).into());
        let options = Options { listen, workers, ..Options::default() };
        Server::start(store, options, Clock::system()).expect("a store of our own")
    }

    fn state(&self) -> &State {
        &self.server.as_ref().expect("it runs").state
    }

    fn connect(&self) -> TcpStream {
        let addresses = self.server.as_ref().expect("it runs").addresses();
        let stream = TcpStream::connect(addresses.tcp.expect("it listens")).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket takes that");
        stream
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.server = None;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn receive(stream: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket takes that");
    let early = stream.read(&mut [0]);
    stream.set_nonblocking(false).expect("a socket takes that");
    early.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// While all turns in the store are taken, commands that need no store are answered; the rest of
/// each pipeline follows in order once a turn is free.
#[test]
fn what_needs_no_store_waits_for_nobody() {
    let mut stand = Stand::new("turns", 2);
    let turn = stand.state().in_store.try_acquire().expect("nobody has it");
    assert!(stand.state().in_store.try_acquire().is_err(), "the other thread is kept out");
    let connect = || {
        let stream = stand.connect();
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes that");
        stream
    };
    let mut waiting: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
    for stream in &mut waiting {
        stream.write_all(b"PING\r\nSET a b\r\nECHO hi\r\nGET a\r\n").expect("it reads");
        receive(stream, "+PONG\r\n");
    }
    let mut other = connect();
    other.write_all(b"MULTI\r\nGET a\r\nDISCARD\r\nDBSIZE\r\nINFO memory\r\n").expect("it reads");
    receive(&mut other, "+OK\r\n+QUEUED\r\n+OK\r\n:0\r\n$");
    assert!(is_silent(&mut waiting[0]), "it waits");
    drop(turn);
    for stream in &mut waiting {
        receive(stream, "+OK\r\n$2\r\nhi\r\n$1\r\nb\r\n");
    }
    let server = stand.server.take().expect("it runs");
    server.stop().expect("nothing is in the way");
}

/// A long walk releases its thread and its turn in the store, and waits for a turn on a thread of
/// its own; its reply is a snapshot.
#[test]
fn others_are_answered_before_a_long_walk_has_its_turn() {
    let stand = Stand::new("far-turns", 1);
    let key = |number| format!("key:{number:05}");
    let access = stand.state().database.access();
    for number in 0..KEYS {
        let mut batch = crate::data::batch::Batch::default();
        access.put_string(&mut batch, key(number).as_bytes(), b"v", None).expect("it is short");
        access.write(batch).expect("there is room");
    }
    let turns = stand.state().far.try_acquire_many(FAR as u32).expect("nobody walks");
    let (mut walker, mut other) = (stand.connect(), stand.connect());
    walker.write_all(b"PING\r\nKEYS *\r\nPING\r\n").expect("it reads");
    receive(&mut walker, "+PONG\r\n");
    other.write_all(b"SET key:00007 w\r\nGET key:00007\r\n").expect("it reads");
    receive(&mut other, "+OK\r\n$1\r\nw\r\n");
    assert!(is_silent(&mut walker), "it waits for its turn");
    drop(turns);
    let keys = joined((0..KEYS).map(|number| format!("$9\r\n{}\r\n", key(number))));
    receive(&mut walker, &format!("*{KEYS}\r\n{keys}+PONG\r\n"));
}

/// A command on a thread of its own delays no other connection while it waits. It counts as one
/// write for watched keys although it runs twice.
#[test]
fn others_are_answered_while_a_long_command_runs() {
    let stand = Stand::new("far-runs", 1);
    let (mut long, mut other) = (stand.connect(), stand.connect());
    other.write_all(b"HSET h f 1\r\n").expect("it reads");
    receive(&mut other, ":1\r\n");
    long.write_all(b"WATCH h\r\nMULTI\r\n").expect("it reads");
    receive(&mut long, "+OK\r\n+OK\r\n");
    let commands = "HINCRBY h f 1\r\n".repeat(400);
    long.write_all(commands.as_bytes()).expect("it reads");
    receive(&mut long, &"+QUEUED\r\n".repeat(400));
    let lock = stand.state().database.locks.hold(&[b"h"], &[]);
    long.write_all(b"HINCRBY h f 1\r\nEXEC\r\n").expect("it reads");
    receive(&mut long, "+QUEUED\r\n");
    for _ in 0..100 {
        other.write_all(b"SET a b\r\nGET a\r\n").expect("it reads");
        receive(&mut other, "+OK\r\n$1\r\nb\r\n");
    }
    assert!(is_silent(&mut long), "its key is locked");
    drop(lock);
    let sums = joined((2..403).map(|sum| format!(":{sum}\r\n")));
    receive(&mut long, &format!("*401\r\n{sums}"));
}

/// A transaction that is still running when the server stops has no effect, and its client gets an
/// error.
#[test]
fn a_long_transaction_ends_with_the_server() {
    let mut stand = Stand::new("far-stops", 2);
    let mut client = stand.connect();
    client.write_all(b"SET a b\r\nMULTI\r\n").expect("it reads");
    receive(&mut client, "+OK\r\n+OK\r\n");
    client.write_all("HINCRBY h f 1\r\n".repeat(600).as_bytes()).expect("it reads");
    receive(&mut client, &"+QUEUED\r\n".repeat(600));
    let server = stand.server.take().expect("it runs");
    let state = Arc::clone(&server.state);
    let lock = state.database.locks.hold(&[b"h"], &[]);
    client.write_all(b"EXEC\r\n").expect("it reads");
    let wait_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            thread::park_timeout(Duration::from_millis(1));
        }
    };
    wait_until(&|| state.far.available_permits() < FAR);
    let stopper = thread::Builder::new().spawn(move || server.stop()).expect("a thread");
    wait_until(&|| state.database.stops.load(Ordering::SeqCst));
    drop(lock);
    let told = "-EXECABORT Transaction discarded because of: the server stops, and the command was not carried out to its end\r\n";
    receive(&mut client, told);
    stopper.join().expect("it ends").expect("nothing is in the way");
    let access = state.database.access();
    assert!(access.write(one("late")).is_err(), "nothing is written behind the end");
    drop(access);
    drop(state);
    let server = stand.start(2);
    stand.server = Some(server);
    let access = stand.state().database.access();
    assert_eq!(access.count().map(|count| count.to_string()), Ok("1".to_owned()));
}

fn one(key: &str) -> crate::data::batch::Batch {
    let mut batch = crate::data::batch::Batch::default();
    batch.put(&crate::data::keys::string(key.as_bytes()), b"v".to_vec());
    batch
}
