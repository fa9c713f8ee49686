//! Keys, cursors and scores beyond the limits.

use crate::client::{Client, directory, start};
use server::{Clock, Options};

/// A key that is too long does not exist: reads find nothing, and only writes are refused.
#[test]
fn keys_that_are_too_long_are_not_there() {
    let server = start(&directory("long-keys"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let long = "k".repeat(247);
    for line in ["SET a 1", "HSET h f 1", "ZADD z 1 m"] {
        client.say(line);
    }
    for (line, expected) in [
        ("GET *", "(nil)"),
        ("MGET a *", "[1 (nil)]"),
        ("EXISTS a *", "1"),
        ("TOUCH *", "0"),
        ("TTL *", "-2"),
        ("PEXPIRETIME *", "-2"),
        ("TYPE *", "none"),
        ("STRLEN *", "0"),
        ("GETRANGE * 0 -1", ""),
        ("OBJECT ENCODING *", "(nil)"),
        ("HGET * f", "(nil)"),
        ("HGETALL *", "[]"),
        ("HLEN *", "0"),
        ("HSCAN * 0", "[0 []]"),
        ("ZSCORE * m", "(nil)"),
        ("ZCARD *", "0"),
        ("ZRANGE * 0 -1", "[]"),
        ("WATCH *", "OK"),
        // Removing, moving or expiring a missing key does nothing.
        ("DEL a *", "1"),
        ("UNLINK *", "0"),
        ("GETDEL *", "(nil)"),
        ("GETEX * EX 5", "(nil)"),
        ("EXPIRE * 5", "0"),
        ("PERSIST *", "0"),
        ("HDEL * f", "0"),
        ("ZREM * m", "0"),
        ("ZPOPMIN *", "[]"),
        ("RENAME * a", "-ERR no such key"),
        ("COPY * a", "0"),
        ("SET * 1 XX", "(nil)"),
        ("ZADD * XX 1 m", "0"),
        ("EXISTS h z", "2"),
    ] {
        assert_eq!(client.say(&line.replace('*', &long)), expected, "{line}");
    }
    client.say("SET a 1");
    for line in [
        "SET * 1",
        "SET * 1 NX",
        "SETNX * 1",
        "MSET a 2 * 1",
        "MSETNX b 1 * 1",
        "GETSET * 1",
        "APPEND * 1",
        "SETRANGE * 0 x",
        "INCR *",
        "INCRBYFLOAT * 1",
        "HSET * f 1",
        "HSETNX * f 1",
        "HINCRBY * f 1",
        "ZADD * 1 m",
        "ZINCRBY * 1 m",
        "RENAME a *",
        "RENAMENX a *",
        "RENAME h *",
        "COPY a *",
        "COPY z *",
    ] {
        let said = client.say(&line.replace('*', &long));
        assert_eq!(said, "-ERR key has 247 bytes, at most 246 are possible", "{line}");
    }
    assert_eq!(client.say("KEYS *"), "[a h z]");
    assert_eq!(client.say("MGET a b"), "[1 (nil)]");
}

/// A scan that continues after a restart starts from the beginning and misses nothing; a cursor
/// that was never issued is at the end.
#[test]
fn cursors_of_others() {
    let directory = directory("cursors");
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for line in ["MSET a 1 b 1 c 1 d 1", "HSET h f 1 g 1 i 1", "ZADD z 1 m 2 n 3 o"] {
        client.say(line);
    }
    let cursor = |said: String| said[1..].split(' ').next().expect("a cursor").to_owned();
    let before = ["SCAN 0 COUNT 1", "HSCAN h 0 COUNT 1", "ZSCAN z 0 COUNT 1"]
        .map(|line| cursor(client.say(line)));
    assert!(before.iter().all(|cursor| cursor != "0"));
    // A cursor of another command is refused.
    assert!(client.say(&format!("SCAN {}", before[1])).starts_with("-ERR invalid cursor"));
    assert_eq!(client.say(&format!("SCAN {}", before[0])), "[0 [b c d h z]]");
    drop(client);
    server.stop().expect("nothing is in the way");
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for (line, expected) in [
        (format!("SCAN {}", before[0]), "[0 [a b c d h z]]"),
        (format!("HSCAN h {}", before[1]), "[0 [f 1 g 1 i 1]]"),
        (format!("ZSCAN z {}", before[2]), "[0 [m 1 n 2 o 3]]"),
        ("SCAN 9223372036854775808".to_owned(), "[0 []]"),
        ("SCAN 18446744073709551615 MATCH a*".to_owned(), "[0 []]"),
        ("SCAN -1".to_owned(), "[0 []]"),
        ("HSCAN h 9223372036854775808".to_owned(), "[0 []]"),
        ("ZSCAN z 9223372036854775808".to_owned(), "[0 []]"),
        ("SCAN 18446744073709551616".to_owned(), "-ERR invalid cursor"),
        ("SCAN x".to_owned(), "-ERR invalid cursor"),
    ] {
        assert_eq!(client.say(&line), expected, "{line}");
    }
}

/// A number that overflows or underflows is an error, and is not rounded.
#[test]
fn scores_beyond_what_there_is() {
    let server = start(&directory("scores"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let wrong = "-ERR value is not a valid float";
    for (line, expected) in [
        ("ZADD z 1e400 m", wrong),
        ("ZADD z -1e400 m", wrong),
        ("ZADD z 1e-400 m", wrong),
        ("ZADD z 1 a 1e400 m", wrong),
        ("ZINCRBY z 1e400 m", wrong),
        ("EXISTS z", "0"),
        ("ZADD z inf a -inf b 1e308 c 0e9 d", "4"),
        ("ZINCRBY z 1e308 c", "inf"),
        ("ZRANGE z -1e400 1e400 BYSCORE", "[b d a c]"),
        ("SET n 1", "OK"),
        ("INCRBYFLOAT n 1e400", wrong),
        ("INCRBYFLOAT n inf", "-ERR increment would produce NaN or Infinity"),
        ("GET n", "1"),
    ] {
        assert_eq!(client.say(line), expected, "{line}");
    }
}
