//! Both decoders, on mutated encodings and noise.

use runtime::Rng;
use testkit::fuzz::{Answer, Target, unsealed};

use super::{Decoder, Limits, Protocol, Reply, Value};

fn bytes(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.below(256) as u8).collect()
}

/// Generates an inline command with all kinds of quoting.
fn typed(rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&[u8]; 8] =
        [b"SET", b"'a b'", b"\"c\\x41\\n\"", b"\"\"", b"'it\\'s'", b"a\\x", b"\"\\\"\"", b"\xff\0"];
    let mut line = Vec::new();
    for _ in 0..=rng.below(5) {
        line.extend_from_slice(WORDS[rng.below(WORDS.len() as u64) as usize]);
        line.extend_from_slice(if rng.chance(0.8) { &b" "[..] } else { b"\t  " });
    }
    line.extend_from_slice(if rng.chance(0.5) { &b"\r\n"[..] } else { b"\n" });
    line
}

fn commands(rng: &mut Rng) -> Vec<u8> {
    let mut reply = Reply::default();
    for _ in 0..=rng.below(4) {
        let count = 1 + rng.below(5) as usize;
        reply.array(count);
        (0..count).for_each(|_| reply.bulk(&bytes(rng, 30)));
    }
    let mut encoded = reply.take();
    for _ in 0..rng.below(3) {
        encoded.extend_from_slice(&typed(rng));
    }
    // Either kind of command may come first.
    if rng.chance(0.3) { [typed(rng), encoded].concat() } else { encoded }
}

/// Decodes the input at once and byte by byte, and compares the results.
fn check(bytes: &[u8]) -> Answer {
    let limits = Limits { arguments: 100, argument_bytes: 1_000, line_bytes: 100 };
    let (mut decoder, mut at_once) = (Decoder::default(), Vec::new());
    let outcome = loop {
        match decoder.next(bytes, &limits) {
            Ok(Some(command)) => {
                let words = command.arguments(bytes);
                at_once.push(words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let (mut decoder, mut by_bytes) = (Decoder::default(), Vec::<Vec<Vec<u8>>>::new());
    let mut buffer = Vec::new();
    let mut outcome_by_bytes = Ok(());
    'bytes: for byte in bytes {
        buffer.push(*byte);
        loop {
            match decoder.next(&buffer, &limits) {
                Ok(Some(command)) => {
                    let words = command.arguments(&buffer);
                    by_bytes.push(words.into_iter().map(<[u8]>::to_vec).collect());
                }
                Ok(None) => break,
                Err(error) => {
                    outcome_by_bytes = Err(error);
                    break 'bytes;
                }
            }
        }
        buffer.drain(..decoder.take_done());
    }
    assert_eq!(by_bytes, at_once);
    assert_eq!(outcome_by_bytes, outcome);
    (outcome.is_ok() && !at_once.is_empty()).into()
}

#[test]
fn fuzz_commands() {
    Target {
        test: ("server", "fuzz_commands"),
        encoding: &commands,
        seal: &unsealed,
        check: &check,
    }
    .run();
}

fn reply(rng: &mut Rng) -> Vec<u8> {
    fn say(reply: &mut Reply, rng: &mut Rng, depth: u64) {
        match rng.below(if depth > 3 { 6 } else { 9 }) {
            0 => reply.simple("OK"),
            1 => reply.error("ERR it is not"),
            2 => reply.integer(rng.next_u64() as i64),
            3 => reply.bulk(&bytes(rng, 20)),
            4 => reply.null(),
            5 => reply.double(rng.below(1_000) as f64 / 8.0),
            kind => {
                let count = rng.below(4) as usize;
                match kind {
                    6 => reply.array(count),
                    7 => reply.set(count),
                    _ => reply.map(count),
                }
                let values = if kind == 8 { 2 * count } else { count };
                (0..values).for_each(|_| say(reply, rng, depth + 1));
            }
        }
    }
    let mut reply = Reply::new(Protocol::Resp3);
    say(&mut reply, rng, 0);
    reply.take()
}

#[test]
fn fuzz_replies() {
    let check = |bytes: &[u8]| match Value::decode(bytes) {
        Ok((_, length)) => {
            assert!(length <= bytes.len());
            // One byte less must be incomplete, because every value ends with its line end.
            assert!(Value::decode(&bytes[..length - 1]).is_err());
            Answer::Taken
        }
        Err(_) => Answer::Refused,
    };
    Target { test: ("server", "fuzz_replies"), encoding: &reply, seal: &unsealed, check: &check }
        .run();
}
