//! Tests of a server through its clients.

mod answers;
mod astray;
mod beyond;
mod client;
mod clocks;
mod crowds;
mod damaged;
mod far;
mod flushed;
mod full;
mod instants;
mod pages;
mod pipelines;
mod replies;
mod secret;
mod transactions;
mod words;

/// The test file system (`faultfs`) is served by this process. With the system's allocator, a
/// thread that waits for the file system within an allocation could hold a lock that the serving
/// thread needs (decision 57); this allocator holds no lock then.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use client::{Client, directory, start, tcp};
use levelhead::Durability;
use server::{Clock, Options};

/// Stored data exists after a restart, with any durability.
#[test]
fn what_is_acknowledged_is_there_again() {
    for durability in [Durability::Group, Durability::Each, Durability::Interval, Durability::None]
    {
        let directory = directory(&format!("again-{durability:?}"));
        let options = || Options { durability, ..Options::default() };
        let server = start(&directory, options(), Clock::system());
        let mut client = Client::of(&server);
        for number in 0..50 {
            assert_eq!(client.say(&format!("SET key:{number} {number}")), "OK");
        }
        assert_eq!(client.say("HSET h a 1 b 2"), "2");
        assert_eq!(client.say("ZADD z 1 a 2 b"), "2");
        assert_eq!(client.say("DEL key:7"), "1");
        drop(client);
        server.stop().expect("nothing is in the way");
        let server = start(&directory, options(), Clock::system());
        let mut client = Client::of(&server);
        assert_eq!(client.say("DBSIZE"), "51");
        assert_eq!(client.say("MGET key:0 key:7 key:49"), "[0 (nil) 49]");
        assert_eq!(client.say("HGETALL h"), "[a 1 b 2]");
        assert_eq!(client.say("ZRANGE z 0 -1 WITHSCORES"), "[a 1 b 2]");
        // Collection ids are not reused.
        assert_eq!(client.say("HSET i c 3"), "1");
        assert_eq!(client.say("HGETALL i"), "[c 3]");
        server.stop().expect("nothing is in the way");
    }
}

/// Commands sent before the stop are answered, all of them and in order on each connection.
#[test]
fn stopping_loses_nothing() {
    let directory = directory("stopping");
    let server = start(&directory, Options::default(), Clock::system());
    let address = tcp(&server);
    let writer = std::thread::Builder::new().spawn(move || {
        let (mut client, mut acknowledged) = (Client::connect(address), 0);
        loop {
            let key = format!("key:{acknowledged}");
            if std::io::Write::write_all(
                &mut client.stream,
                &client::encode(&[b"SET", key.as_bytes(), b"v"]),
            )
            .is_err()
            {
                return acknowledged;
            }
            match client.receive() {
                Some(_) => acknowledged += 1,
                None => return acknowledged,
            }
        }
    });
    let mut idle = Client::of(&server);
    assert_eq!(idle.say("PING"), "PONG");
    while idle.say("DBSIZE").parse::<u64>().expect("a number") < 100 {}
    server.stop().expect("nothing is in the way");
    assert_eq!(idle.receive(), None);
    let acknowledged: usize = writer.expect("a thread").join().expect("it ends");
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let there: usize = client.say("DBSIZE").parse().expect("a number");
    assert!(there >= acknowledged && acknowledged >= 100, "{there} of {acknowledged}");
}

/// A client that removes many keys does not delay a stop: it gets an error, and after the restart
/// the count matches the remaining keys.
#[test]
fn stopping_waits_for_no_long_command() {
    let directory = directory("stopping-long");
    let options = Options { grace_ms: 60_000, durability: Durability::None, ..Options::default() };
    let server = start(&directory, options, Clock::system());
    let mut client = Client::of(&server);
    for part in 0..150 {
        let pairs = (0..2_000).map(|n| format!("k{part}:{n} v")).collect::<Vec<_>>().join(" ");
        assert_eq!(client.say(&format!("MSET {pairs}")), "OK");
    }
    let mut other = Client::of(&server);
    other.send(&[b"FLUSHALL"]);
    while client.say("DBSIZE") == "300000" {}
    server.stop().expect("nothing is in the way");
    let said = client::shown(&other.receive().expect("an answer"));
    assert_eq!(said, "-ERR the server stops, and the command was not carried out to its end");
    assert_eq!((client.receive(), other.receive()), (None, None));
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    assert!(client.say("INFO keyspace").contains("keys_being_counted:0"), "it was left");
    let left = client.say("KEYS *").split(' ').count();
    assert!((2..300_000).contains(&left), "{left}");
    assert_eq!(client.say("DBSIZE"), left.to_string());
    assert_eq!(client.say("FLUSHALL"), "OK");
    assert_eq!(client.say("DBSIZE"), "0");
}

