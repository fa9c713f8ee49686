//! Servers that end during writes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use server::resp::Value;

use super::process::{Client, Process, Scratch};

/// Rounds of each test; `LEVELHEAD_ROUNDS` overrides it.
const ROUNDS: u64 = 20;
/// Clients that write.
const WRITERS: u64 = 4;
/// Pipelined commands of a client.
const DEPTH: u64 = 8;
/// Rounds on one store, before it is full.
const ROUNDS_EACH: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "a test may be told from outside")]
fn rounds() -> u64 {
    let wanted = std::env::var("LEVELHEAD_ROUNDS").ok();
    wanted.map_or(ROUNDS, |rounds| rounds.parse().expect("LEVELHEAD_ROUNDS is a number"))
}

fn key(writer: u64, number: u64) -> Vec<u8> {
    format!("{writer}:{number}").into_bytes()
}

fn value(writer: u64, number: u64) -> Vec<u8> {
    vec![b'a' + (writer + number) as u8 % 26; 50 + (number % 500) as usize]
}

fn counter(writer: u64) -> Vec<u8> {
    format!("counter:{writer}").into_bytes()
}

/// The acknowledged writes of each writer: keys below this number; its counter is at least this
/// number.
type Acknowledged = [u64; WRITERS as usize];

/// Sets keys from `first` on and counts each of them, until the server is gone. Returns the number
/// acknowledged, `first` included.
fn write(mut client: Client, writer: u64, first: u64, seen: &AtomicU64) -> u64 {
    let mut acknowledged = first;
    loop {
        let numbers = acknowledged..acknowledged + DEPTH;
        let commands = numbers.flat_map(|number| {
            let set = vec![b"SET".to_vec(), key(writer, number), value(writer, number)];
            [set, vec![b"INCR".to_vec(), counter(writer)]]
        });
        if !client.send(&commands.collect::<Vec<_>>()) {
            return acknowledged;
        }
        for _ in 0..DEPTH {
            match (client.receive(), client.receive()) {
                (Some(Value::Simple(ok)), Some(Value::Integer(_))) if ok == "OK" => {}
                (Some(_), None) | (None, _) => return acknowledged,
                other => panic!("{other:?} is no answer to SET and INCR"),
            }
            acknowledged += 1;
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Lets clients write for a while. Returns their threads, to be joined once the server is gone.
fn load(address: SocketAddr, before: &Acknowledged, millis: u64) -> Vec<JoinHandle<u64>> {
    let seen = Arc::new(AtomicU64::new(0));
    let writers = (0..WRITERS).zip(before).map(|(writer, &first)| {
        let (seen, client) = (Arc::clone(&seen), Client::connect(address));
        let named = thread::Builder::new().name(format!("writer {writer}"));
        named.spawn(move || write(client, writer, first, &seen)).expect("a thread")
    });
    let writers = writers.collect();
    while seen.load(Ordering::Relaxed) == 0 {
        thread::park_timeout(Duration::from_millis(1));
    }
    thread::park_timeout(Duration::from_millis(millis));
    writers
}

/// Checks that all acknowledged keys from `from` on exist.
fn check(address: SocketAddr, from: &Acknowledged, to: &Acknowledged, what: &str) {
    let mut client = Client::connect(address);
    for (writer, (&from, &to)) in (0..WRITERS).zip(from.iter().zip(to)) {
        let counted = match client.ask(&[b"GET", &counter(writer)]) {
            Value::Bulk(bytes) => String::from_utf8(bytes).expect("a number").parse(),
            Value::Null => Ok(0),
            other => panic!("{what}: counter {writer} of {to}: {other:?}"),
        };
        let counted: u64 = counted.expect("a number");
        assert!(counted >= to, "{what}: {counted} on counter {writer}, {to} acknowledged");
        // The counter includes commands that were executed but not answered: at most the pipelined
        // ones of each round.
        let numbers: Vec<u64> = (from..to).collect();
        for numbers in numbers.chunks(200) {
            let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(writer, *number)).collect();
            let words = [&b"MGET"[..]].into_iter().chain(keys.iter().map(Vec::as_slice));
            let Value::Array(found) = client.ask(&words.collect::<Vec<_>>()) else {
                panic!("{what}: no array")
            };
            for (number, found) in numbers.iter().zip(found) {
                let is_right =
                    matches!(&found, Value::Bulk(bytes) if *bytes == value(writer, *number));
                assert!(is_right, "{what}: key {writer}:{number} of {to} has {found:?}");
            }
        }
    }
}

/// Ends servers repeatedly during writes.
fn rounds_of(name: &str, durability: &str, rounds: u64, end: fn(Process)) {
    let scratch = Scratch::new(&format!("serves-{name}-{durability}"));
    let more = ["--durability", durability];
    let (mut acknowledged, mut directory) = ([0; WRITERS as usize], scratch.0.join("0"));
    let mut server = None;
    for round in 0..rounds {
        if round > 0 && round % ROUNDS_EACH == 0 {
            drop(server.take());
            let _ = std::fs::remove_dir_all(&directory);
            (acknowledged, directory) = ([0; WRITERS as usize], scratch.0.join(round.to_string()));
        }
        let running = server.take().unwrap_or_else(|| Process::start(&directory, &more));
        let writers = load(running.address, &acknowledged, round * 37 % 90);
        end(running);
        let before = acknowledged;
        for (writer, acknowledged) in writers.into_iter().zip(&mut acknowledged) {
            *acknowledged = writer.join().expect("it ends with the server");
        }
        let again = Process::start(&directory, &more);
        let what = format!("{durability}, round {round}");
        check(again.address, &before, &acknowledged, &what);
        if round % ROUNDS_EACH == ROUNDS_EACH - 1 {
            check(again.address, &[0; WRITERS as usize], &acknowledged, &what);
        }
        server = Some(again);
    }
    println!("{durability}: {} keys acknowledged at last", acknowledged.iter().sum::<u64>());
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged_with_others() {
    rounds_of("killed", "group", rounds(), Process::kill);
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged_by_itself() {
    rounds_of("killed", "each", rounds(), Process::kill);
}

/// With any durability, a server that is asked to end makes all its data durable.
#[test]
fn being_asked_to_end_loses_nothing() {
    for durability in ["group", "interval", "none"] {
        rounds_of("ended", durability, rounds().div_ceil(4), Process::stop);
    }
}

/// Keys of a writer that each of its transactions changes, all to the same number.
const PARTS: u64 = 5;

fn part(writer: u64, part: u64) -> Vec<u8> {
    format!("part:{writer}:{part}").into_bytes()
}

/// Returns a transaction: a number in some strings, in a hash field and as a score, and one more
/// member of a set.
fn transaction(writer: u64, number: u64) -> Vec<Vec<Vec<u8>>> {
    let own = |kind: &str| format!("{kind}:{writer}").into_bytes();
    let text = number.to_string().into_bytes();
    let mut commands = vec![vec![b"MULTI".to_vec()]];
    let sets = (0..PARTS).map(|n| vec![b"SET".to_vec(), part(writer, n), text.clone()]);
    commands.extend(sets);
    commands.push(vec![b"HSET".to_vec(), own("hash"), b"number".to_vec(), text.clone()]);
    commands.push(vec![b"ZADD".to_vec(), own("sorted"), text.clone(), text]);
    commands.push(vec![b"EXEC".to_vec()]);
    commands
}

/// Executes transactions, two at a time, until the server is gone. Returns the last number
/// acknowledged.
fn transact(mut client: Client, writer: u64, seen: &AtomicU64) -> u64 {
    let replies = transaction(writer, 0).len();
    let mut acknowledged = 0;
    loop {
        let both = [acknowledged + 1, acknowledged + 2].map(|number| transaction(writer, number));
        if !client.send(&both.concat()) {
            return acknowledged;
        }
        for _ in 0..both.len() {
            for _ in 1..replies {
                if client.receive().is_none() {
                    return acknowledged;
                }
            }
            match client.receive() {
                Some(Value::Array(all)) => assert_eq!(all.len(), replies - 2),
                Some(other) => panic!("{other:?} is no answer to EXEC"),
                None => return acknowledged,
            }
            acknowledged += 1;
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Checks that all parts of a writer's transactions have the same number.
fn check_transactions(client: &mut Client, writer: u64, acknowledged: u64, what: &str) {
    let own = |kind: &str| format!("{kind}:{writer}").into_bytes();
    let number = |value: Value| match value {
        Value::Bulk(bytes) => String::from_utf8(bytes).expect("a number").parse().expect("one"),
        Value::Integer(number) => number as u64,
        Value::Null => 0,
        other => panic!("{what}: {other:?} is no number"),
    };
    let first = number(client.ask(&[b"GET", &part(writer, 0)]));
    assert!(first >= acknowledged, "{what}: {first} is there, {acknowledged} acknowledged");
    for n in 1..PARTS {
        assert_eq!(number(client.ask(&[b"GET", &part(writer, n)])), first, "{what}: part {n}");
    }
    let field = number(client.ask(&[b"HGET", &own("hash"), b"number"]));
    let members = number(client.ask(&[b"ZCARD", &own("sorted")]));
    assert_eq!((field, members), (first, first), "{what}: the hash and the sorted set");
}

/// After a kill every transaction is present completely or not at all.
#[test]
fn a_kill_leaves_all_of_a_transaction_or_nothing() {
    for round in 0..rounds().div_ceil(2) {
        let scratch = Scratch::new("serves-transactions");
        let durability = ["group", "none", "interval", "each"][round as usize % 4];
        let more = ["--durability", durability];
        let running = Process::start(&scratch.0, &more);
        let seen = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (seen, client) = (Arc::clone(&seen), Client::connect(running.address));
                let named = thread::Builder::new().name(format!("writer {writer}"));
                named.spawn(move || transact(client, writer, &seen)).expect("a thread")
            })
            .collect();
        while seen.load(Ordering::Relaxed) == 0 {
            thread::park_timeout(Duration::from_millis(1));
        }
        thread::park_timeout(Duration::from_millis(round * 37 % 90));
        running.kill();
        let acknowledged: Vec<u64> =
            writers.into_iter().map(|writer| writer.join().expect("it ends")).collect();
        let again = Process::start(&scratch.0, &more);
        let mut client = Client::connect(again.address);
        for (writer, &number) in (0..WRITERS).zip(&acknowledged) {
            // With the other settings an acknowledged transaction becomes durable a little later.
            let least = if matches!(durability, "group" | "each") { number } else { 0 };
            let what = format!("{durability}, round {round}, writer {writer}");
            check_transactions(&mut client, writer, least, &what);
        }
        println!("{durability}: {} transactions", acknowledged.iter().sum::<u64>());
    }
}
