//! Tests with honest stores: they pass with every workload and pace; equal seeds give equal
//! reports.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Nanos, Runtime};
use workload::{Arrivals, ClientOptions, OpKind, Pace, Session, StartError, Stop};

use crate::store::{Lie, Store, Trial, trial, workload};

const SIZES: [&str; 2] = ["recordcount=500", "operationcount=20000"];

fn paces() -> [ClientOptions; 4] {
    let mut fixed = ClientOptions::open(200_000.0, 64);
    fixed.pace = Pace::Open { rate: 50_000.0, arrivals: Arrivals::Fixed, outstanding: 3 };
    [ClientOptions::closed(1), ClientOptions::closed(32), ClientOptions::open(200_000.0, 64), fixed]
}

fn assert_clean(trial: &Trial, what: &str) {
    for report in [&trial.load, &trial.run] {
        let told = report.mismatches.first().map(ToString::to_string);
        assert!(report.is_clean(), "{what}: {:?} {told:?}", report.first_error);
        let operations: u64 = report.timeline.windows.iter().map(|window| window.operations).sum();
        assert_eq!(operations, report.operations);
        let gets: u64 = report.timeline.windows.iter().map(|window| window.gets.count).sum();
        assert_eq!(gets, report.count(OpKind::Get));
    }
    assert_eq!(trial.load.count(OpKind::Put), 500);
    assert_eq!(trial.run.operations, 20_000);
}

#[test]
fn every_workload_passes_at_every_pace() {
    for name in ["a", "b", "c", "d", "f"] {
        for options in paces() {
            let trial = trial(1, Lie::None, workload(name, &SIZES), options.clone());
            assert_clean(&trial, &format!("workload {name}, {:?}", options.pace));
            assert!(trial.store.most_under_way() <= 64);
            assert_eq!(trial.run.not_found, 0);
        }
    }
}

/// Vigil-KV's table 2 has 66, 95, 95 and 74 % of gets in YCSB-A, B, D and F: the requests of YCSB's
/// binding for `RocksDB`.
#[test]
fn updates_that_read_first_make_the_shares_of_gets_that_are_published() {
    let shares = [("a", 2.0 / 3.0), ("b", 1.0 / 1.05), ("d", 0.95), ("f", 0.75)];
    for (name, share) in shares {
        let overrides = [&SIZES[..], &["levelhead.updatereads=true"]].concat();
        let trial = trial(1, Lie::None, workload(name, &overrides), ClientOptions::closed(32));
        assert_clean(&trial, name);
        let (gets, puts) = (trial.run.count(OpKind::Get), trial.run.count(OpKind::Put));
        let found = gets as f64 / (gets + puts) as f64;
        assert!((found - share).abs() < 0.005, "workload {name}: {found}");
    }
}

#[test]
fn stand_ins_pass_with_lengths_of_their_own() {
    for name in ["userdb", "zippydb"] {
        let trial = trial(1, Lie::None, workload(name, &SIZES), ClientOptions::closed(32));
        assert_clean(&trial, name);
    }
}

#[test]
fn equal_seeds_give_equal_reports_of_the_stand_ins() {
    for name in ["userdb", "zippydb", "mixgraph"] {
        let report = |seed| {
            let overrides = [SIZES[0], "operationcount=3000", "levelhead.updatereads=true"];
            trial(seed, Lie::None, workload(name, &overrides), ClientOptions::closed(8)).run
        };
        assert!(report(3) == report(3), "{name}");
        assert!(report(3) != report(4), "{name}");
    }
}

