//! Mutations of bytes.

use runtime::Rng;

/// Maximum length of noise in bytes.
const MOST_NOISE: u64 = 2_048;
/// Maximum number of bytes that a mutation adds at once.
const MOST_ADDED: u64 = 64;

/// Returns random bytes of random length; some inputs consist mostly of boundary bytes.
pub fn noise(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.chance(0.5) { MOST_NOISE } else { 64 };
    let len = rng.below(most + 1) as usize;
    let few = rng.chance(0.3);
    let byte = |rng: &mut Rng| {
        let byte = rng.next_u64() as u8;
        if few { boundary(rng, 0) as u8 & byte } else { byte }
    };
    (0..len).map(|_| byte(rng)).collect()
}

/// Applies one to four random mutations to `bytes`. Some splice in a part of `other`.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        once(bytes, other, rng);
    }
}

fn once(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    match rng.below(12) {
        0 | 1 => with_byte(bytes, rng, |byte, rng| byte ^ (1 << rng.below(8))),
        2 => with_byte(bytes, rng, |_, rng| rng.next_u64() as u8),
        3 => with_byte(bytes, rng, |_, rng| boundary(rng, 0) as u8),
        4..7 => set_number(bytes, rng),
        7 => bytes.truncate(place(bytes, rng)),
        8 => {
            let added = rng.below(MOST_ADDED) as usize;
            let fill = rng.next_u64() as u8;
            bytes.resize(bytes.len() + added, if rng.chance(0.5) { 0 } else { fill });
        }
        9 => splice(bytes, other, rng),
        10 => repeat(bytes, rng),
        _ => swap(bytes, rng),
    }
}

/// Returns a position in `bytes`, its end included. Favours the beginning, where headers are.
fn place(bytes: &[u8], rng: &mut Rng) -> usize {
    let most = bytes.len() as u64 + 1;
    let within = if rng.chance(0.5) { most.min(48) } else { most };
    rng.below(within) as usize
}

fn with_byte(bytes: &mut [u8], rng: &mut Rng, change: impl Fn(u8, &mut Rng) -> u8) {
    let at = place(bytes, rng);
    if let Some(byte) = bytes.get_mut(at) {
        *byte = change(*byte, rng);
    }
}

/// Returns a boundary value: near 0, near the input length, or near the limits of integer types.
fn boundary(rng: &mut Rng, len: usize) -> u64 {
    let near = rng.below(5).wrapping_sub(2);
    match rng.below(8) {
        0 => rng.below(4),
        1 => near,
        2 => (len as u64).wrapping_add(near),
        3 => (1_u64 << (8 * (1 + rng.below(7)))).wrapping_add(near),
        4 => (1_u64 << rng.below(64)) - 1,
        5 => 1 << rng.below(64),
        6 => u64::MAX,
        _ => rng.below(300),
    }
}

/// Overwrites a number of one to eight bytes with a boundary value or with a slightly larger or
/// smaller value.
fn set_number(bytes: &mut [u8], rng: &mut Rng) {
    let at = place(bytes, rng);
    let len = bytes.len();
    let size = 1 << rng.below(4);
    let Some(field) = bytes.get_mut(at..at + size) else { return };
    let mut old = [0; 8];
    old[..size].copy_from_slice(field);
    let old = u64::from_le_bytes(old);
    let new = match rng.below(3) {
        0 => old.wrapping_add(rng.below(9)).wrapping_sub(4),
        _ => boundary(rng, len),
    };
    field.copy_from_slice(&new.to_le_bytes()[..size]);
}

/// Joins the beginning of `bytes` and the end of `other`.
fn splice(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = place(bytes, rng);
    let from = if rng.chance(0.5) { at.min(other.len()) } else { place(other, rng) };
    bytes.truncate(at);
    bytes.extend_from_slice(&other[from..]);
}

/// Removes or duplicates a part.
fn repeat(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let start = place(bytes, rng);
    let end = (start + rng.below(MOST_ADDED) as usize).min(bytes.len());
    if rng.chance(0.5) {
        bytes.drain(start..end);
    } else {
        let part = bytes[start..end].to_vec();
        bytes.splice(end..end, part);
    }
}

/// Swaps two fields of equal size.
fn swap(bytes: &mut [u8], rng: &mut Rng) {
    let size = 1 << rng.below(5);
    let (a, b) = (place(bytes, rng), place(bytes, rng));
    if a.max(b) + size <= bytes.len() && a.abs_diff(b) >= size {
        for i in 0..size {
            bytes.swap(a + i, b + i);
        }
    }
}
