//! Full stores, which must still accept removals.

use std::path::Path;
use std::time::Duration;

use faultfs::{Fails, FaultFs, Faults, Kind};
use server::{Clock, Options, Server};

use crate::client::{Client, directory, faulty};

fn start(directory: &Path) -> Server {
    let options = levelhead::Options {
        capacity_bytes: 64 << 20,
        memtable_bytes: 1 << 20,
        // The file system may be served by this process: see `start_by`.
        io: levelhead::Io::Threads,
        ..levelhead::Options::default()
    };
    let store = levelhead::Store::open(directory, &options).expect("it is ours");
    let options = Options { listen: Some(([127, 0, 0, 1], 0).into()), ..Options::default() };
    Server::start(store, options, Clock::system()).expect("a store of our own")
}

/// Fills the store with sorted sets and hashes of 250 elements, by number. Returns how many there
/// are.
fn fill(client: &mut Client, kinds: &str) -> u32 {
    for number in 0_u32.. {
        let member = |n: u32| format!(" {n} {:0100}", number * 250 + n);
        let members: String = (0..250).map(member).collect();
        let said = client.say(&format!("ZADD {kinds}z{number}{members}"));
        if said != "250" {
            assert!(said.starts_with("-OOM"), "{said}");
            return number;
        }
        let said = client.say(&format!("HSET {kinds}h{number}{members}"));
        if said != "250" {
            assert!(said.starts_with("-OOM"), "{said}");
            client.say(&format!("DEL {kinds}z{number}"));
            return number;
        }
    }
    unreachable!("numbers do not run out")
}

/// A full store drops snapshots early; a flush removes all keys nevertheless.
#[test]
fn it_is_flushed() {
    let server = start(&directory("full"));
    let mut client = Client::of(&server);
    fill(&mut client, "");
    assert_eq!(client.say("FLUSHALL"), "OK");
    assert_eq!(client.say("DBSIZE"), "0");
    server.stop().expect("nothing is in the way");
}

#[test]
fn what_takes_something_away_is_taken_and_the_server_stops_properly() {
    let directory = directory("full-deletes");
    let server = start(&directory);
    let mut client = Client::of(&server);
    let there = fill(&mut client, "");
    assert!(there > 20, "{there} of each");
    for number in 0..there {
        let [z, h] = ["z", "h"].map(|kind| format!("{kind}{number}"));
        match number % 4 {
            0 => {
                assert_eq!(client.say(&format!("DEL {z} {h}")), "2", "{number}");
            }
            1 => {
                assert_eq!(client.say(&format!("EXPIRE {z} -1")), "1", "{number}");
                assert_eq!(client.say(&format!("HDEL {h} 1 2 3")), "3", "{number}");
            }
            2 => {
                let first = format!("{:0100}", number * 250);
                assert_eq!(client.say(&format!("ZREM {z} {first}")), "1", "{number}");
                assert_eq!(client.say(&format!("ZREMRANGEBYRANK {z} 0 99")), "100", "{number}");
                assert_eq!(client.say("MULTI"), "OK");
                assert_eq!(client.say(&format!("DEL {h}")), "QUEUED");
                assert_eq!(client.say("EXEC"), "[1]", "{number}");
            }
            _ => assert_eq!(
                client.say(&format!("ZPOPMIN {z} 1")),
                format!("[{:0100} 0]", number * 250)
            ),
        }
    }
    // Dropped data is swept and its space reused.
    let is_taken = |client: &mut Client| {
        (0..4_000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(5));
            client.say("SET a b") == "OK"
        })
    };
    assert!(is_taken(&mut client), "{}", client.say("SET a b"));
    fill(&mut client, "more");
    let count = client.say("DBSIZE");
    server.stop().expect("a full store is closed as well");
    let server = start(&directory);
    let mut client = Client::of(&server);
    for _ in 0..4_000 {
        if client.say("INFO keyspace").contains("keys_being_counted:0") {
            break;
        }
    }
    assert_eq!(client.say("DBSIZE"), count);
}

