//! Tests of scans: honest iterators pass, lies are detected by kind.

use workload::{ClientOptions, MismatchKind, OpKind, RunReport};

use crate::store::{Lie, ScanLie, Trial, trial, workload};

const RECORDS: u64 = 300;

/// All kinds of writes concurrent with scans, on a store small enough that scans often reach the
/// end.
const MIXED: [&str; 6] = [
    "recordcount=300",
    "operationcount=2000",
    "insertproportion=0.1",
    "updateproportion=0.3",
    "deleteproportion=0.2",
    "maxscanlength=40",
];

fn mixed(seed: u64, lie: Lie, overrides: &[&str], outstanding: usize) -> Trial {
    let overrides = [MIXED.as_slice(), overrides].concat();
    trial(seed, lie, workload("e", &overrides), ClientOptions::closed(outstanding))
}

fn assert_clean(run: &RunReport, what: &str) {
    let told = run.mismatches.first().map(ToString::to_string);
    assert!(run.is_clean(), "{what}: {:?} {told:?}", run.first_error);
}

#[test]
fn workload_e_passes_and_counts_scans_once() {
    let sizes = ["recordcount=500", "operationcount=4000"];
    for seed in 1..=3 {
        let Trial { run, store, .. } =
            trial(seed, Lie::None, workload("e", &sizes), ClientOptions::closed(32));
        assert_clean(&run, &format!("seed {seed}"));
        let (scans, seeks, nexts) =
            (run.count(OpKind::Scan), run.count(OpKind::Seek), run.count(OpKind::Next));
        assert_eq!(scans + run.count(OpKind::Put), 4000);
        assert_eq!((run.operations, seeks), (4000, scans));
        assert_eq!(store.iterators(), (scans, 0), "seed {seed}");
        // From 1 to 100 records each, some cut short by the end of the store.
        let mean = run.scanned_pairs as f64 / scans as f64;
        assert!((40.0..51.0).contains(&mean), "seed {seed}: {mean}");
        assert!((seeks + nexts).abs_diff(run.scanned_pairs) <= scans / 2, "seed {seed}");
        let longest = |kind| run.summary(kind).unwrap().max_us;
        assert!(longest(OpKind::Scan) > longest(OpKind::Next) && longest(OpKind::Seek) > 0.0);
    }
}

#[test]
fn mixgraph_passes_with_the_mix_and_the_scans_that_are_published() {
    let sizes = ["recordcount=30000", "operationcount=20000"];
    let run = trial(1, Lie::None, workload("mixgraph", &sizes), ClientOptions::closed(16)).run;
    assert_clean(&run, "mixgraph");
    assert_eq!((run.operations, run.not_found), (20_000, 0));
    let share = |kind| run.count(kind) as f64 / 20_000.0;
    for (kind, expected) in [(OpKind::Get, 0.83), (OpKind::Put, 0.14), (OpKind::Scan, 0.03)] {
        assert!((share(kind) - expected).abs() < 0.01, "{kind:?}: {}", share(kind));
    }
    // 571 pairs on average, fewer at the end of the store; 600 scans of a heavy tail vary by 70.
    let mean = run.scanned_pairs as f64 / run.count(OpKind::Scan) as f64;
    assert!((350.0..780.0).contains(&mean), "{mean}");
}

#[test]
fn random_seeks_pass_in_either_layout_one_by_one_and_in_bulk() {
    for layout in ["insertorder=hashed", "insertorder=ordered"] {
        for (batch, calls_each) in [("scanbatch=0", 10), ("scanbatch=1", 10), ("scanbatch=4", 3)] {
            let overrides = [layout, batch, "seeknexts=10", "requestdistribution=hotspot"];
            let workload = workload("seekrandom", &overrides);
            let run = trial(1, Lie::None, workload, ClientOptions::closed(8)).run;
            assert_clean(&run, layout);
            assert_eq!((run.operations, run.count(OpKind::Scan)), (1000, 1000));
            if layout == "insertorder=ordered" {
                // The hot set is the first fifth of all keys: no scan that begins there reaches the
                // end. In bulk one more call reads the last pairs, which do not fill a batch.
                let from_hot = 800 * calls_each;
                assert!((from_hot..=1000 * calls_each).contains(&run.count(OpKind::Next)));
                assert!(run.scanned_pairs > 10_800, "{}", run.scanned_pairs);
            }
        }
    }
}

#[test]
fn honest_iterators_pass_beside_writes_of_every_sort() {
    for seed in 1..=3 {
        for layout in ["insertorder=hashed", "insertorder=ordered"] {
            for how in ["scanbatch=1", "scanbatch=7", "scanbound=true"] {
                for outstanding in [1, 32] {
                    let trial = mixed(seed, Lie::None, &[layout, how], outstanding);
                    assert_clean(
                        &trial.run,
                        &format!("seed {seed}, {layout}, {how}, {outstanding}"),
                    );
                    assert_eq!(trial.store.iterators().1, 0);
                }
            }
        }
    }
}

#[test]
fn runs_that_follow_each_other_know_the_keys_of_those_before() {
    let runtime = runtime::Runtime::new(3);
    let handle = runtime.handle();
    let store =
        crate::store::Store::new(handle.clone(), Lie::None, runtime::Nanos::from_micros(10));
    let overrides = ["recordcount=100", "operationcount=500", "insertproportion=1"];
    let mut session =
        workload::Session::new(handle, store.clone(), workload("e", &overrides), 3).unwrap();
    runtime.block_on(async move {
        let options = ClientOptions::closed(8);
        session.load(&options, |_, _| {}).await.unwrap();
        for _ in 0..3 {
            assert_clean(&session.run(&options, |_, _| {}).await.unwrap(), "seed 3");
        }
    });
    assert!(store.len() > 700, "{}", store.len());
}

