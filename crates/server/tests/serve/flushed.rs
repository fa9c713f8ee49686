//! `FLUSHALL`, and power failures after it: removed keys do not return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use levelhead::Io;
use server::{Clock, Options};

use crate::client::{Client, faulty, start_by};

const KEYS: usize = 1_000;

/// Returns the number of keys and their names after a restart.
fn counted(client: &mut Client) -> (String, String) {
    for _ in 0..4_000 {
        if client.say("INFO keyspace").contains("keys_being_counted:0") {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    (client.say("DBSIZE"), client.say("KEYS *"))
}

#[test]
fn nothing_comes_back_that_was_flushed() {
    for seed in 0..4 {
        let Some(fs) = faulty(&format!("flushed-{seed}"), seed) else { return };
        let server =
            start_by(Io::Threads, &fs.path().join("store"), Options::default(), Clock::system());
        let mut client = Client::of(&server);
        for n in 0..KEYS {
            assert_eq!(client.say(&format!("SET k{n:04} v")), "OK");
        }
        let pairs: Vec<_> = (0..KEYS).map(|n| format!("{n} {n}")).collect();
        assert_eq!(client.say(&format!("ZADD z {}", pairs.join(" "))), "1000");
        assert_eq!(client.say(&format!("HSET h {}", pairs.join(" "))), "1000");
        assert_eq!(client.say("SET e v EX 1000"), "OK");
        assert_eq!(client.say("FLUSHALL"), "OK");
        fs.cut();
        drop((client, server));
        fs.power_on();
        let server =
            start_by(Io::Threads, &fs.path().join("store"), Options::default(), Clock::system());
        let mut client = Client::of(&server);
        assert_eq!(counted(&mut client), ("0".to_owned(), "[]".to_owned()), "seed {seed}");
        // Nor after the sweep that follows.
        std::thread::park_timeout(Duration::from_millis(300));
        assert_eq!(counted(&mut client), ("0".to_owned(), "[]".to_owned()), "seed {seed}");
        assert_eq!(client.say("ZCARD z"), "0");
    }
}

/// Keys are set and flushed repeatedly until power fails: the count matches the keys, and all of
/// them can be flushed.
#[test]
fn power_fails_while_all_go() {
    for seed in 0..4 {
        let Some(fs) = faulty(&format!("flushing-{seed}"), seed) else { return };
        let server =
            start_by(Io::Threads, &fs.path().join("store"), Options::default(), Clock::system());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for part in 0..2 {
                let (is_over, server) = (&is_over, &server);
                let load = move || {
                    let mut client = Client::of(server);
                    for round in 0_usize.. {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        let keys = (0..100).map(|n| format!("{part}:{} v", 100 * round % KEYS + n));
                        client.say(&format!("MSET {}", keys.collect::<Vec<_>>().join(" ")));
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, load).expect("a thread");
            }
            let mut client = Client::of(&server);
            for _ in 0..5 + seed {
                assert_eq!(client.say("FLUSHALL"), "OK");
            }
            fs.cut_after(1 + 3 * seed);
            client.say("FLUSHALL");
            is_over.store(true, Ordering::SeqCst);
        });
        fs.cut();
        drop(server);
        fs.power_on();
        let server =
            start_by(Io::Threads, &fs.path().join("store"), Options::default(), Clock::system());
        let mut client = Client::of(&server);
        let (count, keys) = counted(&mut client);
        let named = keys.trim_matches(['[', ']']).split_whitespace().count();
        assert_eq!(count, named.to_string(), "seed {seed}: {keys}");
        assert_eq!(client.say("FLUSHALL"), "OK");
        assert_eq!(counted(&mut client), ("0".to_owned(), "[]".to_owned()), "seed {seed}");
    }
}