#[test]
fn every_distribution_and_value_form_passes_with_deletes_and_inserts() {
    let mix = ["insertproportion=0.1", "deleteproportion=0.2", "readmodifywriteproportion=0.3"];
    let lengths = ["fieldlengthdistribution=uniform", "fieldlength=9"];
    let distributions = ["uniform", "zipfian", "latest", "sequential", "hotspot", "exponential"];
    for distribution in distributions.into_iter().chain(["keyranges"]) {
        let distribution = format!("requestdistribution={distribution}");
        let form = "levelhead.values=bytes";
        let mut overrides = vec![distribution.as_str(), form, "levelhead.valuebytes=20"];
        overrides.extend(SIZES.into_iter().chain(mix).chain(lengths));
        let trial = trial(2, Lie::None, workload("a", &overrides), ClientOptions::closed(32));
        assert_clean(&trial, &distribution);
        assert!(trial.run.not_found > 0 && trial.run.count(OpKind::Delete) > 1000);
    }
}

#[test]
fn values_too_short_to_tell_their_origin_are_checked_as_well() {
    let overrides = ["levelhead.values=bytes", "levelhead.valuebytes=2", "deleteproportion=0.1"];
    let overrides = [overrides.as_slice(), &SIZES].concat();
    let trial = trial(3, Lie::None, workload("a", &overrides), ClientOptions::closed(32));
    assert_clean(&trial, "short values");
}

#[test]
fn variable_lengths_pass() {
    let mut properties = workload::Properties::default();
    let settings = ["readproportion=1", "updateproportion=1", "fieldlengthdistribution=zipfian"];
    for assignment in SIZES.iter().chain(&settings) {
        properties.set_assignment(assignment).unwrap();
    }
    let workload = workload::CoreWorkload::from_properties(&properties).unwrap();
    assert_clean(&trial(3, Lie::None, workload, ClientOptions::closed(32)), "variable lengths");
}

#[test]
fn the_parts_of_a_read_modify_write_count_too() {
    let run = trial(4, Lie::None, workload("f", &SIZES), ClientOptions::closed(8)).run;
    let whole = run.count(OpKind::ReadModifyWrite);
    assert!((9_500..10_500).contains(&whole), "{whole}");
    assert_eq!(run.count(OpKind::Put), whole);
    assert_eq!(run.count(OpKind::Get), 20_000);
    let mean = |kind| run.summary(kind).unwrap().mean_us;
    let parts = mean(OpKind::Get) + mean(OpKind::Put);
    assert!((mean(OpKind::ReadModifyWrite) / parts - 1.0).abs() < 0.02);
}

#[test]
fn equal_seeds_give_equal_reports_and_others_do_not() {
    for options in paces() {
        let once = trial(5, Lie::None, workload("d", &SIZES), options.clone());
        let again = trial(5, Lie::None, workload("d", &SIZES), options.clone());
        assert!(once.load == again.load && once.run == again.run);
        assert_eq!(once.trace_hash, again.trace_hash);
        let other = trial(6, Lie::None, workload("d", &SIZES), options);
        assert!(once.run != other.run);
    }
}

#[test]
fn runs_can_follow_each_other_and_inserts_go_on() {
    let runtime = Runtime::new(7);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(10));
    let workload = workload("d", &SIZES);
    let mut session = Session::new(handle, store.clone(), workload, 7).unwrap();
    let reports = runtime.block_on(async move {
        let options = ClientOptions::closed(8);
        session.load(&options, |_, _| {}).await.unwrap();
        let mut reports = Vec::new();
        for _ in 0..3 {
            reports.push(session.run(&options, |_, _| {}).await.unwrap());
        }
        reports
    });
    assert!(reports.iter().all(workload::RunReport::is_clean));
    let inserted: u64 = reports.iter().map(|report| report.count(OpKind::Put)).sum();
    assert_eq!(store.len() as u64, 500 + inserted);
    assert!(reports[0].ended <= reports[1].started);
    assert_ne!(reports[0].count(OpKind::Put), reports[1].count(OpKind::Put));
}

#[test]
fn a_target_loaded_by_an_earlier_session_can_be_run_on() {
    let runtime = Runtime::new(8);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(10));
    let clean = runtime.block_on(async move {
        let options = ClientOptions::closed(8);
        let mut first =
            Session::new(handle.clone(), store.clone(), workload("a", &SIZES), 1).unwrap();
        first.load(&options, |_, _| {}).await.unwrap();
        let mut second = Session::new(handle, store, workload("a", &SIZES), 2).unwrap();
        second.assume_loaded();
        second.run(&options, |_, _| {}).await.unwrap().is_clean()
    });
    assert!(clean);
}