#[test]
fn lies_of_iterators_are_found_out_by_kind() {
    let table = [
        (ScanLie::Skips, MismatchKind::Skipped),
        (ScanLie::EndsEarly, MismatchKind::Skipped),
        (ScanLie::Repeats, MismatchKind::OutOfOrder),
        (ScanLie::Swaps, MismatchKind::Skipped),
        (ScanLie::ShowsDeleted, MismatchKind::Resurrected),
        (ScanLie::NoSnapshot, MismatchKind::Newer),
        (ScanLie::Stale, MismatchKind::Stale),
        (ScanLie::WrongValue, MismatchKind::Foreign),
        (ScanLie::SeeksBelow, MismatchKind::OutOfBounds),
        (ScanLie::Boundless, MismatchKind::OutOfBounds),
        (ScanLie::Invents, MismatchKind::ForeignKey),
    ];
    for (lie, kind) in table {
        for seed in 1..=3 {
            for layout in ["insertorder=hashed", "insertorder=ordered"] {
                for batch in ["scanbatch=1", "scanbatch=8"] {
                    // Without other clients there are no writes during a scan.
                    let outstanding = if lie == ScanLie::NoSnapshot || seed > 1 { 32 } else { 1 };
                    let overrides = [layout, batch, "scanbound=true"];
                    let run = mixed(seed, Lie::Scan(lie), &overrides, outstanding).run;
                    let what = format!("{lie:?}, seed {seed}, {layout}, {batch}");
                    assert!(run.mismatch_count >= 10, "{what}: {}", run.mismatch_count);
                    let of_kind = run.mismatches.iter().filter(|mismatch| mismatch.kind == kind);
                    assert!(of_kind.count() >= 1, "{what}: {:?}", run.mismatches);
                    assert_eq!(run.operations, 2000, "{what}: a mismatch does not end the run");
                }
            }
        }
    }
}

#[test]
fn a_snapshot_of_two_instants_is_found_out() {
    for seed in 1..=5 {
        for layout in ["insertorder=hashed", "insertorder=ordered"] {
            // It shows only if two keys of a scan are written during the creation of its iterator.
            let overrides = [layout, "updateproportion=3", "maxscanlength=150"];
            let run = mixed(seed, Lie::Scan(ScanLie::Torn), &overrides, 32).run;
            assert!(run.mismatch_count >= 10, "seed {seed}, {layout}: {}", run.mismatch_count);
        }
    }
}

#[test]
fn keys_that_change_places_are_out_of_order_as_well() {
    let run = mixed(1, Lie::Scan(ScanLie::Swaps), &[], 1).run;
    let kinds: Vec<MismatchKind> = run.mismatches.iter().map(|mismatch| mismatch.kind).collect();
    assert!(kinds.contains(&MismatchKind::OutOfOrder), "{kinds:?}");
}

#[test]
fn a_mismatch_tells_the_seed_the_operation_the_key_and_what_was_expected() {
    let run = mixed(7, Lie::Scan(ScanLie::Skips), &[], 1).run;
    let mismatch = &run.mismatches[0];
    assert_eq!((mismatch.seed, mismatch.kind), (7, MismatchKind::Skipped));
    assert!((1..=2000).contains(&mismatch.operation));
    assert!(mismatch.key_number.is_some_and(|number| number < RECORDS + 2000));
    let told = mismatch.to_string();
    assert!(told.starts_with(&format!("seed 7, operation {}, at ", mismatch.operation)), "{told}");
    assert!(told.contains("key skipped: expected write ") && told.contains("got "), "{told}");
}

#[test]
fn more_pairs_than_were_asked_for_are_an_error() {
    let run = mixed(1, Lie::Scan(ScanLie::GivesMore), &["scanbatch=8"], 1).run;
    assert!(run.is_cut_short());
    let error = run.first_error.unwrap();
    assert!(error.contains("next of user") && error.contains("pairs came where"), "{error}");
}

#[test]
fn an_error_of_an_iterator_ends_the_phase_and_the_iterators_are_destroyed() {
    for seed in 1..=5 {
        // The load has 300 operations.
        let Trial { run, store, .. } = mixed(seed, Lie::FullAfter(800), &[], 8);
        assert!(run.is_cut_short() && run.first_error.is_some(), "seed {seed}");
        assert_eq!((run.mismatch_count, store.iterators().1), (0, 0), "seed {seed}");
    }
}

#[test]
fn equal_seeds_give_equal_reports() {
    let runs = [4, 4, 5].map(|seed| mixed(seed, Lie::None, &["scanbatch=3"], 32));
    assert!(runs[0].run == runs[1].run && runs[0].trace_hash == runs[1].trace_hash);
    assert!(runs[0].run != runs[2].run);
}

#[test]
fn an_open_loop_counts_scans_from_their_arrival() {
    let overrides = [MIXED.as_slice(), &["scanproportion=1"]].concat();
    let options = ClientOptions::open(200_000.0, 4);
    let run = trial(6, Lie::None, workload("e", &overrides), options).run;
    assert_clean(&run, "seed 6");
    let mean = |kind| run.summary(kind).unwrap().mean_us;
    // The target is too slow for the rate: scans wait for their turn, their parts do not.
    assert!(mean(OpKind::Scan) > 50_000.0, "{}", mean(OpKind::Scan));
    assert!(mean(OpKind::Seek) < 60.0 && mean(OpKind::Next) < 60.0);
}
