//! Clients that send a whole pipeline before they read the first reply.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::client::{Client, directory, encode, start, tcp};
use crate::secret::{certificates, connect, served};
use levelhead::Store;
use server::{Clock, Options, Server};

/// Too many for the sockets and the server's reply buffers.
const GETS: usize = 150_000;
const PATIENCE: Duration = Duration::from_mins(2);

fn key() -> Vec<u8> {
    b"k".repeat(200)
}

/// Returns the reply to each GET.
fn reply() -> Vec<u8> {
    [&b"$1000\r\n"[..], &b"v".repeat(1_000), b"\r\n"].concat()
}

fn set(client: &mut Client) {
    client.send(&[b"SET", &key(), &b"v".repeat(1_000)]);
    assert!(client.receive().is_some());
}

fn gets(count: usize) -> Vec<u8> {
    encode(&[b"GET", &key()]).repeat(count)
}

fn expect_replies(stream: &mut impl Read, count: usize) {
    let expected = reply().repeat(100);
    let mut said = vec![0; expected.len()];
    for hundred in 0..count / 100 {
        stream.read_exact(&mut said).expect("the server answers");
        assert!(said == expected, "replies {hundred}00 and behind");
    }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes that");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes that");
    stream
}

fn start_unix(name: &str, options: Options) -> (Server, UnixStream) {
    // The path of a socket is limited to about 100 bytes.
    let path = std::env::temp_dir().join(format!("lh-{name}-{}", std::process::id()));
    let options = Options { unix: Some(path.clone()), ..options };
    let server = start(&directory(name), options, Clock::system());
    let stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes that");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes that");
    (server, stream)
}

fn figure(client: &mut Client, section: &str, name: &str) -> usize {
    let info = client.say(&format!("INFO {section}"));
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a line").parse().expect("a number")
}

/// A file that is not a socket is left alone.
#[test]
fn a_file_is_not_taken_for_a_socket() {
    let path = std::env::temp_dir().join(format!("lh-no-socket-{}", std::process::id()));
    std::fs::write(&path, "precious").expect("it is ours");
    let options = Options { listen: None, unix: Some(path.clone()), ..Options::default() };
    let wanted = levelhead::Options { capacity_bytes: 64 << 20, ..levelhead::Options::default() };
    let store = Store::open(directory("no-socket"), &wanted).expect("a directory of our own");
    let refused = Server::start(store, options, Clock::system()).map(drop);
    let refused = refused.expect_err("it is a file").to_string();
    assert!(refused.contains("lh-no-socket"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "precious");
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn all_is_sent_before_a_reply_is_read_over_a_unix_socket() {
    let (server, mut stream) = start_unix("pipeline-unix", Options::default());
    let mut client = Client::of(&server);
    set(&mut client);
    stream.write_all(&gets(GETS)).expect("the server reads on");
    // Commands wait in memory, and not replies, which are five times as long. Other clients are
    // served.
    let held = figure(&mut client, "clients", "client_buffer_bytes");
    assert!(held < 100 << 20, "{held} bytes are held");
    expect_replies(&mut stream, GETS);
    let mut none = [0];
    stream.write_all(b"QUIT\r\n").expect("it reads");
    stream.read_exact(&mut [0; 5]).expect("it says OK");
    assert_eq!(stream.read(&mut none).expect("it hangs up"), 0);
}

#[test]
fn all_is_sent_before_a_reply_is_read_over_tcp() {
    let server = start(&directory("pipeline-tcp"), Options::default(), Clock::system());
    set(&mut Client::of(&server));
    let mut stream = patient(TcpStream::connect(tcp(&server)).expect("it listens"));
    stream.write_all(&gets(GETS)).expect("the server reads on");
    expect_replies(&mut stream, GETS);
}

#[test]
fn all_is_sent_before_a_reply_is_read_over_tls() {
    let Some(certificates) = certificates("pipeline-certificates") else { return };
    let (server, address) = served(&certificates, "pipeline-tls", false);
    set(&mut Client::of(&server));
    let mut stream = connect(address, &certificates, false);
    stream.sock = patient(stream.sock);
    stream.write_all(&gets(GETS)).expect("the server reads on");
    stream.flush().expect("the server reads on");
    expect_replies(&mut stream, GETS);
}

/// A client that has closed its sending side gets all replies.
#[test]
fn replies_come_after_the_last_command() {
    let (server, mut stream) = start_unix("pipeline-half", Options::default());
    set(&mut Client::of(&server));
    stream.write_all(&gets(10_000)).expect("the server reads on");
    stream.shutdown(Shutdown::Write).expect("a socket takes that");
    expect_replies(&mut stream, 10_000);
    assert_eq!(stream.read(&mut [0]).expect("it hangs up"), 0);
}

/// Sends more than the limit, reads all replies and returns the last line.
fn last_words(stream: &mut (impl Read + Write), sent: &[u8]) -> String {
    stream.write_all(sent).expect("what is too much is read, too");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("it hangs up properly");
    let replies = said.chunks(reply().len()).take_while(|said| **said == reply()).count();
    String::from_utf8_lossy(&said[replies * reply().len()..]).into_owned()
}

#[test]
fn who_sends_more_than_may_wait_is_told() {
    let options = Options { query_bytes: 1 << 20, patience_ms: 100, ..Options::default() };
    let (server, mut stream) = start_unix("pipeline-stuck", options);
    let mut client = Client::of(&server);
    set(&mut client);
    let begin = "-ERR no reply was taken for 100 ms, and ";
    let said = last_words(&mut stream, &gets(GETS));
    assert!(said.starts_with(begin) && said.ends_with("read replies while you send\r\n"), "{said}");
    let mut stream = patient(TcpStream::connect(tcp(&server)).expect("it listens"));
    let said = last_words(&mut stream, &gets(GETS));
    assert!(said.starts_with(begin), "{said}");
    assert_eq!(figure(&mut client, "stats", "clients_ended_that_took_no_replies"), 2);
    // A command that exceeds the argument limit as well.
    let mut stream = patient(TcpStream::connect(tcp(&server)).expect("it listens"));
    let long = [&b"*2\r\n$3\r\nGET\r\n$8000000\r\n"[..], &vec![b'x'; 4 << 20]].concat();
    let said = last_words(&mut stream, &long);
    assert_eq!(said, "-ERR a command has at most 1048576 bytes (client-query-buffer-limit)\r\n");
}

/// Clients that read no replies can be killed, and do not delay a stop.
#[test]
fn who_takes_no_replies_can_be_ended() {
    let options = Options { grace_ms: 10, ..Options::default() };
    let (server, mut stream) = start_unix("pipeline-killed", options);
    let mut client = Client::of(&server);
    set(&mut client);
    stream.write_all(&gets(GETS)).expect("the server reads on");
    let list = client.say("CLIENT LIST");
    let line = list.lines().find(|line| line.contains("lh-pipeline-killed")).expect("its line");
    let id = line.split(' ').find_map(|word| word.strip_prefix("id=")).expect("its number");
    assert_eq!(client.say(&format!("CLIENT KILL Id {id}")), "1");
    while figure(&mut client, "clients", "connected_clients") > 1 {}
    let mut stream = patient(TcpStream::connect(tcp(&server)).expect("it listens"));
    stream.write_all(&gets(GETS)).expect("the server reads on");
    server.stop().expect("nothing is in the way");
}
