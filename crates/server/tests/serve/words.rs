//! Commands and their replies, one line each, as a person would type them.

use crate::client::{Client, directory, start};
use server::{Clock, Options};

fn talk(name: &str, lines: &[(&str, &str)]) {
    let (clock, _) = Clock::by_hand(1_000_000);
    let server = start(&directory(name), Options::default(), clock);
    let mut client = Client::of(&server);
    for (line, expected) in lines {
        assert_eq!(client.say(line), *expected, "{line}");
    }
}

const WRONGTYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn strings() {
    talk(
        "strings",
        &[
            ("GET a", "(nil)"),
            ("SET a 1", "OK"),
            ("GET a", "1"),
            ("SET a 2 NX", "(nil)"),
            ("SET a 2 XX GET", "1"),
            ("SET b 2 XX", "(nil)"),
            ("SET b 2 NX GET", "(nil)"),
            ("SET a 1 NX XX", "-ERR syntax error"),
            ("SET a 1 XX XX PX x PX 5000", "OK"),
            ("TTL a", "5"),
            ("SET a 1 PX 5000 EX 5", "-ERR syntax error"),
            ("SET a 1 PX 5000 KEEPTTL", "-ERR syntax error"),
            ("SET a 1 KEEPTTL KEEPTTL", "OK"),
            ("TTL a", "5"),
            ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command"),
            ("SET a 1 EX x", "-ERR value is not an integer or out of range"),
            ("SETNX a 3", "0"),
            ("SETEX a 10 3", "OK"),
            ("TTL a", "10"),
            ("GETSET a 4", "3"),
            ("TTL a", "-1"),
            ("GETDEL a", "4"),
            ("GETDEL a", "(nil)"),
            ("APPEND a xy", "2"),
            ("APPEND a z", "3"),
            ("GETRANGE a 0 -1", "xyz"),
            ("GETRANGE a -2 1", "y"),
            ("GETRANGE a 1 0", ""),
            ("GETRANGE a 5 9223372036854775807", ""),
            ("GETRANGE a -9223372036854775808 -1", "xyz"),
            ("GETRANGE nothing 0 -1", ""),
            ("OBJECT ENCODING a", "raw"),
            ("OBJECT REFCOUNT a", "1"),
            ("OBJECT ENCODING nothing", "(nil)"),
            ("OBJECT FREQ a", "-ERR nothing counts how often or when keys are used"),
            ("OBJECT HELP", "[OBJECT ENCODING key OBJECT REFCOUNT key]"),
            (
                "OBJECT ENCODING",
                "-ERR unknown subcommand or wrong number of arguments for 'ENCODING'. Try OBJECT HELP.",
            ),
            ("STRLEN a", "3"),
            ("INCR a", "-ERR value is not an integer or out of range"),
            ("INCR n", "1"),
            ("INCRBY n 41", "42"),
            ("DECR n", "41"),
            ("DECRBY n 1", "40"),
            ("INCRBY n 9223372036854775807", "-ERR increment or decrement would overflow"),
            ("MSET k1 1 k2 2 k1 3", "OK"),
            ("MGET k1 k2 k3", "[3 2 (nil)]"),
            ("MSETNX k3 1 k1 1", "0"),
            ("DBSIZE", "5"),
            ("DEL k1 k1 k2 nothing", "2"),
            ("EXISTS a a nothing", "2"),
            ("UNLINK a", "1"),
            ("DBSIZE", "2"),
        ],
    );
}

#[test]
fn hashes() {
    talk(
        "hashes",
        &[
            ("HSET h a 1 b 2 a 3", "2"),
            ("HSET h a 4", "0"),
            ("HMSET h c 5", "OK"),
            ("HGET h a", "4"),
            ("HGET h x", "(nil)"),
            ("HMGET h a x c", "[4 (nil) 5]"),
            ("HMGET nothing a", "[(nil)]"),
            ("HGETALL h", "[a 4 b 2 c 5]"),
            ("HKEYS h", "[a b c]"),
            ("HVALS h", "[4 2 5]"),
            ("HLEN h", "3"),
            ("HEXISTS h b", "1"),
            ("HSTRLEN h b", "1"),
            ("HINCRBY h a 6", "10"),
            ("HSETNX h a 1", "0"),
            ("HSETNX h d 1", "1"),
            ("TYPE h", "hash"),
            ("GET h", WRONGTYPE),
            ("INCR h", WRONGTYPE),
            ("ZADD h 1 a", WRONGTYPE),
            ("SET s 1", "OK"),
            ("HSET s a 1", WRONGTYPE),
            ("HGET s a", WRONGTYPE),
            ("MGET h s", "[(nil) 1]"),
            ("HDEL h a b b x", "2"),
            ("HDEL h c d", "2"),
            ("EXISTS h", "0"),
            ("HGETALL h", "[]"),
            ("HSET h z 1", "1"),
            ("SET h string", "OK"),
            ("GET h", "string"),
            ("DEL h", "1"),
            ("HSET h y 1", "1"),
            ("HGETALL h", "[y 1]"),
            (
                "HELLO 3",
                "{server:redis version:7.0.15 mode:standalone role:master proto:3 id:1 modules:[]}",
            ),
            ("HGETALL h", "{y:1}"),
            ("HGET h x", "(nil)"),
        ],
    );
}

