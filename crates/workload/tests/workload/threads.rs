//! Tests of client threads: honest stores pass, lies are detected.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::Nanos;
use workload::{
    ClientOptions, CoreWorkload, OpKind, Part, SharedSession, SharedTarget, StartError, Stop,
    builtin,
};

/// A map that can lose every n-th put, or fail one put.
#[derive(Default)]
struct Map {
    pairs: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    puts: AtomicU64,
    forgets_every: Option<u64>,
    fails_at: Option<u64>,
    skips_in_scans: bool,
}

impl SharedTarget for Map {
    type Error = &'static str;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(self.pairs.lock().unwrap().get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Self::Error> {
        let number = self.puts.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fails_at == Some(number) {
            return Err("the map is full");
        }
        if self.forgets_every.is_none_or(|every| !number.is_multiple_of(every)) {
            self.pairs.lock().unwrap().insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), Self::Error> {
        self.pairs.lock().unwrap().remove(key);
        Ok(())
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Self::Error> {
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        // One instant: reads from a copy.
        let pairs: Vec<_> = {
            let pairs = self.pairs.lock().unwrap();
            let range = pairs.range::<[u8], _>((Bound::Included(from), until));
            range.take(200).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        for (n, (key, value)) in pairs.iter().enumerate() {
            if self.skips_in_scans && n == 1 {
                continue;
            }
            if !take(key, value) {
                break;
            }
        }
        Ok(())
    }
}

fn workload(name: &str, records: u64, operations: u64) -> CoreWorkload {
    let mut properties = builtin(name).unwrap();
    properties.set("recordcount", &records.to_string());
    properties.set("operationcount", &operations.to_string());
    properties.set("levelhead.valuebytes", "64");
    CoreWorkload::from_properties(&properties).unwrap()
}

fn loaded(map: &Map, workload: &CoreWorkload) -> SharedSession {
    let mut session = SharedSession::new(workload.clone(), 1);
    let report = session.load(map, &ClientOptions::closed(2), |_, _| {}).unwrap();
    assert_eq!(report.operations, workload.record_count);
    session
}

#[test]
fn an_honest_store_passes_every_workload() {
    for name in ["a", "b", "c", "d", "e", "f", "seekrandom"] {
        let (workload, map) = (workload(name, 2_000, 3_000), Map::default());
        let mut session = loaded(&map, &workload);
        for _ in 0..2 {
            let mut heard = (0, 0);
            let clients = ClientOptions::closed(3);
            let run = session.run(&map, &clients, |done, of| heard = (done, of)).unwrap();
            assert!(run.is_clean(), "{name}: {:?} {:?}", run.mismatches, run.first_error);
            assert_eq!((run.operations, heard), (3_000, (3_000, 3_000)), "{name}");
            let reads = run.count(OpKind::Get) + run.scanned_pairs;
            assert!(reads > 1_000 && run.elapsed() > Nanos::ZERO, "{name}");
        }
    }
}

#[test]
fn lost_writes_and_gaps_in_scans_are_found_out() {
    let (a, map) = (workload("a", 500, 4_000), Map { forgets_every: Some(97), ..Map::default() });
    let run = loaded(&map, &a).run(&map, &ClientOptions::closed(2), |_, _| {}).unwrap();
    assert!(run.mismatch_count > 0, "a put in 97 was forgotten");
    let (e, map) = (workload("e", 500, 400), Map { skips_in_scans: true, ..Map::default() });
    let run = loaded(&map, &e).run(&map, &ClientOptions::closed(2), |_, _| {}).unwrap();
    assert!(run.mismatch_count > 0, "scans left a key out");
}

#[test]
fn a_failure_ends_the_phase_and_is_told() {
    let (a, map) = (workload("a", 500, 100_000), Map { fails_at: Some(1_000), ..Map::default() });
    let run = loaded(&map, &a).run(&map, &ClientOptions::closed(2), |_, _| {}).unwrap();
    assert!(run.is_cut_short());
    assert_eq!((run.error_count, run.mismatch_count), (1, 0));
    assert!(
        run.first_error
            .is_some_and(|error| error.contains("put of ") && error.ends_with("the map is full"))
    );
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_from_the_arrival() {
    let (c, map) = (workload("c", 100, 400), Map::default());
    let run = loaded(&map, &c).run(&map, &ClientOptions::open(4_000.0, 2), |_, _| {}).unwrap();
    // 0.1 s on average; a busy machine may take longer.
    assert!(run.elapsed() > Nanos::from_millis(70), "{:?}", run.elapsed());
    assert!(run.is_clean());
}

#[test]
fn parts_run_beside_each_other_until_the_first_has_ended() {
    let (reads, writes, map) =
        (workload("c", 500, 2_000), workload("a", 500, 1 << 30), Map::default());
    let mut session = loaded(&map, &reads);
    let part = |workload, threads| Part { workload, clients: ClientOptions::closed(threads) };
    // Long enough for the third thread to begin even on a busy machine.
    let paced = Part { workload: &reads, clients: ClientOptions::open(4_000.0, 2) };
    let parts = [paced, part(&writes, 1)];
    let reports = session.run_parts(&map, &parts, None, |_, _| {}).unwrap();
    assert_eq!(reports[0].operations, 2_000);
    assert!(reports[1].operations > 0 && reports[1].is_cut_short());
    assert!(reports.iter().all(|report| report.mismatch_count == 0));
    let long = [part(&writes, 1)];
    let span = Some(Nanos::from_millis(60));
    let reports = session.run_parts(&map, &long, span, |_, _| {}).unwrap();
    assert!(reports[0].operations > 0 && reports[0].is_cut_short());
    let other = workload("c", 400, 10);
    let refused = session.run_parts(&map, &[part(&other, 1)], None, |_, _| {});
    assert!(matches!(refused, Err(StartError::OtherRecords)));
}

#[test]
fn a_stop_ends_it_between_two_operations() {
    let (c, map) = (workload("c", 100, 1 << 30), Map::default());
    let mut session = loaded(&map, &c);
    let stop = Stop::default();
    session.stop_on(stop.clone());
    let run = session.run(&map, &ClientOptions::closed(2), |_, _| stop.ask()).unwrap();
    assert!(run.is_cut_short() && run.first_error.is_none());
}
