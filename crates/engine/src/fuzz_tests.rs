//! Fuzz tests of every page decoder, also with valid checksums. A decoder must reject the bytes, or
//! return a value that can be traversed to its end.

mod columns;
mod lists;
mod page_lists;
mod pages;
mod segments;
mod tables;

use runtime::Rng;
use testkit::fuzz::{Answer, Target};

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("engine", name), encoding, seal, check }.run();
}
