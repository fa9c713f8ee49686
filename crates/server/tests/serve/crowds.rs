//! Many clients, slow clients and hostile clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::{Client, directory, encode, start, tcp};
use server::{Clock, Options};

/// Counting by concurrent clients is exact.
#[test]
fn nobody_counts_twice() {
    let server = start(&directory("counting"), Options::default(), Clock::system());
    let address = tcp(&server);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let count = move || {
                let mut client = Client::connect(address);
                for _ in 0..100 {
                    client.send(&[b"INCR", b"n"]);
                    client.send(&[b"HINCRBY", b"h", b"f", b"1"]);
                    client.send(&[b"ZINCRBY", b"z", b"1", b"m"]);
                }
                (0..300).for_each(|_| assert!(client.receive().is_some()));
            };
            std::thread::Builder::new().spawn(count).expect("a thread")
        })
        .collect();
    for thread in threads {
        thread.join().expect("it ends");
    }
    let mut client = Client::of(&server);
    assert_eq!(client.say("GET n"), "800");
    assert_eq!(client.say("HGET h f"), "800");
    assert_eq!(client.say("ZSCORE z m"), "800");
    assert_eq!(client.say("DBSIZE"), "3");
}

/// A client that does not read its replies delays only itself.
#[test]
fn a_slow_client_stalls_itself() {
    let server = start(&directory("slow"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    client.send(&[b"SET", b"big", &vec![b'v'; 200_000]]);
    assert!(client.receive().is_some());
    let mut slow = Client::of(&server);
    let _ = slow.stream.set_write_timeout(Some(Duration::from_millis(200)));
    let gets = encode(&[b"GET", b"big"]).repeat(5_000);
    let _ = slow.stream.write_all(&gets);
    for _ in 0..100 {
        assert_eq!(client.say("STRLEN big"), "200000");
    }
    let held = client.say("INFO clients");
    let held = held.lines().find_map(|line| line.strip_prefix("client_buffer_bytes:"));
    let held: usize = held.expect("a line").parse().expect("a number");
    assert!(held < 8 << 20, "{held} bytes are held for one that does not read");
    // The slow client gets all replies once it reads.
    for _ in 0..10 {
        assert!(slow.receive().is_some());
    }
}

/// With values longer than one read of the socket, every read ends in the middle of a command.
#[test]
fn a_pipeline_may_be_longer_than_what_is_kept_of_one() {
    const SETS: usize = 200;
    let options = Options { query_bytes: 1 << 20, ..Options::default() };
    let server = start(&directory("long-pipeline"), options, Clock::system());
    let mut client = Client::of(&server);
    let mut stream = client.stream.try_clone().expect("a socket");
    let sets = encode(&[b"SET", b"k", &vec![b'v'; 50_000]]).repeat(SETS);
    let send = move || stream.write_all(&sets);
    let sender = std::thread::Builder::new().spawn(send).expect("a thread");
    let said = (0..SETS).take_while(|_| client.receive().is_some()).count();
    assert_eq!(said, SETS);
    sender.join().expect("it ends").expect("all of it is taken");
}

#[test]
fn there_is_room_for_so_many() {
    let options = Options { max_clients: 3, ..Options::default() };
    let server = start(&directory("room"), options, Clock::system());
    let mut clients: Vec<Client> = (0..3).map(|_| Client::of(&server)).collect();
    assert!(clients.iter_mut().all(|client| client.say("PING") == "PONG"));
    let mut refused = String::new();
    let mut one_more = TcpStream::connect(tcp(&server)).expect("it listens");
    one_more.read_to_string(&mut refused).expect("an answer");
    assert_eq!(refused, "-ERR max number of clients reached\r\n");
}

/// The buffers of all clients stay within the limit: the largest client is closed.
#[test]
fn memory_of_clients_is_bounded() {
    let options = Options { client_bytes: 4 << 20, ..Options::default() };
    let server = start(&directory("bounded"), options, Clock::system());
    let mut hostile: Vec<Client> = (0..6).map(|_| Client::of(&server)).collect();
    let part = [&b"*2\r\n$3\r\nGET\r\n$4000000\r\n"[..], &vec![b'x'; 2 << 20]].concat();
    for client in &mut hostile {
        let _ = client.stream.write_all(&part);
    }
    let mut client = Client::of(&server);
    for _ in 0..200 {
        assert_eq!(client.say("PING"), "PONG");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let info = client.say("INFO clients");
    let held = info.lines().find_map(|line| line.strip_prefix("client_buffer_bytes:"));
    let held: usize = held.expect("a line").parse().expect("a number");
    assert!(held <= 4 << 20, "{held} bytes are held");
}

/// Idle connections and a hundred that send garbage or incomplete commands, while another client
/// works.
fn crowd(name: &str, idle: usize) {
    let options = Options { max_clients: 20_000, ..Options::default() };
    let server = start(&directory(name), options, Clock::system());
    let address = tcp(&server);
    let connect = |_| TcpStream::connect(address).expect("there is room");
    let crowd: Vec<TcpStream> = (0..idle).map(connect).collect();
    let mut hostile: Vec<TcpStream> = (0..100).map(connect).collect();
    for (number, stream) in hostile.iter_mut().enumerate() {
        let bytes: &[u8] = match number % 5 {
            0 => b"*1000000\r\n$3\r\nSET\r\n",
            1 => b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$8388608\r\npart",
            2 => b"\xff\xfe\0\r\n",
            3 => b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            _ => b"*-1\r\n*0\r\n\r\n\r\n$$$$\r\n",
        };
        let _ = stream.write_all(bytes);
    }
    let mut client = Client::connect(address);
    for number in 0..200 {
        assert_eq!(client.say(&format!("SET k{number} v")), "OK");
        assert_eq!(client.say(&format!("GET k{number}")), "v");
    }
    let info = client.say("INFO clients");
    let figure = |name: &str| -> usize {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a line").parse().expect("a number")
    };
    assert!(figure("connected_clients:") > idle);
    assert!(figure("client_buffer_bytes:") < 4 << 20, "{info}");
    drop(crowd);
}

#[test]
fn some_hundred_idle_and_a_hundred_hostile() {
    crowd("crowd", 400);
}

/// Needs 20,000 open files: `cargo test -p server -- --ignored ten_thousand`, after
/// `ulimit -n 30000`.
#[test]
#[ignore = "needs 20,000 open files; .ci/clients runs it with a limit that allows that"]
fn ten_thousand_idle_and_a_hundred_hostile() {
    crowd("large-crowd", 10_000);
}
