//! Tests of traces replayed on stores in memory.

use std::rc::Rc;

use runtime::{Nanos, Rng, Runtime};
use workload::trace::TraceError;
use workload::trace::kv::{KvFormat, KvReader, KvSurvey};
use workload::{ClientOptions, MismatchKind, OpKind, RunReport, Session, StartError};

use crate::store::{Lie, Store, workload};

const SMALL: [&str; 2] = ["recordcount=1", "operationcount=1"];

/// Results of a load and a replay.
struct Replayed {
    load: RunReport,
    run: RunReport,
    stored: usize,
}

fn records(
    text: &str,
) -> impl Iterator<Item = Result<workload::trace::kv::KvRecord, TraceError>> + use<> {
    let format = KvFormat::detect("t", text.as_bytes()).expect("it is known");
    let bytes: Rc<[u8]> = text.as_bytes().into();
    KvReader::new("t", format, std::io::Cursor::new(bytes))
}

fn replayed(text: &str, lie: Lie, loads: bool, options: ClientOptions) -> Replayed {
    let format = KvFormat::detect("t", text.as_bytes()).expect("it is known");
    let survey = KvSurvey::of("t", format, text.as_bytes()).expect("it is right");
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let store = Store::new(handle.clone(), lie, Nanos::from_micros(50));
    let mut session = Session::new(handle, store.clone(), workload("a", &SMALL), 1).unwrap();
    session.tell_families_apart(survey.family_bytes());
    let (before, trace) = (records(text), records(text));
    let (load, run) = rt.block_on(async move {
        let count = if loads { survey.met_first } else { 0 };
        let closed = ClientOptions::closed(4);
        let load = session.load_met_first(before, (format, 7), count, &closed, |_, _| {}).await;
        let run = session.replay(trace, survey.operations(), &options, |_, _| {}).await;
        (load.unwrap(), run.unwrap())
    });
    Replayed { load, run, stored: store.len() }
}

fn counts(report: &RunReport) -> [u64; 4] {
    [OpKind::Get, OpKind::Put, OpKind::ReadModifyWrite, OpKind::Delete]
        .map(|kind| report.count(kind))
}

const TWITTER: &str = "0,there,5,20,1,get,0
0,absent,6,0,1,get,0
0,new,3,9,1,set,0
0,new,3,9,1,add,0
0,added,5,3,1,add,0
1,counter,7,4,1,incr,0
1,added,5,4,1,append,0
1,new,3,9,1,delete,0
1,new,3,0,1,get,0
2,gone,4,0,1,delete,0
";

#[test]
fn operations_do_what_is_said_of_them_on_an_empty_store() {
    let Replayed { load, run, stored } =
        replayed(TWITTER, Lie::None, false, ClientOptions::closed(1));
    assert_eq!((load.operations, run.operations, run.mismatch_count), (0, 10, 0));
    // Separate gets, and those of add (two), incr and append. Puts are new, added, and added again.
    assert_eq!(counts(&run), [7, 3, 2, 2]);
    assert_eq!((run.not_found, stored), (5, 3), "what was deleted counts here");
}

#[test]
fn keys_that_are_met_first_are_loaded_with_what_was_got_of_them() {
    let Replayed { load, run, stored } =
        replayed(TWITTER, Lie::None, true, ClientOptions::closed(1));
    assert_eq!((load.operations, run.mismatch_count), (2, 0), "there and counter");
    assert_eq!(counts(&run), [7, 4, 3, 2]);
    assert_eq!((run.not_found, stored), (3, 5));
    let rocksdb = "0x01 0 0 0 5\n0x02 1 0 3 6\n0x02 0 0 0 7\n0x01 0 1 0 8\n0x01 5 0 9 9\n";
    let Replayed { load, run, stored } =
        replayed(rocksdb, Lie::None, true, ClientOptions::closed(1));
    assert_eq!((load.operations, stored), (2, 3), "key 1 of two column families");
    assert_eq!((counts(&run), run.not_found), ([4, 2, 1, 0], 0));
}

/// Returns many concurrent gets and writes of a few keys.
fn busy(lines: u64) -> String {
    let mut rng = Rng::new(3);
    let line = |i| {
        let op = ["get", "get", "set", "incr", "add", "delete"][rng.below(6) as usize];
        format!("{},key{:04},7,{},1,{op},0\n", i / 1_000, rng.below(50), 8 + rng.below(200))
    };
    (0..lines).map(line).collect()
}

#[test]
fn values_of_recorded_lengths_are_checked_however_many_overlap() {
    let trace = busy(20_000);
    for outstanding in [1, 32] {
        let closed = ClientOptions::closed(outstanding);
        let honest = replayed(&trace, Lie::None, true, closed.clone()).run;
        assert!(honest.is_clean(), "{:?}", honest.mismatches);
        for (lie, kind) in [
            (Lie::Stale, MismatchKind::Stale),
            (Lie::WrongKey, MismatchKind::Foreign),
            (Lie::Damaged, MismatchKind::Foreign),
            (Lie::Missing, MismatchKind::Lost),
        ] {
            let lying = replayed(&trace, lie, true, closed.clone()).run;
            let found = lying.mismatches.iter().any(|mismatch| mismatch.kind == kind);
            assert!(lying.mismatch_count >= 10 && found, "{lie:?}: {}", lying.mismatch_count);
            assert!(lying.mismatches[0].key.starts_with("key00"), "{}", lying.mismatches[0]);
        }
    }
}

#[test]
fn recorded_times_are_kept_and_stretched() {
    let text = "0x01 1 0 10 1000000\n0x02 1 0 10 3000000\n0x03 1 0 10 3500000\n";
    for (stretch, seconds) in [(1.0, 2.5), (0.5, 1.25)] {
        let run = replayed(text, Lie::None, false, ClientOptions::recorded(stretch, 8)).run;
        assert!((run.elapsed().as_secs_f64() - seconds).abs() < 1e-3, "{}", run.elapsed());
        assert!(run.summary(OpKind::Put).unwrap().max_us < 200.0);
    }
    let closed = replayed(text, Lie::None, false, ClientOptions::closed(8)).run;
    assert!(closed.elapsed() < Nanos::from_millis(1));
}

#[test]
fn a_trace_that_cannot_be_read_further_ends_the_run_with_the_line() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(50));
    let mut session = Session::new(handle, store, workload("a", &SMALL), 1).unwrap();
    let trace = records("0,a,1,5,1,set,0\n0,b,1,5,1,set,0\nbad\n");
    let run = rt.block_on(async move {
        session.replay(trace, 10, &ClientOptions::closed(1), |_, _| {}).await.unwrap()
    });
    assert_eq!((run.operations, run.error_count), (2, 1));
    let error = run.first_error.unwrap();
    assert!(error.contains("t:3: found `bad`, expected seven fields"), "{error}");
}

#[test]
fn a_workload_has_no_recorded_times() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let store = Store::new(handle.clone(), Lie::None, Nanos::from_micros(50));
    let mut session = Session::new(handle, store, workload("a", &[]), 1).unwrap();
    let run = rt.block_on(async move {
        session.run(&ClientOptions::recorded(1.0, 1), |_, _| {}).await.map(drop)
    });
    assert!(matches!(run, Err(StartError::Options(words)) if words.contains("a trace's")));
}
