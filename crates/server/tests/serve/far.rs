//! Commands that walk over many keys, fields or members: they are run again from their beginning,
//! with the same replies and effects as short ones.

use std::sync::atomic::{AtomicBool, Ordering};

use server::{Clock, Options};

use crate::client::{Client, directory, start};

const MANY: usize = 2_500;

fn words(of: &dyn Fn(usize) -> String) -> String {
    (0..MANY).map(of).collect::<Vec<_>>().join(" ")
}

#[test]
fn long_commands_do_what_short_ones_do() {
    let server = start(&directory("far"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let key = |n: usize| format!("k{n:04}");
    let keys = words(&key);
    assert_eq!(client.say(&format!("MSET {}", words(&|n| format!("k{n:04} v")))), "OK");
    assert_eq!(client.say(&format!("EXISTS {keys}")), MANY.to_string());
    assert_eq!(client.say("KEYS *"), format!("[{keys}]"));
    assert_eq!(client.say("KEYRANGE - + LIMIT 2000 2"), "[k2000 k2001]");
    assert_eq!(client.say(&format!("SCAN 0 COUNT {}", 2 * MANY)), format!("[0 [{keys}]]"));
    assert_eq!(client.say(&format!("MGET {keys}")), format!("[{}]", words(&|_| "v".to_owned())));
    let pairs = words(&|n| format!("f{n:04} {n}"));
    assert_eq!(client.say(&format!("HSET h {pairs}")), MANY.to_string());
    assert_eq!(client.say("HGETALL h"), format!("[{pairs}]"));
    assert_eq!(client.say("COPY h i"), "1");
    assert_eq!(client.say("HVALS i"), format!("[{}]", words(&|n| n.to_string())));
    assert_eq!(client.say(&format!("ZADD z {}", words(&|n| format!("{n} m{n:04}")))), "2500");
    assert_eq!(client.say("ZRANGE z 2000 2001"), "[m2000 m2001]");
    assert_eq!(client.say("ZRANK z m2222"), "2222");
    assert_eq!(client.say("ZCOUNT z -inf +inf"), "2500");
    assert_eq!(client.say("ZREMRANGEBYRANK z 0 1999"), "2000");
    // Also in a transaction, which is run again as a whole.
    assert_eq!(client.say("MULTI"), "OK");
    for command in ["INCR n", "HLEN h", "HGETALL h", "KEYS z", "ZREMRANGEBYRANK z 0 -2", "INCR n"] {
        assert_eq!(client.say(command), "QUEUED");
    }
    assert_eq!(client.say("EXEC"), format!("[1 2500 [{pairs}] [z] 499 2]"));
    assert_eq!(client.say(&format!("DEL {keys}")), MANY.to_string());
    assert_eq!(client.say("KEYS *"), "[h i n z]");
    assert_eq!(client.say("KEYRANGE [k [m"), "[]");
    assert_eq!(client.say("RANDOMKEY").len(), 1);
    assert_eq!(client.say("ZPOPMIN z 2"), "[m2499 2499]");
    assert_eq!(client.say("FLUSHALL"), "OK");
    assert_eq!((client.say("DBSIZE"), client.say("KEYS *")), ("0".to_owned(), "[]".to_owned()));
}

/// Other clients write during a flush; afterwards the count matches the keys.
#[test]
fn keys_are_set_while_all_go() {
    let server = start(&directory("far-flush"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let mut most = 0;
    for _ in 0..10 {
        for part in 0..8 {
            let pairs = words(&|n| format!("k{part}{n:04} v"));
            assert_eq!(client.say(&format!("MSET {pairs}")), "OK");
        }
        let is_over = AtomicBool::new(false);
        let set = std::thread::scope(|scope| {
            let flush = || {
                let said = Client::of(&server).say("FLUSHALL");
                is_over.store(true, Ordering::SeqCst);
                said
            };
            let flusher = std::thread::Builder::new().spawn_scoped(scope, flush);
            let mut set = 0;
            while !is_over.load(Ordering::SeqCst) {
                assert_eq!(client.say("SET a b"), "OK");
                set += 1;
            }
            assert_eq!(flusher.expect("a thread").join().expect("it ends"), "OK");
            set
        });
        let left = client.say("KEYS *");
        assert!(left == "[]" || left == "[a]", "{left}");
        assert_eq!(client.say("DBSIZE"), if left == "[]" { "0" } else { "1" });
        most = most.max(set);
        // One write may precede the flush, and one may follow it.
        if most > 4 {
            return;
        }
    }
    panic!("{most} keys were set at most while all went");
}
