//! Tests with lying stores: the lies are detected and described.

use workload::{ClientOptions, MismatchKind, RunReport};

use crate::store::{Lie, trial, workload};

fn run(lie: Lie, outstanding: usize) -> RunReport {
    let overrides = ["recordcount=500", "operationcount=20000", "deleteproportion=0.05"];
    trial(1, lie, workload("a", &overrides), ClientOptions::closed(outstanding)).run
}

#[test]
fn lies_are_found_out_by_kind() {
    let table = [
        (Lie::Stale, MismatchKind::Stale),
        // Never loaded, or put again after a delete.
        (Lie::LostWrite, MismatchKind::Lost),
        (Lie::WrongKey, MismatchKind::Foreign),
        (Lie::Missing, MismatchKind::Lost),
        (Lie::Undeleted, MismatchKind::Resurrected),
        (Lie::Damaged, MismatchKind::Foreign),
    ];
    for (lie, kind) in table {
        for outstanding in [1, 32] {
            let report = run(lie, outstanding);
            assert!(report.mismatch_count >= 50, "{lie:?}: {}", report.mismatch_count);
            assert_eq!(report.mismatches.len(), 10);
            let kinds = report.mismatches.iter().filter(|mismatch| mismatch.kind == kind);
            assert!(kinds.count() >= 3, "{lie:?}: {:?}", report.mismatches);
            assert_eq!(report.operations, 20_000, "a mismatch does not end the run");
            assert!(!report.is_clean());
        }
    }
}

#[test]
fn an_honest_store_is_not_accused() {
    for outstanding in [1, 32] {
        assert!(run(Lie::None, outstanding).is_clean());
    }
}

#[test]
fn a_mismatch_tells_the_key_what_was_expected_and_what_came() {
    let report = run(Lie::WrongKey, 1);
    let mismatch = &report.mismatches[0];
    assert!(mismatch.key.starts_with("user") && mismatch.key.len() == 32);
    let told = mismatch.to_string();
    assert!(told.contains("foreign value: expected "), "{told}");
    assert!(told.contains("got the value of key number"), "{told}");
}

#[test]
fn an_error_ends_the_phase_and_is_told() {
    let report = run(Lie::FullAfter(5_500), 8);
    assert!(report.is_cut_short() && !report.is_clean());
    assert!((4_990..=5_000).contains(&report.operations), "{}", report.operations);
    assert!((1..=8).contains(&report.error_count), "{}", report.error_count);
    let error = report.first_error.unwrap();
    assert!(error.ends_with(": full") && error.contains(" of user"), "{error}");
    assert_eq!(report.mismatch_count, 0);
}
