//! Long replies: complete if memory permits, otherwise an error.

use std::collections::BTreeSet;

use crate::client::{Client, directory, start};
use server::resp::Value;
use server::{Clock, Options};

/// Short commands may request long replies. Data is removed only after the reply is known to fit.
#[test]
fn long_replies_are_refused_whatever_asks_for_them() {
    let options = Options { reply_bytes: 100_000, ..Options::default() };
    let server = start(&directory("long-replies"), options, Clock::system());
    let mut client = Client::of(&server);
    let refused = "-ERR the reply would have more than 100000 bytes; ask for parts of it";
    client.say("ZADD one 1.7976931348623157e308 m");
    let members = (0..1_000).map(|n| format!("{n} {n:0200}")).collect::<Vec<_>>().join(" ");
    assert_eq!(client.say(&format!("ZADD z {members}")), "1000");
    let fields = (0..1_000).map(|n| format!("{n:0100} {n:0100}")).collect::<Vec<_>>().join(" ");
    assert_eq!(client.say(&format!("HSET h {fields}")), "1000");
    for number in 0..120 {
        client.say(&format!("SET s{number} {}", "v".repeat(900)));
    }
    client.say(&format!("SET s {}", "v".repeat(20_000)));
    for line in [
        format!("ZMSCORE one{}", " m".repeat(10_000)),
        format!("MGET{}", " s".repeat(10_000)),
        format!("HMGET h{}", format!(" {:0100}", 7).repeat(10_000)),
        format!("COMMAND INFO{}", " get".repeat(10_000)),
        "ZPOPMIN z 900".to_owned(),
        "ZPOPMAX z 900".to_owned(),
        "ZRANGE z 0 -1 WITHSCORES".to_owned(),
        "HGETALL h".to_owned(),
        "HKEYS h".to_owned(),
        "HRANDFIELD h -2000".to_owned(),
        "KEYRANGE - + WITHVALUES".to_owned(),
    ] {
        assert_eq!(client.say(&line), refused, "{line:.30}");
    }
    assert_eq!(client.say("ZCARD z"), "1000", "nothing was popped that was not said");
    assert_eq!(client.say("ZPOPMIN z 1"), format!("[{:0200} 0]", 0));
    assert_eq!(client.say("PING"), "PONG");
    // All commands of a transaction share one limit.
    client.say("MULTI");
    for _ in 0..6 {
        client.say("GET s");
    }
    let said = client.say("EXEC");
    assert!(said.starts_with("-EXECABORT") && said.contains("100000 bytes"), "{said:.100}");
}

/// A page of a scan ends when memory runs short, whatever COUNT requests.
#[test]
fn a_scan_has_pages_for_which_there_is_room() {
    let options = Options { client_bytes: 8 << 20, ..Options::default() };
    let server = start(&directory("long-pages"), options, Clock::system());
    let mut client = Client::of(&server);
    let value = "v".repeat(100_000);
    for number in 0..60 {
        assert_eq!(client.say(&format!("HSET h f{number} {value}")), "1");
    }
    let refused =
        "-ERR there is no room for so long a reply beside those of others; ask for parts of it";
    assert_eq!(client.say("HGETALL h"), refused);
    let (mut cursor, mut found, mut pages) = ("0".to_owned(), BTreeSet::new(), 0);
    while pages == 0 || cursor != "0" {
        let page = client.ask(&format!("HSCAN h {cursor} COUNT 1000000"));
        let Value::Array(parts) = page else { panic!("{page:?}") };
        let [Value::Bulk(next), Value::Array(pairs)] = &parts[..] else { panic!("{parts:?}") };
        cursor = String::from_utf8_lossy(next).into_owned();
        for pair in pairs.chunks(2) {
            let Value::Bulk(field) = &pair[0] else { panic!("{pair:?}") };
            assert!(found.insert(field.clone()), "it came twice");
        }
        pages += 1;
    }
    assert!(found.len() == 60 && pages > 1, "{} in {pages} pages", found.len());
}
