//! One byte of the store is changed: each reply is complete or an error. Unreadable data is never
//! reported as absent.
//!
//! `LEVELHEAD_SEED=17 cargo test -p server --test serve -- --nocapture what_cannot_be_read` replays
//! one flip of each kind of page.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use levelhead::Store;
use runtime::Rng;
use server::{Clock, Options, Server};

use crate::client::{Client, directory};

/// Flips per kind of page; `LEVELHEAD_ROUNDS` sets it.
const FLIPS: u64 = 8;
const PAGE: u64 = 4_096;
const MANY: usize = 700;

#[expect(clippy::disallowed_methods, reason = "a test may be told from outside")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

fn open(directory: &Path) -> Result<Store, levelhead::Error> {
    let options = levelhead::Options {
        capacity_bytes: 64 << 20,
        memtable_bytes: 1 << 20,
        ..levelhead::Options::default()
    };
    Store::open(directory, &options)
}

fn serve(store: Store, clock: Clock) -> Result<Server, server::ServeError> {
    let listen = Some(([127, 0, 0, 1], 0).into());
    Server::start(store, Options { listen, ..Options::default() }, clock)
}

fn words(of: &dyn Fn(usize) -> String) -> String {
    (0..MANY).map(of).collect::<Vec<_>>().join(" ")
}

/// Returns the commands to send, in order.
fn questions() -> Vec<String> {
    let lines = [
        "DBSIZE",
        "KEYS *",
        "KEYS k*",
        "SCAN 0 COUNT 100000",
        "SCAN 0 COUNT 100000 TYPE hash",
        "KEYRANGE - +",
        "KEYRANGE - + WITHVALUES",
        "HGETALL h",
        "HKEYS h",
        "HSCAN h 0 COUNT 100000",
        "HLEN h",
        "ZRANGE z 0 -1 WITHSCORES",
        "ZRANGE z (100 +inf BYSCORE",
        "ZSCAN z 0 COUNT 100000",
        "ZCOUNT z -inf +inf",
        "ZLEXCOUNT z - +",
        "ZRANK z m0600",
        "ZREVRANK z m0600",
        "COPY h copied REPLACE",
        "HGETALL copied",
        "RENAME z renamed",
        "ZRANGE renamed 0 -1 WITHSCORES",
        "RENAME renamed z",
        "ZREMRANGEBYSCORE z 0 99",
        "ZCARD z",
        "ZRANGE z 0 -1",
    ];
    let all = words(&|n| format!("k{n:04}"));
    let more = [format!("MGET {all}"), format!("EXISTS {all}"), format!("DEL {all}")];
    lines.map(str::to_owned).into_iter().chain(more).collect()
}

/// Writes a store with all kinds of data, some of it only in the log, and without a recorded number
/// of keys.
fn filled(directory: &Path) {
    let store = open(directory).expect("a directory of our own");
    let server = serve(store.clone(), Clock::by_hand(1_000_000).0).expect("a new store");
    let mut client = Client::of(&server);
    let value = |n: usize| format!("{n:0300}");
    client.say(&format!("MSET {}", words(&|n| format!("k{n:04} {}", value(n)))));
    client.say(&format!("HSET h {}", words(&|n| format!("f{n:04} {}", value(n)))));
    store.compact().expect("there is room");
    client.say(&format!("ZADD z {}", words(&|n| format!("{n} m{n:04}"))));
    client.say("PEXPIRE k0003 1000");
    client.say("SET k0003 again");
    store.compact().expect("there is room");
    client.say(&format!("MSET {}", words(&|n| format!("l{n:04} {n}"))));
    drop(client);
    server.stop().expect("nothing is in the way");
    store.delete(b"\x01c").expect("it takes writes");
}

/// The non-zero blocks of a file by kind (docs/format.md), with their offsets.
type Blocks = BTreeMap<u8, Vec<(u64, Vec<u8>)>>;

fn blocks(file: &File) -> Blocks {
    let mut kinds = Blocks::new();
    for page in 0..file.metadata().expect("it is there").len() / PAGE {
        let mut block = vec![0; PAGE as usize];
        file.read_exact_at(&mut block, page * PAGE).expect("it can be read");
        if block.iter().any(|byte| *byte != 0) {
            kinds.entry(block[22]).or_default().push((page * PAGE, block));
        }
    }
    kinds
}

fn restore(file: &File, blocks: &Blocks) {
    let bytes = file.metadata().expect("it is there").len();
    file.set_len(0).and_then(|()| file.set_len(bytes)).expect("it can be cut");
    for (offset, block) in blocks.values().flatten() {
        file.write_all_at(block, *offset).expect("it can be written");
    }
}

/// Opens the store and returns the replies to all commands, or `None` if it does not open.
fn answers(directory: &Path, questions: &[String]) -> Option<Vec<String>> {
    let (clock, hand) = Clock::by_hand(1_000_000);
    let server = serve(open(directory).ok()?, clock).ok()?;
    // An outdated expiry passes: its key has a new value since.
    hand.advance_ms(5_000);
    let mut client = Client::of(&server);
    Some(questions.iter().map(|question| client.say(question)).collect())
}

#[test]
fn what_cannot_be_read_is_no_absence() {
    let directory = directory("damaged");
    filled(&directory);
    let data = || {
        let path = directory.join("data");
        OpenOptions::new().read(true).write(true).open(path).expect("it is there")
    };
    let (whole, questions) = (blocks(&data()), questions());
    let wanted_answers = answers(&directory, &questions).expect("it is whole");
    assert!(wanted_answers.iter().all(|answer| !answer.starts_with('-')), "{wanted_answers:?}");
    let flips = wanted("LEVELHEAD_ROUNDS").unwrap_or(FLIPS);
    let seeds = wanted("LEVELHEAD_SEED").map_or(0..flips, |seed| seed..seed + 1);
    let (mut unopened, mut told) = (0, 0);
    // Index segments, values, and the log.
    for (kind, seed) in [1, 2, 7].into_iter().flat_map(|kind| seeds.clone().map(move |s| (kind, s)))
    {
        let rng = &mut Rng::derive(seed, &format!("kind {kind}"));
        let blocks = whole.get(&kind).expect("there are some");
        let (offset, block) = &blocks[rng.below(blocks.len() as u64) as usize];
        let within = rng.below(PAGE);
        restore(&data(), &whole);
        let flipped = [block[within as usize] ^ (1 + rng.below(255) as u8)];
        data().write_all_at(&flipped, offset + within).expect("it can be written");
        let Some(answers) = answers(&directory, &questions) else {
            unopened += 1;
            continue;
        };
        let mut is_changed = false;
        for ((question, answer), wanted) in questions.iter().zip(&answers).zip(&wanted_answers) {
            let is_told = answer.starts_with('-');
            told += usize::from(is_told);
            // After a refused write the expected replies differ.
            assert!(
                is_told || is_changed || answer == wanted,
                "kind {kind}, seed {seed}: {question:.40} said {answer:.3000}"
            );
            let changes = ["COPY", "RENAME", "ZREM", "DEL"];
            is_changed |= is_told && changes.iter().any(|change| question.starts_with(change));
        }
    }
    println!("{unopened} stores did not open, and {told} answers were errors");
    assert!(told > 0, "flips that nobody notices say nothing");
}
