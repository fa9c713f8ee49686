//! MULTI, EXEC, DISCARD and WATCH, and their atomicity.

use crate::client::{Client, directory, start, tcp};
use server::{Clock, Options};

#[test]
fn commands_wait_for_exec() {
    let server = start(&directory("multi"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let mut other = Client::of(&server);
    assert_eq!(client.say("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(client.say("DISCARD"), "-ERR DISCARD without MULTI");
    assert_eq!(client.say("MULTI"), "OK");
    assert_eq!(client.say("MULTI"), "-ERR MULTI calls can not be nested");
    assert_eq!(client.say("WATCH a"), "-ERR WATCH inside MULTI is not allowed");
    for line in ["SET a 1", "INCR a", "HSET h f 1 g 2", "HINCRBY h f 1", "HDEL h g", "HGETALL h"] {
        assert_eq!(client.say(line), "QUEUED", "{line}");
    }
    for line in ["ZADD z 2 x 1 y", "ZRANGE z 0 -1", "HGET a f", "DEL a", "KEYS *", "EXISTS a"] {
        assert_eq!(client.say(line), "QUEUED", "{line}");
    }
    assert_eq!(other.say("EXISTS a h z"), "0");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let expected = format!("[OK 2 2 2 1 [f 2] 2 [y x] {wrong} 1 [h z] 0]");
    assert_eq!(client.say("EXEC"), expected);
    assert_eq!(other.say("DBSIZE"), "2");
    assert_eq!(other.say("HGETALL h"), "[f 2]");
    assert_eq!(other.say("ZRANGE z 0 -1 WITHSCORES"), "[y 1 x 2]");
    assert_eq!(client.say("MULTI"), "OK");
    assert_eq!(client.say("DEL h z"), "QUEUED");
    assert_eq!(client.say("DISCARD"), "OK");
    assert_eq!(client.say("EXISTS h z"), "2");
    assert_eq!(client.say("MULTI"), "OK");
    assert_eq!(client.say("EXEC"), "[]");
}

#[test]
fn what_cannot_be_kept_ends_it() {
    let options = Options { query_bytes: 1_000, ..Options::default() };
    let server = start(&directory("multi-broken"), options, Clock::system());
    let mut client = Client::of(&server);
    let long = format!("SET a {}", "v".repeat(900));
    for bad in ["NOTHING", "GET", "FLUSHALL", &long] {
        assert_eq!(client.say("MULTI"), "OK");
        assert_eq!(client.say("SET b 1"), "QUEUED");
        assert!(client.say(bad).starts_with("-ERR "), "{bad}");
        let said = client.say("EXEC");
        assert_eq!(said, "-EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(client.say("DBSIZE"), "0");
    }
}

/// EXEC with arguments ends the transaction with an error, as in Redis.
#[test]
fn exec_that_is_refused_discards() {
    let server = start(&directory("multi-exec"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let aborted =
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
    assert_eq!(client.say("MULTI"), "OK");
    assert_eq!(client.say("SET a 1"), "QUEUED");
    assert_eq!(client.say("EXEC now"), aborted);
    assert_eq!(client.say("EXISTS a"), "0");
    assert_eq!(client.say("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(client.say("EXEC now"), aborted);
}

/// A transaction that exceeds the largest batch of the store has no effect.
#[test]
fn too_much_is_nothing() {
    let server = start(&directory("multi-large"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    assert_eq!(client.say("MULTI"), "OK");
    let value = vec![b'v'; 100_000];
    for number in 0..20_u8 {
        client.send(&[b"SET", &[b'a' + number], &value]);
        assert!(client.receive().is_some());
    }
    assert!(client.say("EXEC").starts_with("-EXECABORT Transaction discarded because of: "));
    assert_eq!(client.say("DBSIZE"), "0");
}

/// Short commands may request much: long replies to the same value, or large values created from
/// nothing.
#[test]
fn what_a_transaction_says_and_changes_is_bounded() {
    let options = Options { reply_bytes: 500_000, query_bytes: 300_000, ..Options::default() };
    let server = start(&directory("multi-bounded"), options, Clock::system());
    let mut client = Client::of(&server);
    client.send(&[b"SET", b"big", &vec![b'v'; 100_000]]);
    assert!(client.receive().is_some());
    let mut run = |count: usize, command: &dyn Fn(usize) -> String| {
        assert_eq!(client.say("MULTI"), "OK");
        assert_eq!(client.say("SET a 1"), "QUEUED");
        for number in 0..count {
            assert_eq!(client.say(&command(number)), "QUEUED");
        }
        let said = client.say("EXEC");
        (said, client.say("DEL a"))
    };
    let (said, was_set) = run(10, &|_| "GET big".to_owned());
    assert!(said.starts_with("-EXECABORT") && said.contains("500000 bytes"), "{said}");
    assert_eq!(was_set, "0");
    let (said, was_set) = run(10, &|n| format!("SETRANGE k{n} 100000 x"));
    assert!(said.starts_with("-EXECABORT") && said.contains("300000 bytes"), "{said}");
    assert_eq!(was_set, "0");
    // Overwritten values are held once.
    let (said, was_set) = run(10, &|n| format!("SETRANGE k 100000 {n}"));
    assert!(said.starts_with("[OK 100001"), "{said}");
    assert_eq!(was_set, "1");
    assert!(run(3, &|_| "GET big".to_owned()).0.starts_with("[OK vvv"));
}

#[test]
fn what_is_watched_must_stay() {
    let server = start(&directory("watch"), Options::default(), Clock::system());
    let (mut client, mut other) = (Client::of(&server), Client::of(&server));
    let run = |client: &mut Client| {
        assert_eq!(client.say("MULTI"), "OK");
        assert_eq!(client.say("SET a mine"), "QUEUED");
        client.say("EXEC")
    };
    assert_eq!(client.say("WATCH a b"), "OK");
    assert_eq!(run(&mut client), "[OK]");
    assert_eq!(client.say("WATCH a b"), "OK");
    assert_eq!(other.say("SET b theirs"), "OK");
    assert_eq!(run(&mut client), "(nil)");
    // EXEC has ended the watch.
    assert_eq!(run(&mut client), "[OK]");
    assert_eq!(client.say("WATCH a"), "OK");
    assert_eq!(other.say("DEL a"), "1");
    assert_eq!(client.say("UNWATCH"), "OK");
    assert_eq!(run(&mut client), "[OK]");
    // EXEC or DISCARD without MULTI keeps the watch.
    for stray in ["EXEC", "DISCARD"] {
        assert_eq!(client.say("WATCH b"), "OK");
        assert_eq!(client.say(stray), format!("-ERR {stray} without MULTI"));
        assert_eq!(other.say("SET b theirs"), "OK");
        assert_eq!(run(&mut client), "(nil)", "{stray}");
    }
}

/// Expiry changes a watched key: a transaction that saw it alive must fail. A key that had expired
/// before WATCH counts as unchanged, swept or not.
#[test]
fn what_is_watched_may_expire() {
    let (clock, hand) = Clock::by_hand(1_000_000);
    let server = start(&directory("watch-expiry"), Options::default(), clock);
    let (mut client, mut other) = (Client::of(&server), Client::of(&server));
    let run = |client: &mut Client| {
        assert_eq!(client.say("MULTI"), "OK");
        assert_eq!(client.say("SET mine 1"), "QUEUED");
        client.say("EXEC")
    };
    let mut swept = 0;
    let mut wait_for_sweep = |more: u64| {
        swept += more;
        let line = format!("expired_keys:{swept}\r\n");
        for _ in 0..2_000 {
            if other.say("INFO stats").contains(&line) {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        panic!("{swept} keys were not swept");
    };
    for make in ["SET k v PX 500", "HSET k f v", "ZADD k 1 m"] {
        for is_swept in [false, true] {
            client.say(make);
            client.say("PEXPIRE k 500");
            assert_eq!(client.say("WATCH k other"), "OK");
            hand.advance_ms(499);
            assert_eq!(run(&mut client), "[OK]", "{make}");
            assert_eq!(client.say("WATCH k"), "OK");
            hand.advance_ms(1);
            if is_swept {
                wait_for_sweep(1);
            }
            assert_eq!(run(&mut client), "(nil)", "{make}");
            if !is_swept {
                wait_for_sweep(1);
            }
            assert_eq!(client.say("WATCH k"), "OK");
            assert_eq!(run(&mut client), "[OK]", "it is gone, and stays so");
        }
    }
    // Many keys expire at once, so that some are watched before they are swept.
    for number in 0..400 {
        client.say(&format!("SET k{number} v PX 100"));
    }
    hand.advance_ms(100);
    let keys = (0..400).map(|number| format!("k{number}")).collect::<Vec<_>>().join(" ");
    assert_eq!(client.say(&format!("WATCH {keys}")), "OK");
    wait_for_sweep(400);
    assert_eq!(run(&mut client), "[OK]", "they had expired before");
    // The clock is set back after the sweep.
    client.say("SET k v PX 500");
    assert_eq!(client.say("WATCH k"), "OK");
    hand.advance_ms(500);
    wait_for_sweep(1);
    hand.set_ms(1_000_000);
    assert_eq!(run(&mut client), "(nil)", "it was swept");
    // A new expiry is a change like any other.
    client.say("SET k v PX 500");
    assert_eq!(client.say("WATCH k"), "OK");
    assert_eq!(client.say("PERSIST k"), "1");
    assert_eq!(run(&mut client), "(nil)");
}

/// Transfers between accounts: a sum taken in a transaction is always the whole.
#[test]
fn nothing_is_lost_between_accounts() {
    let server = start(&directory("accounts"), Options::default(), Clock::system());
    let address = tcp(&server);
    let mut client = Client::of(&server);
    assert_eq!(client.say("MSET x 500 y 500"), "OK");
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let give = move || {
                let mut client = Client::connect(address);
                for step in 0..50 {
                    let amount = (number * 7 + step) % 20;
                    client.say("MULTI");
                    client.say(&format!("DECRBY x {amount}"));
                    client.say(&format!("INCRBY y {amount}"));
                    client.say("GET x");
                    client.say("GET y");
                    let said = client.say("EXEC");
                    let found: Vec<i64> = said[1..said.len() - 1]
                        .split(' ')
                        .map(|word| word.parse().expect("a number"))
                        .collect();
                    assert_eq!(found[2] + found[3], 1_000, "{said}");
                }
            };
            std::thread::Builder::new().spawn(give).expect("a thread")
        })
        .collect();
    for thread in threads {
        thread.join().expect("it ends");
    }
}
