//! A hundred hostile connections beside a client that works.

use std::io::Write;
use std::net::TcpStream;

use server::resp::Value;

use super::crowd::resident;
use super::process::{Client, Process, Scratch};

const HOSTILE: usize = 100;
/// The limit on the buffers of all connections, in MiB.
const CLIENTS_MIB: u64 = 48;

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Returns the bytes that the attackers send. None of them reads replies.
fn attacks() -> [Vec<u8>; 8] {
    let set = encode(&[b"SET", b"hostile", &vec![b'v'; 10_000]]);
    [
        // Lengths without the data.
        b"*1048576\r\n$8388608\r\n".to_vec(),
        b"*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n".to_vec(),
        // Half a command of a million arguments, each of which is kept in memory.
        [&b"*1048576\r\n"[..], &b"$0\r\n\r\n".repeat(1_000_000)].concat(),
        // Half a command with a long argument.
        [&b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$8000000\r\n"[..], &vec![b'x'; 6 << 20]].concat(),
        // Replies that are never read.
        encode(&[b"GET", b"big"]).repeat(20_000),
        // A transaction that is never completed.
        [encode(&[b"MULTI"]), set.repeat(500)].concat(),
        // Lines without an end, and bytes that are no valid protocol.
        b"GET ".repeat(15_000),
        (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
    ]
}

/// Sends as much as the server accepts without a long wait, and keeps the connection open.
fn attack(mut stream: TcpStream, bytes: &[u8]) -> TcpStream {
    let _ = stream.set_write_timeout(Some(std::time::Duration::from_millis(300)));
    // The server may close the connection or let it wait: both are correct.
    let _ = stream.write_all(bytes);
    stream
}

/// Returns the bytes in buffers of connections by the server's own accounting.
fn held(client: &mut Client) -> u64 {
    let Value::Bulk(info) = client.ask(&[b"INFO", b"clients"]) else { panic!("no text") };
    let text = String::from_utf8(info).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix("client_buffer_bytes:"));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

#[test]
fn a_hundred_hostile_connections_take_bounded_memory_and_stall_nobody() {
    let scratch = Scratch::new("serves-hostile");
    let most = format!("{CLIENTS_MIB}MiB");
    let server = Process::start(&scratch.0, &["--maxmemory-clients", &most]);
    let address = server.address;
    let mut client = Client::connect(address);
    let ok = Value::Simple("OK".to_owned());
    assert_eq!(client.ask(&[b"SET", b"big", &vec![b'v'; 200_000]]), ok);
    let before = resident(server.id());
    let attacks = attacks();
    let attackers: Vec<_> = (0..4)
        .map(|first| {
            let attacks = attacks.clone();
            let thread = std::thread::Builder::new();
            let run = move || {
                let numbers = (first..HOSTILE).step_by(4);
                let connect = |_: &usize| TcpStream::connect(address).expect("there is room");
                let begun: Vec<_> = numbers.map(|number| (connect(&number), number)).collect();
                let attacked = begun.into_iter();
                let attacked = attacked.map(|(stream, n)| attack(stream, &attacks[n / 4 % 8]));
                attacked.collect::<Vec<TcpStream>>()
            };
            thread.spawn(run).expect("a thread")
        })
        .collect();
    // A well-behaved client is served: a reply that takes ten seconds fails the test.
    let (mut most, mut most_held) = (0, 0);
    let mut rounds = 0;
    while rounds < 200 || attackers.iter().any(|attacker| !attacker.is_finished()) {
        rounds += 1;
        assert_eq!(client.ask(&[b"SET", b"a", b"c"]), ok);
        assert_eq!(client.ask(&[b"GET", b"a"]), Value::Bulk(b"c".to_vec()));
        most = most.max(resident(server.id()));
        most_held = most_held.max(held(&mut client));
    }
    let connections: Vec<_> =
        attackers.into_iter().flat_map(|attacker| attacker.join().expect("it ends")).collect();
    let grown = most.saturating_sub(before) >> 20;
    println!(
        "{grown} MiB for {} connections, {} MiB accounted for, {rounds} rounds",
        connections.len(),
        most_held >> 20
    );
    // Data that was just read or just sent may exceed the limit until a connection has been closed.
    assert!(most_held <= (CLIENTS_MIB + 4) << 20, "{most_held} bytes are held");
    // Without a limit the attackers take 589 MiB. Half of the limit on top is the margin that
    // docs/serve.md states, for work in progress on eight threads and the allocator's overhead. 45
    // to 59 MiB were measured.
    let bound = CLIENTS_MIB * 3 / 2;
    assert!(grown <= bound, "{grown} MiB for {} connections", connections.len());
    drop(connections);
    assert_eq!(client.ask(&[b"GET", b"a"]), Value::Bulk(b"c".to_vec()));
    assert_eq!(client.ask(&[b"EXISTS", b"hostile"]), Value::Integer(0));
    server.stop();
}