#[test]
fn sorted_sets() {
    talk(
        "sorted-sets",
        &[
            ("ZADD z 2 b 1 a 3 c", "3"),
            ("ZADD z 5 a", "0"),
            ("ZADD z CH 1 a 2 b", "1"),
            ("ZADD z NX 9 a 4 d", "1"),
            ("ZADD z GT 0 a", "0"),
            ("ZADD z XX INCR 10 x", "(nil)"),
            ("ZINCRBY z 0.5 a", "1.5"),
            ("ZSCORE z a", "1.5"),
            ("ZSCORE z x", "(nil)"),
            ("ZCARD z", "4"),
            ("ZCOUNT z (1.5 3", "2"),
            ("ZRANGE z 0 -1", "[a b c d]"),
            ("ZRANGE z 1 2 WITHSCORES", "[b 2 c 3]"),
            ("ZRANGE z -2 -1", "[c d]"),
            ("ZRANGE z 0 1 REV", "[d c]"),
            ("ZREVRANGE z 0 0", "[d]"),
            ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", "[b c]"),
            ("ZRANGEBYSCORE z (2 3 WITHSCORES", "[c 3]"),
            ("ZREVRANGEBYSCORE z 3 2", "[c b]"),
            ("ZRANGE z 3 2 BYSCORE REV LIMIT 1 1", "[b]"),
            (
                "ZRANGE z 0 1 LIMIT 0 1",
                "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ),
            ("ZADD l 0 b 0 a 0 c", "3"),
            ("ZRANGEBYLEX l - +", "[a b c]"),
            ("ZRANGEBYLEX l [b (c", "[b]"),
            ("ZRANGEBYLEX l + -", "[]"),
            ("ZADD z nan a", "-ERR value is not a valid float"),
            ("ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"),
            ("ZADD n -1 x -inf y 0 z -0 w", "4"),
            ("ZRANGE n 0 -1", "[y x w z]"),
            ("ZREM z a a b", "2"),
            ("ZREM z c d", "2"),
            ("TYPE z", "none"),
            (
                "HELLO 3",
                "{server:redis version:7.0.15 mode:standalone role:master proto:3 id:1 modules:[]}",
            ),
            ("ZSCORE n x", ",-1"),
            ("ZRANGE n 1 1 WITHSCORES", "[[x ,-1]]"),
        ],
    );
}

#[test]
fn keys_and_ranges() {
    talk(
        "keys",
        &[
            ("MSET user:1 a user:2 b user:3 c other d", "OK"),
            ("HSET user:25 x y", "1"),
            ("KEYS user:*", "[user:1 user:2 user:25 user:3]"),
            ("KEYS *[13]", "[user:1 user:3]"),
            ("SCAN 0 COUNT 100", "[0 [other user:1 user:2 user:25 user:3]]"),
            ("SCAN 0 COUNT 100 MATCH user:? TYPE string", "[0 [user:1 user:2 user:3]]"),
            ("SCAN 0 TYPE hash", "[0 [user:25]]"),
            ("SCAN 12345", "[0 [other user:1 user:2 user:25 user:3]]"),
            ("SCAN x", "-ERR invalid cursor"),
            ("SCAN 0 COUNT 0", "-ERR syntax error"),
            ("KEYRANGE [user:1 (user:3", "[user:1 user:2 user:25]"),
            ("KEYRANGE (user:1 + LIMIT 1 1", "[user:25]"),
            ("KEYRANGE - + LIMIT 0 3 WITHVALUES", "[other d user:1 a user:2 b]"),
            ("KEYRANGE user:1 +", "-ERR min or max not valid string range item"),
            ("EXPIRE other 100", "1"),
            ("EXPIRE other 50 GT", "0"),
            ("EXPIRE other 200 GT", "1"),
            ("EXPIRE other 1 NX", "0"),
            ("TTL other", "200"),
            ("PEXPIRETIME other", "1200000"),
            ("EXPIRE other -1", "1"),
            ("EXISTS other", "0"),
            ("TTL other", "-2"),
            ("FLUSHALL", "OK"),
            ("DBSIZE", "0"),
            ("KEYS *", "[]"),
            ("HGETALL user:25", "[]"),
        ],
    );
}

#[test]
fn the_server_itself() {
    talk(
        "itself",
        &[
            ("PING", "PONG"),
            ("PING hi", "hi"),
            ("ECHO hi", "hi"),
            ("SELECT 0", "OK"),
            ("SELECT 1", "-ERR DB index is out of range"),
            ("CLIENT SETINFO LIB-NAME test", "OK"),
            ("CLIENT SETNAME me", "OK"),
            ("CLIENT GETNAME", "me"),
            ("CLIENT ID", "1"),
            ("CLIENT LIST ID 7 8", ""),
            ("CLIENT LIST ID no", "-ERR Invalid client ID"),
            ("CLIENT LIST TYPE pubsub", ""),
            ("CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'"),
            ("CLIENT LIST foo", "-ERR syntax error"),
            ("CLIENT NO-EVICT maybe", "-ERR syntax error"),
            ("COMMAND INFO ping", "[[ping -1 [readonly] 0 0 0 [] [] [] []]]"),
            ("CONFIG GET max*clients", "[maxclients 10000 maxmemory-clients 268435456]"),
            ("CONFIG GET nothing", "[]"),
            ("COMMAND COUNT", "109"),
            ("COMMAND GETKEYS MSET a 1 b 2", "[a b]"),
            ("SLOWLOG LEN", "0"),
            ("SLOWLOG GET", "[]"),
            ("CLUSTER INFO", "-ERR This instance has cluster support disabled"),
            ("NOTHING a b", "-ERR unknown command 'NOTHING', with args beginning with: 'a' 'b' "),
            ("GET", "-ERR wrong number of arguments for 'get' command"),
            ("HELLO 4", "-NOPROTO unsupported protocol version"),
            ("QUIT", "OK"),
        ],
    );
}

#[test]
fn more_of_strings() {
    talk(
        "more-strings",
        &[
            ("SET a hello", "OK"),
            ("GETEX a", "hello"),
            ("TTL a", "-1"),
            ("GETEX a EX 10", "hello"),
            ("TTL a", "10"),
            ("GETEX a PERSIST", "hello"),
            ("TTL a", "-1"),
            ("GETEX a EX 0", "-ERR invalid expire time in 'getex' command"),
            ("GETEX a EX 1 PERSIST", "-ERR syntax error"),
            ("GETEX nothing EX 0", "(nil)"),
            ("GETEX a PXAT 1", "hello"),
            ("EXISTS a", "0"),
            ("DBSIZE", "0"),
            ("SETRANGE a 2 xy", "4"),
            ("GET a", "\0\0xy"),
            ("SETRANGE a 0 abcdef", "6"),
            ("SETRANGE a 1 __", "6"),
            ("GET a", "a__def"),
            ("SETRANGE a 1 ", "6"),
            ("SETRANGE nothing 5 ", "0"),
            ("EXISTS nothing", "0"),
            ("SETRANGE a -1 x", "-ERR offset is out of range"),
            ("SET f 10.50", "OK"),
            ("INCRBYFLOAT f 0.1", "10.6"),
            ("INCRBYFLOAT f -5", "5.6"),
            ("INCRBYFLOAT new 3.0e3", "3000"),
            ("INCRBYFLOAT a 1", "-ERR value is not a valid float"),
            ("INCRBYFLOAT f x", "-ERR value is not a valid float"),
            ("INCRBYFLOAT f inf", "-ERR increment would produce NaN or Infinity"),
            ("HSET h a 1 b 2 c 3", "3"),
            ("HINCRBYFLOAT h a 0.5", "1.5"),
            ("HINCRBYFLOAT h x 2", "2"),
            ("HINCRBYFLOAT h a x", "-ERR value is not a valid float"),
            ("HSCAN h 0", "[0 [a 1.5 b 2 c 3 x 2]]"),
            ("HSCAN h 0 MATCH [bx]", "[0 [b 2 x 2]]"),
            ("HSCAN h 0 COUNT 0", "-ERR syntax error"),
            ("HSCAN nothing 0", "[0 []]"),
            ("HSCAN h x", "-ERR invalid cursor"),
            ("HSCAN a 0", WRONGTYPE),
            ("HSET one a 1", "1"),
            ("HRANDFIELD one", "a"),
            ("HRANDFIELD one 5", "[a]"),
            ("HRANDFIELD one -3 WITHVALUES", "[a 1 a 1 a 1]"),
            ("HRANDFIELD nothing", "(nil)"),
            ("HRANDFIELD nothing 2", "[]"),
        ],
    );
}

#[test]
fn more_of_sorted_sets() {
    talk(
        "more-sorted-sets",
        &[
            ("ZADD z 1 a 2 b 2 c 3 d", "4"),
            ("ZRANK z a", "0"),
            ("ZRANK z d", "3"),
            ("ZREVRANK z d", "0"),
            ("ZREVRANK z b WITHSCORE", "[2 2]"),
            ("ZRANK z x", "(nil)"),
            ("ZRANK z x WITHSCORE", "(nil)"),
            ("ZMSCORE z a x d", "[1 (nil) 3]"),
            ("ZRANGE z 0 -2 REV", "[d c b]"),
            ("ZRANGE z (3 1 BYSCORE REV LIMIT 0 2 WITHSCORES", "[c 2 b 2]"),
            (
                "ZRANGE z - + BYLEX WITHSCORES",
                "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ),
            ("ZSCAN z 0", "[0 [a 1 b 2 c 2 d 3]]"),
            ("ZPOPMIN z", "[a 1]"),
            ("ZPOPMAX z 2", "[d 3 c 2]"),
            ("ZPOPMAX z 0", "[]"),
            ("ZPOPMAX z -1", "-ERR value is out of range, must be positive"),
            ("ZPOPMIN z 5", "[b 2]"),
            ("EXISTS z", "0"),
            ("ZPOPMIN z", "[]"),
            ("ZADD l 0 a 0 b 0 c 0 d 0 e", "5"),
            ("ZLEXCOUNT l (a [d", "3"),
            ("ZREVRANGEBYLEX l + [c", "[e d c]"),
            ("ZRANGE l (e [b BYLEX REV LIMIT 1 2", "[c b]"),
            ("ZREMRANGEBYLEX l [b (d", "2"),
            ("ZREMRANGEBYRANK l -1 -1", "1"),
            ("ZRANGE l 0 -1", "[a d]"),
            ("ZREMRANGEBYSCORE l -inf (0", "0"),
            ("ZREMRANGEBYSCORE l 0 0", "2"),
            ("TYPE l", "none"),
            ("ZADD one 5 m", "1"),
            ("ZRANDMEMBER one -2 WITHSCORES", "[m 5 m 5]"),
            (
                "HELLO 3",
                "{server:redis version:7.0.15 mode:standalone role:master proto:3 id:1 modules:[]}",
            ),
            ("ZRANDMEMBER one 1 WITHSCORES", "[[m ,5]]"),
            ("ZRANK one m WITHSCORE", "[0 ,5]"),
            ("ZPOPMIN one", "[m ,5]"),
            ("ZADD one 5 m", "1"),
            ("ZPOPMIN one 1", "[[m ,5]]"),
        ],
    );
}

#[test]
fn keys_are_renamed_and_copied() {
    talk(
        "renamed",
        &[
            ("SET a 1 EX 100", "OK"),
            ("RENAME a b", "OK"),
            ("TTL b", "100"),
            ("GET a", "(nil)"),
            ("RENAME a b", "-ERR no such key"),
            ("RENAME b b", "OK"),
            ("RENAMENX b b", "0"),
            ("HSET h x 1 y 2", "2"),
            ("RENAME h b", "OK"),
            ("HGETALL b", "[x 1 y 2]"),
            ("TTL b", "-1"),
            ("DBSIZE", "1"),
            ("SET s v", "OK"),
            ("RENAMENX s b", "0"),
            ("RENAMENX s t", "1"),
            ("COPY b c", "1"),
            ("HSET b x 9", "0"),
            ("HGETALL c", "[x 1 y 2]"),
            ("COPY t c", "0"),
            ("COPY t c REPLACE", "1"),
            ("GET c", "v"),
            ("COPY t c DB 1", "-ERR DB index is out of range"),
            ("COPY t t", "-ERR source and destination objects are the same"),
            ("ZADD z 1 a 2 b", "2"),
            ("EXPIRE z 50", "1"),
            ("COPY z z2", "1"),
            ("TTL z2", "50"),
            ("ZREM z2 a", "1"),
            ("ZRANGE z 0 -1", "[a b]"),
            ("RENAME c z2", "OK"),
            ("TYPE z2", "string"),
            ("DBSIZE", "4"),
            ("COMMAND GETKEYS RENAME a b", "[a b]"),
            ("MULTI", "OK"),
            ("RENAME z q", "QUEUED"),
            ("ZRANK q b", "QUEUED"),
            ("ZPOPMAX q", "QUEUED"),
            ("COPY q z", "QUEUED"),
            ("ZRANGE z 0 -1 REV", "QUEUED"),
            ("ZADD z 0 n 5 m", "QUEUED"),
            ("ZREVRANGEBYSCORE z +inf -inf", "QUEUED"),
            ("EXEC", "[OK 1 [b 2] 1 [a] 2 [m a n]]"),
            ("DBSIZE", "5"),
        ],
    );
}

/// Fields and members are returned once each while others change; a cursor is valid only for its
/// kind.
#[test]
fn parts_are_scanned_once() {
    let server = start(&directory("scan-parts"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for number in 0..200 {
        client.say(&format!("HSET h f{number:03} {number}"));
        client.say(&format!("ZADD z {} m{number:03}", number % 7));
    }
    for (command, name) in [("HSCAN h", 'f'), ("ZSCAN z", 'm')] {
        let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
        loop {
            let text = client.say(&format!("{command} {cursor} COUNT 9"));
            let (next, parts) = text[1..text.len() - 2].split_once(" [").expect("a cursor, parts");
            seen.extend(parts.split_whitespace().step_by(2).map(ToOwned::to_owned));
            next.clone_into(&mut cursor);
            if cursor == "0" {
                break;
            }
            client.say(&format!("HSET h g{} x", seen.len()));
            client.say(&format!("ZINCRBY z 100 m{:03}", seen.len() % 200));
            let said = client.say(&format!("SCAN {cursor}"));
            assert!(said.starts_with("-ERR invalid cursor: "), "{said}");
        }
        seen.retain(|part| part.starts_with(name));
        assert!(seen.into_iter().eq((0..200).map(|number| format!("{name}{number:03}"))));
    }
}

/// Each key that exists throughout the scan is returned once, whatever else changes.
#[test]
fn a_scan_gives_every_key_once() {
    let server = start(&directory("scan"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for number in 0..500 {
        let command = if number % 3 == 0 { "HSET stays:{} f v" } else { "SET stays:{} v" };
        client.say(&command.replace("{}", &format!("{number:03}")));
    }
    let (mut cursor, mut seen, mut step) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let text = client.say(&format!("SCAN {cursor} COUNT 7 MATCH stays:*"));
        let (next, keys) = text[1..text.len() - 2].split_once(" [").expect("a cursor and keys");
        seen.extend(keys.split_whitespace().map(ToOwned::to_owned));
        next.clone_into(&mut cursor);
        if cursor == "0" {
            break;
        }
        step += 1;
        client.say(&format!("SET goes:{step} v"));
        client.say(&format!("SET stays:{:03}x v", (step * 37) % 500));
        client.say(&format!("DEL goes:{}", step - 1));
    }
    let stays: Vec<&String> = seen.iter().filter(|key| !key.ends_with('x')).collect();
    let expected: Vec<String> = (0..500).map(|number| format!("stays:{number:03}")).collect();
    assert!(stays.into_iter().eq(&expected));
}

#[test]
fn what_is_too_long_is_told() {
    let server = start(&directory("long"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let (long, longer) = ("k".repeat(246), "k".repeat(247));
    assert_eq!(client.say(&format!("SET {long} v EX 100")), "OK");
    assert_eq!(client.say(&format!("HSET h {long} v")), "1");
    let told = |answer: String, what: &str| assert!(answer.contains(what), "{answer}");
    told(client.say(&format!("SET {longer} v")), "-ERR key has 247 bytes, at most 246");
    told(client.say(&format!("HSET h {longer} v")), "-ERR field has 247 bytes, at most 246");
    told(client.say(&format!("ZADD z 1 {long}")), "-ERR member has 246 bytes, at most 238");
    // The longest value of a store of this size, less the header of a string.
    let value = "v".repeat(229_376 - 9);
    assert_eq!(client.say(&format!("SET big {value}")), "OK");
    assert_eq!(client.say("STRLEN big"), value.len().to_string());
    told(client.say(&format!("SET big {value}x")), "-ERR string exceeds maximum allowed size");
    told(client.say("APPEND big x"), "-ERR string exceeds maximum allowed size");
    assert_eq!(client.say("PING"), "PONG");
}