/// Mounts a disk of this size, or returns `None` without FUSE.
fn disk(name: &str, room: u64) -> Option<FaultFs> {
    let mounted = faulty(name, 1)?;
    mounted.set_faults(Faults { room: Some(room), ..Faults::default() });
    Some(mounted)
}

/// Repeats a command until its reply is as wanted, or a generous time has passed.
fn until(client: &mut Client, line: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut said = String::new();
    for _ in 0..2_000 {
        said = client.say(line);
        if is_wanted(&said) {
            return said;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("{line}: {said}");
}

/// A disk fills up and is freed again: clients get errors meanwhile, and the server recovers by
/// itself.
#[test]
fn a_full_disk_is_told_and_then_forgotten() {
    let Some(fs) = disk("full-disk", 12 << 20) else { return };
    let server = start(fs.path());
    let mut client = Client::of(&server);
    let value = |n: u32| format!("{n:04000}");
    let mut there = 0;
    let refused = loop {
        let said = client.say(&format!("SET {there} {}", value(there)));
        if said != "OK" {
            break said;
        }
        there += 1;
        assert!(there < 4_000, "12 MiB hold no more");
    };
    assert!(refused.starts_with("-OOM") && refused.contains("make room there"), "{refused}");
    // The refused write may be kept or not; each acknowledged value can be read and deleted.
    assert_eq!(client.say("GET 1"), value(1));
    assert_eq!(client.say("DEL 0 2"), "2");
    let said = until(&mut client, "INFO persistence", |said| !said.contains("store_troubles:0"));
    assert!(said.contains("last_store_trouble:") && said.contains("os error 28"), "{said}");
    assert!(client.say("INFO errorstats").contains("errorstat_OOM:count="));
    fs.set_faults(Faults::default());
    until(&mut client, "SET again and", |said| said == "OK");
    for n in 0..500 {
        assert_eq!(client.say(&format!("SET more:{n} {}", value(n))), "OK");
    }
    let check = |client: &mut Client| {
        for n in 0..there {
            let wanted = if n == 0 || n == 2 { "(nil)".to_owned() } else { value(n) };
            assert!(client.say(&format!("GET {n}")) == wanted, "{n} of {there}");
        }
        assert_eq!(client.say("GET more:499"), value(499));
    };
    check(&mut client);
    server.stop().expect("there is room");
    let server = start(fs.path());
    check(&mut Client::of(&server));
    server.stop().expect("nothing is in the way");
}

/// After a failed sync a write may be in the store or not; the number of keys matches the store.
#[test]
fn what_was_refused_is_counted_if_it_is_there() {
    let Some(fs) = faulty("refused", 1) else { return };
    let options = levelhead::Options {
        capacity_bytes: 64 << 20,
        memtable_bytes: 1 << 20,
        io: levelhead::Io::Threads,
        durability: levelhead::Durability::Each,
        ..levelhead::Options::default()
    };
    let store = levelhead::Store::open(fs.path(), &options).expect("it is ours");
    let durability = levelhead::Durability::Each;
    let listen = Some(([127, 0, 0, 1], 0).into());
    let server =
        Server::start(store, Options { listen, durability, ..Options::default() }, Clock::system());
    let server = server.expect("a store of our own");
    let mut client = Client::of(&server);
    for number in 0..10 {
        assert_eq!(client.say(&format!("SET k{number} v")), "OK");
    }
    let of = |kind| Fails { kind, after: 0, times: 1_000, errno: 5 };
    fs.set_faults(Faults { fails: vec![of(Kind::Sync), of(Kind::Write)], ..Faults::default() });
    let refused = client.say("MSET k1 w a 1 b 2");
    assert!(refused.starts_with('-'), "{refused}");
    assert!(client.say("DEL k2").starts_with('-'), "nothing is taken any more");
    let keys = client.say("KEYS *");
    let there = keys.split(' ').count().to_string();
    assert_eq!(client.say("DBSIZE"), there, "{keys}");
}
