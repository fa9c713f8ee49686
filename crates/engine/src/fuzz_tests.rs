//! Any bytes at all to every decoder of the tree, behind a valid checksum too: it says no, or gives
//! something that can be walked to its end.

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
