//! The benchmark example, with a tiny file.

#[path = "../../examples/reads/ways.rs"]
mod ways;

use crate::scratch::Scratch;

#[test]
fn every_way_to_read_reads() {
    let scratch = Scratch::new();
    let path = scratch.file("noise");
    ways::make(&path, 1 << 20);
    for (name, run) in ways::WAYS {
        let outcome = run(&path, 3_000);
        assert!(outcome.reads_per_second > 10.0 && outcome.p50 <= outcome.p99, "{name}");
        assert!(outcome.p99 <= outcome.p999 && outcome.p999 <= outcome.max, "{name}");
    }
}
