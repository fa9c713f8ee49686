//! Random 4 KiB reads, one at a time, by each way that a program can read.
//!
//! `cargo run --release -p files --example reads -- FILE [MIB [SECONDS [ROUNDS [WORD]]]]` creates
//! FILE, 4096 MiB of random data, if it does not exist. The ways take turns, so that other load on
//! the machine affects all of them. WORD selects the ways whose names contain it.

mod ways;

use std::path::PathBuf;

use ways::{Outcome, WAYS};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: reads FILE [MIB [SECONDS [ROUNDS [WORD]]]]");
        std::process::exit(2);
    };
    let mut number =
        |usual: u64| arguments.next().and_then(|said| said.parse().ok()).unwrap_or(usual);
    let (mib, seconds, rounds) = (number(4096), number(4), number(3));
    let word = arguments.next().unwrap_or_default();
    ways::make(&path, mib << 20);
    println!(
        "{:<44} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "way", "reads/s", "p50 us", "p99", "p99.9", "max"
    );
    for _ in 0..rounds {
        for (name, run) in WAYS.into_iter().filter(|(name, _)| name.contains(&word)) {
            let outcome = run(&path, seconds * 1_000_000);
            let Outcome { reads_per_second, p50, p99, p999, max } = outcome;
            println!(
                "{name:<44} {reads_per_second:>9.0} {p50:>8.1} {p99:>8.1} {p999:>8.1} {max:>8.1}"
            );
        }
    }
}
