//! Clients that selected a database that does not exist.

use crate::client::{Client, directory, start};
use server::{Clock, Options};

const REFUSED: &str = "-ERR the SELECT before was refused, and there is no database but 0: SELECT 0 first to work on that one";

/// Clients that continue after a refused SELECT, as many do, neither read nor change database 0.
#[test]
fn who_asked_for_another_database_works_on_none() {
    let server = start(&directory("astray"), Options::default(), Clock::system());
    let mut owner = Client::of(&server);
    assert_eq!(owner.say("SET prod precious"), "OK");
    let mut client = Client::of(&server);
    for (line, expected) in [
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("GET prod", "precious"),
        ("SELECT 1", "-ERR DB index is out of range"),
    ] {
        assert_eq!(client.say(line), expected, "{line}");
    }
    for line in [
        "FLUSHDB",
        "FLUSHALL ASYNC",
        "DBSIZE",
        "GET prod",
        "SET k x",
        "DEL prod",
        "MGET prod",
        "KEYS *",
        "SCAN 0",
        "KEYRANGE - +",
        "RANDOMKEY",
        "RENAME prod k",
        "HSET h f 1",
        "ZADD z 1 m",
        "WATCH prod",
    ] {
        assert_eq!(client.say(line), REFUSED, "{line}");
    }
    for (line, expected) in [
        ("PING", "PONG"),
        ("ECHO hi", "hi"),
        ("CLIENT SETNAME me", "OK"),
        ("SELECT 15", "-ERR DB index is out of range"),
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("GET prod", REFUSED),
        ("MULTI", "OK"),
        ("FLUSHDB", REFUSED),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("MULTI", "OK"),
        ("PING", "QUEUED"),
        ("EXEC", "[PONG]"),
    ] {
        assert_eq!(client.say(line), expected, "{line}");
    }
    assert!(client.say("HELLO 2").contains("server redis"));
    assert_eq!(client.say("GET prod"), REFUSED);
    assert_eq!(owner.say("GET prod"), "precious");
    assert_eq!(client.say("SELECT 0"), "OK");
    assert_eq!(client.say("GET prod"), "precious");
    assert_eq!(client.say("SELECT 1"), "-ERR DB index is out of range");
    assert_eq!(client.say("RESET"), "RESET");
    assert_eq!(client.say("GET prod"), "precious");
}

/// A SELECT inside a transaction is refused in the middle of it.
#[test]
fn a_select_within_a_transaction_may_be_refused() {
    let server = start(&directory("astray-exec"), Options::default(), Clock::system());
    let mut client = Client::of(&server);
    for line in ["MULTI", "SET a 1", "SELECT 1", "SET a 2", "DEL a", "SELECT 0", "GET a"] {
        assert!(["OK", "QUEUED"].contains(&client.say(line).as_str()), "{line}");
    }
    let expected = format!("[OK -ERR DB index is out of range {REFUSED} {REFUSED} OK 1]");
    assert_eq!(client.say("EXEC"), expected);
    for line in ["MULTI", "SELECT 1"] {
        client.say(line);
    }
    assert_eq!(client.say("EXEC"), "[-ERR DB index is out of range]");
    assert_eq!(client.say("GET a"), REFUSED);
}
