//! Properties of all commands and replies.

use proptest::prelude::*;

use super::{Decoder, Limits, Protocol, Reply, Value};

fn encode(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut reply = Reply::default();
    for command in commands {
        reply.array(command.len());
        for argument in command {
            reply.bulk(argument);
        }
    }
    reply.take()
}

fn commands() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let argument = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop::collection::vec(argument, 1..6), 0..6)
}

/// Generates values.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[a-z ]{0,9}".prop_map(Value::Simple),
        "[A-Z ]{0,9}".prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bulk),
        Just(Value::Null),
        any::<i32>().prop_map(|number| Value::Double(f64::from(number) / 8.0)),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Set),
            prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

fn say(reply: &mut Reply, value: &Value) {
    match value {
        Value::Simple(word) => reply.simple(word),
        Value::Error(message) => reply.error(message),
        Value::Integer(number) => reply.integer(*number),
        Value::Bulk(bytes) => reply.bulk(bytes),
        Value::Double(number) => reply.double(*number),
        Value::Null | Value::Boolean(_) => reply.null(),
        Value::Array(values) => {
            reply.array(values.len());
            for value in values {
                say(reply, value);
            }
        }
        Value::Set(values) => {
            reply.set(values.len());
            for value in values {
                say(reply, value);
            }
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (key, value) in pairs {
                say(reply, key);
                say(reply, value);
            }
        }
    }
}

proptest! {
    /// The same commands are decoded however the input is cut into pieces, and whenever decoded
    /// input is removed.
    #[test]
    fn pieces_make_no_difference(commands in commands(), sizes in prop::collection::vec(1usize..30, 1..20)) {
        let bytes = encode(&commands);
        let (mut decoder, mut buffer, mut seen) = (Decoder::default(), Vec::new(), Vec::new());
        let (mut at, mut sizes) = (0, sizes.iter().cycle());
        while at < bytes.len() {
            let size = (*sizes.next().expect("a cycle")).min(bytes.len() - at);
            buffer.extend_from_slice(&bytes[at..at + size]);
            at += size;
            while let Some(command) = decoder.next(&buffer, &Limits::default()).expect("good commands") {
                seen.push(command.arguments(&buffer).into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
            }
            buffer.drain(..decoder.take_done());
        }
        prop_assert_eq!(seen, commands);
        prop_assert!(buffer.is_empty());
    }

    /// Decoding a RESP3 reply returns the encoded value; a part of a reply is incomplete.
    #[test]
    fn a_reply_is_heard_as_it_was_said(value in values()) {
        let mut reply = Reply::new(Protocol::Resp3);
        say(&mut reply, &value);
        let bytes = reply.take();
        prop_assert_eq!(Value::decode(&bytes), Ok((value, bytes.len())));
        prop_assert!(Value::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
