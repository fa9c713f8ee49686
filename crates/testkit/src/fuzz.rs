//! Fuzzing of decoders with real encodings, mutations and noise. Bounded and deterministic by seed.
//!
//! The [`Target`] of a decoder creates encodings, fixes checksums, and checks the decoder's result
//! for any bytes. [`Target::run`] feeds it. The number of an input determines everything about the
//! input. Two properties are checked for every decoder: it does not panic, and it allocates memory
//! in proportion to the actual input, not to the sizes that the input claims.
//!
//! `LEVELHEAD_FUZZ=N` runs N inputs per target instead of [`DEFAULT_INPUTS`]. `LEVELHEAD_SEED=N`
//! runs only input N. A failure prints the command that replays it.

mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use runtime::Rng;
use runtime::counted::{Counted, asked_bytes};

pub use mutate::{mutate, noise};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Default number of inputs per target.
pub const DEFAULT_INPUTS: u64 = 4_000;

/// Inputs that share a set of encodings.
const BATCH: u64 = 1_024;
/// Encodings in a set.
const ENCODINGS: usize = 32;

/// Limit of the bytes that a decoder and its checks may allocate: a constant, plus an amount per
/// input byte.
const FREE_BYTES: u64 = 1 << 20;
const BYTES_PER_BYTE: u64 = 512;

/// The result of a decoder for some bytes, after the decoded value was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The bytes are a valid encoding.
    Taken,
    /// The bytes are not a valid encoding.
    Refused,
}

impl From<bool> for Answer {
    fn from(is_taken: bool) -> Self {
        if is_taken { Self::Taken } else { Self::Refused }
    }
}

/// A decoder to fuzz.
pub struct Target<'a> {
    /// The crate and the name of the test, for the replay command.
    pub test: (&'a str, &'a str),
    /// Returns a real encoding.
    pub encoding: &'a dyn Fn(&mut Rng) -> Vec<u8>,
    /// Fixes the checksum, and other fields that are checked first, so that decoding continues past
    /// them.
    pub seal: &'a dyn Fn(&mut Vec<u8>),
    /// Decodes the bytes, and panics if the decoded value is unsound.
    pub check: &'a dyn Fn(&[u8]) -> Answer,
}

/// The origin of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Making {
    Encoding,
    Mutation,
    Noise,
}

impl Target<'_> {
    /// Feeds the decoder and prints the results.
    ///
    /// # Panics
    /// Panics if the decoder panics, allocates too much memory or refuses a real encoding. Also
    /// panics if no mutation was accepted or none was refused: then the test does not reach the
    /// code it is meant for.
    pub fn run(&self) {
        if let Some(number) = from_environment("LEVELHEAD_SEED") {
            self.feed(number, &self.encodings(number / BATCH));
            return;
        }
        let inputs = from_environment("LEVELHEAD_FUZZ").unwrap_or(DEFAULT_INPUTS);
        let mut encodings = Vec::new();
        let (mut taken, mut mutations) = (0, 0);
        for number in 0..inputs {
            if number % BATCH == 0 {
                encodings = self.encodings(number / BATCH);
            }
            let (making, answer) = self.feed(number, &encodings);
            assert!(
                making != Making::Encoding || answer == Answer::Taken,
                "a real encoding is refused\n{}",
                self.replay(number)
            );
            mutations += u64::from(making == Making::Mutation);
            taken += u64::from(making == Making::Mutation && answer == Answer::Taken);
        }
        let (krate, test) = self.test;
        println!("{krate} {test}: {inputs} inputs, {taken} of {mutations} mutations taken");
        assert!(taken > 0 || inputs < DEFAULT_INPUTS, "nothing gets past the first check");
    }

    fn encodings(&self, batch: u64) -> Vec<Vec<u8>> {
        let rng = &mut Rng::derive(batch, "encodings");
        (0..ENCODINGS).map(|_| (self.encoding)(rng)).collect()
    }

    /// Feeds the input with this number to the decoder.
    fn feed(&self, number: u64, encodings: &[Vec<u8>]) -> (Making, Answer) {
        let (making, bytes) = self.input(number, encodings);
        let before = asked_bytes();
        let answer = catch_unwind(AssertUnwindSafe(|| (self.check)(&bytes)));
        let asked = asked_bytes() - before;
        let answer = answer.unwrap_or_else(|panic| {
            eprintln!("{}", self.replay(number));
            resume_unwind(panic)
        });
        let most = FREE_BYTES + BYTES_PER_BYTE * bytes.len() as u64;
        assert!(
            asked <= most,
            "{asked} bytes of memory for {} bytes\n{}",
            bytes.len(),
            self.replay(number)
        );
        (making, answer)
    }

    fn input(&self, number: u64, encodings: &[Vec<u8>]) -> (Making, Vec<u8>) {
        let rng = &mut Rng::derive(number, "input");
        let pick = |rng: &mut Rng| &encodings[rng.below(encodings.len() as u64) as usize];
        let making = match rng.below(32) {
            0 => Making::Encoding,
            1..4 => Making::Noise,
            _ => Making::Mutation,
        };
        let mut bytes = match making {
            Making::Encoding => return (making, pick(rng).clone()),
            Making::Noise => noise(rng),
            Making::Mutation => {
                let mut bytes = pick(rng).clone();
                mutate(&mut bytes, pick(rng), rng);
                bytes
            }
        };
        if rng.chance(0.75) {
            (self.seal)(&mut bytes);
        }
        (making, bytes)
    }

    fn replay(&self, number: u64) -> String {
        let (krate, test) = self.test;
        format!("replay: LEVELHEAD_SEED={number} cargo test -p {krate} {test}")
    }
}

/// A `seal` for formats without a checksum.
pub fn unsealed(_: &mut Vec<u8>) {}

/// Reads a number from an environment variable, by which a user requests more inputs or a single
/// input.
#[expect(clippy::disallowed_methods, reason = "the one thing a test may be told from outside")]
pub fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a target whose encoding is a length byte followed by that many bytes.
    fn target(check: &dyn Fn(&[u8]) -> Answer) -> Target<'_> {
        let encoding = &|rng: &mut Rng| {
            let len = rng.below(100) as u8;
            let mut bytes = vec![len];
            bytes.resize(1 + usize::from(len), 7);
            bytes
        };
        Target { test: ("testkit", "tests"), encoding, seal: &unsealed, check }
    }

    #[test]
    fn a_sound_decoder_passes() {
        target(&|bytes| {
            let Some((len, rest)) = bytes.split_first() else { return Answer::Refused };
            (rest.len() == usize::from(*len)).into()
        })
        .run();
    }

    #[test]
    #[should_panic(expected = "range end index")]
    fn one_that_believes_a_length_is_found() {
        target(&|bytes| {
            let Some((len, rest)) = bytes.split_first() else { return Answer::Refused };
            (rest[..usize::from(*len)].len() == rest.len()).into()
        })
        .run();
    }

    #[test]
    #[should_panic(expected = "bytes of memory for")]
    fn one_that_makes_room_for_what_is_claimed_is_found() {
        target(&|bytes| {
            let claimed = bytes.first().map_or(0, |len| usize::from(*len) << 15);
            (Vec::<u8>::with_capacity(claimed).capacity() >= claimed).into()
        })
        .run();
    }

    #[test]
    #[should_panic(expected = "a real encoding is refused")]
    fn one_that_refuses_everything_is_found() {
        target(&|_| Answer::Refused).run();
    }
}
