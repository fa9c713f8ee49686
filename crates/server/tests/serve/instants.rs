//! Replies about several keys are snapshots: strings and collections are stored apart, and
//! transactions change both.

use std::sync::atomic::{AtomicBool, Ordering};

use levelhead::Durability;
use server::{Clock, Options, Server};

use crate::client::{Client, directory, start};

/// Number of reads.
const LOOKS: usize = 4_000;

fn served(name: &str) -> Server {
    // Faster writes make conflicts with the reads more frequent.
    let options = Options { durability: Durability::None, ..Options::default() };
    start(&directory(name), options, Clock::system())
}

/// Runs `look` repeatedly while other clients execute these transactions in turn.
fn while_changing(server: &Server, turns: &[&[&str]], mut look: impl FnMut(&mut Client)) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let change = || {
            let mut client = Client::of(server);
            for commands in turns.iter().cycle() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                client.send(&[b"MULTI"]);
                for command in *commands {
                    client.send(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>());
                }
                client.send(&[b"EXEC"]);
                (0..commands.len() + 2).for_each(|_| drop(client.receive()));
            }
        };
        let changer = std::thread::Builder::new().spawn_scoped(scope, change).expect("a thread");
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut client = Client::of(server);
            (0..LOOKS).for_each(|_| look(&mut client));
        }));
        is_over.store(true, Ordering::SeqCst);
        changer.join().expect("it ends");
        looked.unwrap_or_else(|why| std::panic::resume_unwind(why));
    });
}

#[test]
fn a_list_of_keys_has_all_of_a_transaction_or_nothing() {
    let server = served("instants-lists");
    let mut client = Client::of(&server);
    client.say("HSET a f v");
    let turns: [&[&str]; 2] = [&["DEL a", "SET b v"], &["DEL b", "HSET a f v"]];
    while_changing(&server, &turns, |client| {
        let keys = client.say("KEYS *");
        assert!(keys == "[a]" || keys == "[b]", "{keys}");
        let page = client.say("SCAN 0");
        assert!(page == "[0 [a]]" || page == "[0 [b]]", "{page}");
        let range = client.say("KEYRANGE - + WITHVALUES");
        assert!(range == "[a (nil)]" || range == "[b v]", "{range}");
        let random = client.say("RANDOMKEY");
        assert!(random == "a" || random == "b", "{random}");
    });
}

/// Also where expiry notes have passed that are outdated, so that values are read.
#[test]
fn a_key_that_is_renamed_is_there_once() {
    let (clock, hand) = Clock::by_hand(1_000_000);
    let options = Options { durability: Durability::None, ..Options::default() };
    let server = start(&directory("instants-renamed"), options, clock);
    Client::of(&server).say("SET a v");
    let turns: [&[&str]; 2] = [
        &["SET a v PX 500", "SET a v", "RENAME a b"],
        &["SET b v PX 500", "SET b v", "RENAME b a"],
    ];
    while_changing(&server, &turns, |client| {
        hand.advance_ms(1_000);
        let keys = client.say("KEYS *");
        assert!(keys == "[a]" || keys == "[b]", "{keys}");
    });
}

/// A key that alternates between a string and a hash always exists.
#[test]
fn a_key_whose_kind_changes_is_there() {
    let server = served("instants-kinds");
    let mut client = Client::of(&server);
    client.say("HSET k f v");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let turns: [&[&str]; 2] = [&["SET k v"], &["DEL k", "HSET k f v"]];
    while_changing(&server, &turns, |client| {
        let kind = client.say("TYPE k");
        assert!(kind == "string" || kind == "hash", "{kind}");
        let value = client.say("GET k");
        assert!(value == "v" || value == wrong, "{value}");
        let length = client.say("HLEN k");
        assert!(length == "1" || length == wrong, "{length}");
        let scanned = client.say("HSCAN k 0");
        assert!(scanned == "[0 [f v]]" || scanned == wrong, "{scanned}");
        assert_eq!(client.say("EXISTS k"), "1");
        assert_eq!(client.say("TTL k"), "-1");
    });
}
