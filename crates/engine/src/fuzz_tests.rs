//! Fuzz tests: arbitrary bytes, also with a valid checksum, for every decoder of the tree. A
//! decoder either rejects them or returns a value that can be read to its end.

mod columns;
mod lists;
mod segments;
mod tables;

use fuzz::{Answer, Target};
use runtime::Rng;

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("engine", name), encoding, seal, check }.run();
}