/// Keys are counted again after an unclean stop.
#[test]
fn keys_are_counted_again() {
    let directory = directory("counted");
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for number in 0..300 {
        client.say(&format!("SET {number} x"));
    }
    client.say("HSET h a 1");
    server.stop().expect("nothing is in the way");
    // As if the server had been killed: the number is not recorded.
    let options = levelhead::Options { memtable_bytes: 1 << 20, ..levelhead::Options::default() };
    let store = levelhead::Store::open(&directory, &options).expect("it is there");
    store.delete(b"\x01c").expect("it takes writes");
    drop(store);
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    assert_eq!(client.say("DBSIZE"), "301", "while they are counted as well");
    for _ in 0..1_000 {
        if client.say("INFO keyspace").contains("keys_being_counted:0") {
            break;
        }
    }
    assert_eq!(client.say("DBSIZE"), "301");
}

/// A web page can make a browser send lines to any port; the commands in them are not executed.
#[test]
fn browsers_are_hung_up_on() {
    let server = start(&directory("browsers"), Options::default(), Clock::system());
    for line in ["POST / HTTP/1.1", "Host: localhost", "host: localhost"] {
        let mut client = Client::of(&server);
        let lines = format!("{line}\r\nSET a theirs\r\n");
        std::io::Write::write_all(&mut client.stream, lines.as_bytes()).expect("it listens");
        assert_eq!(client.receive(), None);
    }
    assert_eq!(Client::of(&server).say("EXISTS a"), "0");
}

/// Repeatedly postponing the expiry of a key does not fill the store with outdated notes.
#[test]
fn times_that_a_key_does_not_keep_leave_nothing_behind() {
    let directory = directory("times");
    let server = start(&directory, Options::default(), Clock::system());
    let mut client = Client::of(&server);
    client.say("SET a 1");
    client.say("HSET h f 1");
    for seconds in 1_000..1_020 {
        for key in ["a", "h"] {
            assert_eq!(client.say(&format!("EXPIRE {key} {seconds}")), "1");
        }
    }
    assert_eq!(client.say("GETEX a EX 5000"), "1");
    for key in ["b", "c", "d"] {
        assert_eq!(client.say(&format!("SET {key} 1 EX 1000")), "OK");
    }
    assert_eq!(client.say("RENAME b e"), "OK");
    assert_eq!(client.say("RENAME h i"), "OK");
    assert_eq!(client.say("PERSIST c"), "1");
    assert_eq!(client.say("DEL d"), "1");
    server.stop().expect("nothing is in the way");
    let options = levelhead::Options { memtable_bytes: 1 << 20, ..levelhead::Options::default() };
    let store = levelhead::Store::open(&directory, &options).expect("it is there");
    let notes = store.range(&b"\x40"[..]..&b"\x41"[..]).keys();
    let keys: Vec<_> = notes.map(|note| note.expect("it is whole")[9..].to_vec()).collect();
    assert_eq!(keys, [&b"e"[..], b"i", b"a"]);
}

/// A store with foreign data is refused.
#[test]
fn foreign_stores_are_refused() {
    let directory = directory("foreign");
    let options = levelhead::Options {
        capacity_bytes: 512 << 20,
        memtable_bytes: 1 << 20,
        ..Default::default()
    };
    let store = levelhead::Store::open(&directory, &options).expect("a directory of our own");
    store.put(b"a", b"b").expect("it takes writes");
    let refused = server::Server::start(
        store,
        Options { listen: Some(([127, 0, 0, 1], 0).into()), ..Options::default() },
        Clock::system(),
    );
    assert!(refused.err().expect("it is refused").to_string().contains("no server wrote"));
}