#[test]
fn progress_is_told_now_and_then_and_at_the_end() {
    let runtime = Runtime::new(9);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(10));
    let mut session = Session::new(handle, store, workload("a", &SIZES), 9).unwrap();
    let told = Rc::new(RefCell::new(Vec::new()));
    let teller = Rc::clone(&told);
    runtime.block_on(async move {
        let options = ClientOptions::closed(8);
        session.load(&options, |_, _| {}).await.unwrap();
        let progress = move |done, total| teller.borrow_mut().push((done, total));
        session.run(&options, progress).await.unwrap();
    });
    let told = told.borrow();
    assert!(told.is_sorted() && told.len() >= 4, "{told:?}");
    assert_eq!(told.last(), Some(&(20_000, 20_000)));
}

#[test]
fn options_without_sense_are_refused() {
    let runtime = Runtime::new(11);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::ZERO);
    let mut session = Session::new(handle, store, workload("a", &[]), 1).unwrap();
    runtime.block_on(async move {
        let mut no_window = ClientOptions::closed(1);
        no_window.window = Nanos::ZERO;
        let wrong = [
            ClientOptions::closed(0),
            ClientOptions::open(0.0, 1),
            ClientOptions::open(f64::NAN, 1),
            no_window,
        ];
        for options in wrong {
            let error = session.run(&options, |_, _| {}).await.err().unwrap();
            assert!(matches!(error, StartError::Options(_)), "{error}");
        }
    });
}

#[test]
fn a_run_without_operations_is_refused() {
    let runtime = Runtime::new(12);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::ZERO);
    let workload = workload("a", &["operationcount=0"]);
    let mut session = Session::new(handle, store, workload, 1).unwrap();
    runtime.block_on(async move {
        let error = session.run(&ClientOptions::closed(1), |_, _| {}).await.err().unwrap();
        assert_eq!(error, StartError::NoOperations);
    });
}

#[test]
fn a_run_that_may_run_out_of_keys_is_refused() {
    let runtime = Runtime::new(13);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::ZERO);
    // Four digits: 5000 records and 4000 operations fit, twice 4000 operations do not.
    let sizes = ["recordcount=5000", "operationcount=4000", "insertproportion=0.5"];
    let overrides = [sizes.as_slice(), &["levelhead.keybytes=8"]].concat();
    let mut session = Session::new(handle, store, workload("d", &overrides), 1).unwrap();
    runtime.block_on(async move {
        let options = ClientOptions::closed(4);
        session.load(&options, |_, _| {}).await.unwrap();
        assert!(session.run(&options, |_, _| {}).await.unwrap().is_clean());
        let error = session.run(&options, |_, _| {}).await.err().unwrap();
        assert!(matches!(error, StartError::KeysUsedUp { capacity: 10_000, .. }), "{error}");
    });
}

#[test]
fn a_run_that_is_asked_to_stop_ends_what_is_under_way_and_reports_it() {
    for options in paces() {
        let rt = runtime::Runtime::new(5);
        let handle = rt.handle();
        let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(10));
        let mut session = Session::new(handle, store, workload("a", &SIZES), 5).unwrap();
        let stop = Stop::default();
        session.stop_on(stop.clone());
        let run = rt.block_on(async move {
            session.load(&options, |_, _| {}).await.unwrap();
            let asks = move |done, _| {
                if done >= 4096 {
                    stop.ask();
                }
            };
            session.run(&options, asks).await.unwrap()
        });
        assert!((4096..4096 + 65).contains(&run.operations), "{}", run.operations);
        assert!(run.is_cut_short() && run.error_count == 0 && run.mismatch_count == 0);
        assert_eq!(run.count(OpKind::Get) + run.count(OpKind::Put), run.operations);
    }
}
