//! Keys several times as long as the index was sized for, on drives that are full from the start:
//! level lists outgrow their plan, pinned levels are written out, and space is scarce.

use engine::Options;
use runtime::Nanos;
use testkit::trial::Names;

use crate::shape::{Cuts, Shape};
use crate::tally::Tally;
use crate::trial::run_trial;

fn shape_of(seed: u64, design: &Options) -> Shape {
    let usual = Shape::of_seed(7 * seed + 5);
    assert!(usual.is_filled, "every seventh drive is filled");
    Shape {
        names: Names::UpTo(240),
        longest_value: 4_300,
        scanners: 0,
        sessions: 1,
        cuts: Cuts::Seldom { longest: Nanos::from_millis(4_000) },
        engine: Options { memtable_bytes: 4 << 10, ..design.clone() }.into(),
        ..usual
    }
}

/// Asserts that deletes are never refused. The trial complains if a client makes no progress.
fn deletes_go_ahead(design: &Options) {
    let mut total = Tally::default();
    for seed in 0..4 {
        let shape = shape_of(seed, design);
        let tally = run_trial(seed, &shape, None)
            .unwrap_or_else(|error| panic!("seed {seed}, {design:?}: {error}"));
        total.add(&tally);
    }
    assert!(total.refused > 1_000, "hardly ever full in {total}");
}

#[test]
fn deletes_go_ahead_on_full_drives() {
    deletes_go_ahead(&Options::pink());
    deletes_go_ahead(&Options::lightstore());
    deletes_go_ahead(&Options { compaction_workers: 4, levels: 5, ..Options::pink() });
}