#[test]
fn time_may_jump() {
    let (clock, hand) = Clock::by_hand(1_000_000);
    let server = start(&directory("time"), Options::default(), clock);
    let mut client = Client::of(&server);
    assert_eq!(client.say("SET a 1 EX 10"), "OK");
    assert_eq!(client.say("SET b 1 PX 500"), "OK");
    assert_eq!(client.say("HSET h f 1"), "1");
    assert_eq!(client.say("EXPIRE h 20"), "1");
    assert_eq!(client.say("TTL a"), "10");
    assert_eq!(client.say("PTTL b"), "500");
    hand.advance_ms(500);
    assert_eq!(client.say("EXISTS a b h"), "2");
    assert_eq!(client.say("SET b 2 NX"), "OK");
    assert_eq!(client.say("TTL b"), "-1");
    assert_eq!(client.say("SET a 2 KEEPTTL"), "OK");
    assert_eq!(client.say("PTTL a"), "9500");
    // With the clock set back, keys live longer.
    hand.set_ms(0);
    assert_eq!(client.say("TTL a"), "1010");
    hand.set_ms(1_010_001);
    assert_eq!(client.say("GET a"), "(nil)");
    assert_eq!(client.say("TYPE h"), "hash");
    assert_eq!(client.say("PERSIST h"), "1");
    hand.set_ms(10_000_000);
    assert_eq!(client.say("HGET h f"), "1");
    assert_eq!(client.say("SET c 1 PXAT 10000001"), "OK");
    hand.advance_ms(1);
    assert_eq!(client.say("SCAN 0"), "[0 [b h]]");
    // The expired key is swept and no longer counted.
    for _ in 0..2_000 {
        if client.say("DBSIZE") == "2" {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    panic!("what has expired is not swept: {}", client.say("DBSIZE"));
}

/// Swept or not, few or many.
#[test]
fn keys_that_have_expired_are_in_no_list() {
    let (clock, hand) = Clock::by_hand(1_000_000);
    let server = start(&directory("expired"), Options::default(), clock);
    let mut client = Client::of(&server);
    for keys in [7, 1_500] {
        for number in 0..keys {
            client.say(&format!("SET {number} x PX 500"));
        }
        client.say("SET stays x PX 400");
        client.say("PERSIST stays");
        client.say("HSET h f 1");
        client.say("PEXPIRE h 400");
        client.say("SET moved x PX 450");
        client.say("PEXPIRE moved 1000000");
        hand.advance_ms(500);
        assert_eq!(client.say("KEYS *"), "[moved stays]");
        assert_eq!(client.say("SCAN 0 COUNT 10000"), "[0 [moved stays]]");
        assert_eq!(client.say("SCAN 0 COUNT 10000 TYPE string"), "[0 [moved stays]]");
        assert_eq!(client.say("SCAN 0 COUNT 10000 TYPE hash"), "[0 []]");
        assert_eq!(client.say("KEYRANGE - +"), "[moved stays]");
        assert_eq!(client.say("KEYRANGE - + WITHVALUES"), "[moved x stays x]");
    }
}

#[test]
fn strangers_are_kept_out() {
    let options = Options { password: Some("secret".to_owned()), ..Options::default() };
    let server = start(&directory("auth"), options, Clock::system());
    let mut client = Client::of(&server);
    assert!(client.say("GET a").starts_with("-NOAUTH"));
    assert!(client.say("HELLO 3").starts_with("-NOAUTH"));
    for wrong in ["AUTH secre", "AUTH secretsecret", "AUTH other secret", "HELLO 3 AUTH default x"]
    {
        assert!(client.say(wrong).starts_with("-WRONGPASS"), "{wrong}");
    }
    // A HELLO that fails changes nothing, even if its password is right.
    assert!(client.say("HELLO 3 AUTH default secret LATER").starts_with("-ERR Syntax error"));
    assert!(client.say("GET a").starts_with("-NOAUTH"));
    assert_eq!(client.say("AUTH secret"), "OK");
    assert_eq!(client.say("GET a"), "(nil)");
    assert_eq!(client.say("RESET"), "RESET");
    assert!(client.say("GET a").starts_with("-NOAUTH"));
    assert!(client.say("HELLO 3 AUTH default secret SETNAME me").contains("proto:3"));
    assert_eq!(client.say("CLIENT GETNAME"), "me");
    // Unauthenticated clients may send short arguments only.
    let mut stranger = Client::of(&server);
    stranger.send(&[b"AUTH", &b"a".repeat(20_000)]);
    assert!(client::shown(&stranger.receive().expect("an answer")).contains("Protocol error"));
    assert_eq!(stranger.receive(), None);
}

#[test]
fn keys_of_others_are_elsewhere() {
    // The map needs the port before the server starts, so a free port is looked up first.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let port = free.local_addr().expect("it has one").port();
    drop(free);
    let store_options = levelhead::Options {
        capacity_bytes: 512 << 20,
        memtable_bytes: 1 << 20,
        ..Default::default()
    };
    let store = levelhead::Store::open(directory("cluster"), &store_options).expect("ours");
    let map = format!("127.0.0.1:{port} 0-8191; 127.0.0.1:1 8192-16383");
    let listen = Some(([127, 0, 0, 1], port).into());
    let options = Options { listen, cluster: Some(map), ..Options::default() };
    let server = server::Server::start(store, options, Clock::system()).expect("the port is free");
    let mut client = Client::of(&server);
    assert_eq!(client.say("SET foo 1"), "-MOVED 12182 127.0.0.1:1");
    assert_eq!(client.say("SET bar 1"), "OK");
    assert_eq!(client.say("CLUSTER KEYSLOT bar"), "5061");
    assert!(client.say("MGET bar hello").starts_with("-CROSSSLOT"));
    assert_eq!(client.say("READONLY"), "OK");
    assert!(client.say("CLUSTER SLOTS").contains(&format!("0 8191 [127.0.0.1 {port}")));
    assert!(client.say("CLUSTER INFO").contains("cluster_state:ok"));
    assert!(client.say("CLUSTER NODES").contains("myself,master"));
    assert_eq!(client.say("CLUSTER MYID").len(), 40);
    assert!(client.say("CLUSTER SHARDS").contains("endpoint"));
}
