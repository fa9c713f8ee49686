//! Fuzz tests of every page decoder, also with valid checksums. A decoder must reject the bytes, or
//! return a value that can be traversed to its end.

pub(crate) mod columns;
pub(crate) mod lists;
pub(crate) mod page_lists;
pub(crate) mod pages;
pub(crate) mod segments;
pub(crate) mod tables;

use runtime::Rng;
use testkit::fuzz::{Answer, Target};

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("pages", name), encoding, seal, check }.run();
}
