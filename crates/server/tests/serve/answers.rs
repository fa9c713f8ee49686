//! Replies about scripts and replicas, which do not exist, and about limits and errors.

use crate::client::{Client, directory, start};
use levelhead::{Io, Store};
use server::{Clock, Options};

const NO_SCRIPTS: &str = "-ERR this server runs no scripts (Lua) and no functions; MULTI with WATCH does what many of them are for";
const DIGEST: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

/// Clients try EVALSHA first, and some repeat it forever unless they get NOSCRIPT; then they send
/// EVAL or SCRIPT LOAD.
#[test]
fn there_are_no_scripts() {
    let server = start(&directory("scripts"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let no_script = "-NOSCRIPT No matching script. Please use EVAL.";
    for (line, expected) in [
        (format!("EVALSHA {DIGEST} 1 a"), no_script),
        (format!("evalsha_ro {DIGEST} 0"), no_script),
        ("EVAL return 0".to_owned(), NO_SCRIPTS),
        ("FCALL f 0".to_owned(), NO_SCRIPTS),
        ("FUNCTION LOAD x".to_owned(), NO_SCRIPTS),
        ("SCRIPT LOAD return".to_owned(), NO_SCRIPTS),
        (format!("SCRIPT EXISTS {DIGEST} b"), "[0 0]"),
        ("SCRIPT FLUSH".to_owned(), "OK"),
        ("SCRIPT FLUSH SYNC".to_owned(), "OK"),
        ("SCRIPT KILL".to_owned(), "-NOTBUSY No scripts in execution right now."),
        ("SCRIPT DEBUG YES".to_owned(), "-ERR unknown subcommand 'DEBUG'. Try SCRIPT HELP."),
        // A transaction that contains a script changes nothing.
        ("MULTI".to_owned(), "OK"),
        ("SET a 1".to_owned(), "QUEUED"),
        (format!("EVALSHA {DIGEST} 1 a"), no_script),
        ("EXEC".to_owned(), "-EXECABORT Transaction discarded because of previous errors."),
        ("GET a".to_owned(), "(nil)"),
    ] {
        assert_eq!(client.say(&line), expected, "{line}");
    }
}

/// Client-side caching is refused, so that clients do not rely on invalidations.
#[test]
fn nothing_is_tracked() {
    let server = start(&directory("tracked"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for (line, part) in [
        ("CLIENT TRACKING ON", "TRACKING"),
        ("client tracking ON OPTIN NOLOOP", "tracking"),
        ("CLIENT CACHING YES", "CACHING"),
        ("CLIENT TRACKINGINFO", "TRACKINGINFO"),
    ] {
        let refused = format!("-ERR unknown subcommand '{part}'. Try CLIENT HELP.");
        assert_eq!(client.say(line), refused, "{line}");
    }
    let wrong = "-ERR unknown subcommand or wrong number of arguments for 'ID'. Try CLIENT HELP.";
    assert_eq!(client.say("CLIENT ID x"), wrong);
}

#[test]
fn nobody_follows() {
    let server = start(&directory("follows"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let said = client.say("INFO replication");
    assert!(said.starts_with("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"), "{said}");
    for (line, expected) in [
        ("ROLE", "[master 0 []]"),
        ("WAIT 0 100", "0"),
        ("WAIT 1 0", "0"),
        ("WAIT x 0", "-ERR value is not an integer or out of range"),
        ("WAIT 0 x", "-ERR timeout is not an integer or out of range"),
        ("WAIT 0 -1", "-ERR timeout is negative"),
    ] {
        assert_eq!(client.say(line), expected, "{line}");
    }
}

#[test]
fn errors_are_counted_by_their_kinds() {
    let server = start(&directory("errors"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    assert_eq!(client.say("INFO errorstats"), "# Errorstats\r\n");
    for line in ["SET a", "NOTHING", "EVALSHA a 0", "SET a 1", "HGET a f", "EXEC"] {
        client.say(line);
    }
    // A protocol error, which belongs to no command: the connection ends.
    let mut other = Client::of(&server);
    std::io::Write::write_all(&mut other.stream, b"*1\r\n:1\r\n").expect("it reads");
    assert!(other.receive().is_some());
    assert_eq!(
        client.say("INFO errorstats"),
        "# Errorstats\r\nerrorstat_ERR:count=4\r\nerrorstat_NOSCRIPT:count=1\r\nerrorstat_WRONGTYPE:count=1\r\n"
    );
    assert!(client.say("INFO stats").contains("total_error_replies:6\r\n"));
}

/// INFO reports the limits that are enforced.
#[test]
fn limits_are_told() {
    let server = start(&directory("limits"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    let said = client.say("INFO limits");
    let limit = |name: &str| -> usize {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.expect("a line").parse().expect("a number")
    };
    let name = |length: usize| "n".repeat(length);
    let (key, field) = (limit("max_key_bytes"), limit("max_hash_field_bytes"));
    let (member, string) = (limit("max_sorted_set_member_bytes"), limit("max_string_bytes"));
    for (most, line, done) in [
        (key, "SET * v", "OK"),
        (field, "HSET h * v", "1"),
        (member, "ZADD z 1 *", "1"),
        (string, "SET s *", "OK"),
    ] {
        assert_eq!(client.say(&line.replace('*', &name(most))), done, "{line}");
        let said = client.say(&line.replace('*', &name(most + 1)));
        assert!(said.starts_with("-ERR ") && said.contains(&most.to_string()), "{line}: {said}");
    }
}

/// INFO reports whether the system refuses `io_uring`, and the reason; a store that requires
/// `io_uring` then does not open.
#[test]
fn what_reads_files_is_told() {
    let store = |io: Io| {
        let options =
            levelhead::Options { io, memtable_bytes: 1 << 20, ..levelhead::Options::default() };
        Store::open(directory("io"), &options)
    };
    let ring = store(Io::Ring).map(drop);
    assert_eq!(store(Io::Threads).expect("threads are always there").io_uring_refused(), None);
    let server = start(&directory("io-told"), Options::default(), Clock::system());
    let said = Client::of(&server).say("INFO server");
    let line = said.lines().find_map(|line| line.strip_prefix("io_uring_refused:"));
    assert_eq!(line.expect("a line").is_empty(), ring.is_ok(), "{said} and {ring:?}");
}
