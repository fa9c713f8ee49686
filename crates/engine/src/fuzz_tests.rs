//! Any bytes at all to every decoder of the engine, behind a valid checksum too: it says no, or gives
//! something that can be walked to its end.

mod lists;
mod pages;

use fuzz::{Answer, Target};
use runtime::Rng;

use crate::Value;
use crate::format::pointer::PointerFormat;
use crate::store::medium::Shape;

/// A small medium.
const SHAPE: Shape = Shape {
    payload_bytes: 1056,
    page_bytes: 1024,
    pages_per_extent: 32,
    extents: 24,
    append_unit: 1,
    parallelism: 4,
};

fn pointers() -> PointerFormat {
    PointerFormat::new(&SHAPE)
}

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("engine", name), encoding, seal, check }.run();
}

fn value(rng: &mut Rng, most: u64) -> Value {
    let synthetic = Value::Synthetic { seed: rng.next_u64(), len: rng.below(most + 1) as u32 };
    if rng.chance(0.5) { synthetic } else { Value::from_bytes(&synthetic.to_bytes()) }
}

/// Keys in order: of one length, or of several.
fn keys(rng: &mut Rng, most: u64) -> Vec<Vec<u8>> {
    let is_even = rng.chance(0.5);
    let first = rng.below(1 << 20);
    let key = |i: u64, rng: &mut Rng| {
        let long = if is_even { 12 } else { rng.below(60) as usize };
        let mut key = format!("k{:08}", first + 3 * i).into_bytes();
        key.resize(9 + long, b'x');
        key
    };
    (0..=rng.below(most)).map(|i| key(i, rng)).collect()
}

/// Parts, each behind its length: several pages as one input.
fn joined(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let with_length = |part: Vec<u8>| {
        let length = (part.len() as u16).to_le_bytes();
        length.into_iter().chain(part).collect::<Vec<u8>>()
    };
    parts.into_iter().flat_map(with_length).collect()
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (part, tail) = rest.split_at(length);
        parts.push(part.to_vec());
        bytes = tail;
    }
    parts
}
