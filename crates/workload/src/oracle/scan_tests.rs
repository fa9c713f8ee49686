//! Tests of scans: cases by hand, and random histories of a store with true snapshots.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::versions::{Seen, is_put};
use super::*;
use crate::{FieldLengths, InsertOrder, KeyFormat, Pair, ValueForm};

const KEYS: u64 = 10;

fn key_format(order: InsertOrder) -> KeyFormat {
    KeyFormat::new("k", 6, order).unwrap()
}

/// An oracle prepared for scans, and the values of its records, all put once.
struct Checked {
    oracle: Oracle,
    keys: KeyFormat,
    values: BTreeMap<u64, Value>,
}

impl Checked {
    fn new(order: InsertOrder) -> Self {
        let recipe = ValueRecipe::new(1, FieldLengths::Constant(100), ValueForm::Synthetic);
        let keys = key_format(order);
        let mut oracle = Oracle::new(recipe, KEYS);
        let values = (0..KEYS).map(|key| (key, put(&mut oracle, key))).collect();
        oracle.prepare_scans(&keys, KEYS);
        Self { oracle, keys, values }
    }

    fn put(&mut self, key: u64) -> Value {
        let value = put(&mut self.oracle, key);
        self.values.insert(key, value.clone());
        value
    }

    fn delete(&mut self, key: u64) {
        let ticket = self.oracle.begin_delete(key);
        self.oracle.acknowledge(ticket);
        self.values.remove(&key);
    }

    /// Returns all current pairs, from the key number `from` on, in key order.
    fn pairs(&self, from: u64) -> Vec<Pair> {
        let start = self.keys.position(from);
        let mut pairs: Vec<Pair> = self
            .values
            .iter()
            .filter(|(number, _)| self.keys.position(**number) >= start)
            .map(|(number, value)| self.pair(*number, value))
            .collect();
        pairs.sort_by(|one, other| one.key.cmp(&other.key));
        pairs
    }

    fn pair(&self, number: u64, value: &Value) -> Pair {
        Pair { key: self.keys.write(number, &mut self.keys.buffer()).into(), value: value.clone() }
    }

    /// Creates an iterator in one instant.
    fn scan(&mut self, from: u64, bound: Option<u64>) -> ScanTicket {
        let mut ticket = self.oracle.begin_scan(from, bound);
        self.oracle.scan_created(&mut ticket);
        ticket
    }

    /// Returns the errors of a scan that returns these pairs and then ends.
    fn judge(&mut self, mut ticket: ScanTicket, pairs: &[Pair]) -> Vec<ScanSurprise> {
        let mut surprises = Vec::new();
        for pair in pairs {
            surprises.extend(self.oracle.check_pair(&mut ticket, pair));
            if ticket.is_off_track() {
                break;
            }
        }
        if !ticket.is_off_track() {
            surprises.extend(self.oracle.check_end(&mut ticket));
        }
        self.oracle.end_scan(ticket);
        assert_eq!(self.oracle.versions.journal.len(), 0, "no other scan is open");
        surprises
    }

    fn kinds(&mut self, ticket: ScanTicket, pairs: &[Pair]) -> Vec<MismatchKind> {
        self.judge(ticket, pairs).into_iter().map(|surprise| surprise.kind).collect()
    }
}

fn put(oracle: &mut Oracle, key: u64) -> Value {
    let (ticket, value) = oracle.begin_put(key);
    oracle.acknowledge(ticket);
    value
}

fn in_both_orders(case: fn(&mut Checked)) {
    for order in [InsertOrder::Hashed, InsertOrder::Ordered] {
        case(&mut Checked::new(order));
    }
}

#[test]
fn a_scan_of_everything_there_was_is_right_whatever_is_written_afterwards() {
    in_both_orders(|checked| {
        checked.delete(4);
        let ticket = checked.scan(3, None);
        let pairs = checked.pairs(3);
        checked.put(3);
        checked.delete(7);
        checked.put(4);
        checked.put(12);
        assert_eq!(checked.judge(ticket, &pairs), []);
        // A scan created now sees all of it.
        let (ticket, pairs) = (checked.scan(3, None), checked.pairs(3));
        assert_eq!(checked.judge(ticket, &pairs), []);
    });
}

#[test]
fn every_pair_that_is_missing_is_told_once() {
    in_both_orders(|checked| {
        let first = (0..KEYS).min_by_key(|number| checked.keys.position(*number)).unwrap();
        let pairs = checked.pairs(first);
        for missing in 0..KEYS as usize {
            let ticket = checked.scan(first, None);
            let mut given = pairs.clone();
            let left_out = given.remove(missing);
            let [told] = &checked.judge(ticket, &given)[..] else { panic!("{missing}") };
            assert_eq!(told.kind, MismatchKind::Skipped);
            assert_eq!(told.key, left_out.key.escape_ascii().to_string());
            assert_eq!(told.expected, "write 1");
            let after = given.get(missing).map(|pair| pair.key.escape_ascii().to_string());
            let got = after.map_or("the end".to_owned(), |key| format!("{key} as the next key"));
            assert_eq!(told.got, got);
        }
        let ticket = checked.scan(first, None);
        assert_eq!(checked.kinds(ticket, &[]), [MismatchKind::Skipped]);
    });
}

#[test]
fn what_may_be_there_or_not_may_be_left_out() {
    in_both_orders(|checked| {
        let all = checked.pairs(5);
        let gone = all[1..].to_vec();
        // Deleted during the creation of the iterator.
        for given in [&all, &gone] {
            let mut ticket = checked.oracle.begin_scan(5, None);
            checked.delete(5);
            checked.oracle.scan_created(&mut ticket);
            assert_eq!(checked.judge(ticket, given), []);
            checked.put(5);
            checked.values.insert(5, all[0].value.clone());
        }
    });
}

#[test]
fn values_are_those_of_the_snapshot() {
    in_both_orders(|checked| {
        let old = checked.pairs(5);
        checked.put(5);
        let ticket = checked.scan(5, None);
        assert_eq!(checked.kinds(ticket, &old), [MismatchKind::Stale]);

        let ticket = checked.scan(5, None);
        checked.put(5);
        let newer = checked.pairs(5);
        assert_eq!(checked.kinds(ticket, &newer), [MismatchKind::Newer]);

        checked.delete(5);
        let ticket = checked.scan(5, None);
        assert_eq!(checked.kinds(ticket, &newer), [MismatchKind::Resurrected]);

        // A record inserted after the snapshot.
        let ticket = checked.scan(5, None);
        let mut given = checked.pairs(5);
        let new = checked.put(5);
        given.insert(0, checked.pair(5, &new));
        assert_eq!(checked.kinds(ticket, &given), [MismatchKind::Newer]);

        let ticket = checked.scan(5, None);
        let mut given = checked.pairs(5);
        given[0].value = checked.values[&6].clone();
        assert_eq!(checked.kinds(ticket, &given), [MismatchKind::Foreign]);
    });
}

#[test]
fn a_value_from_while_the_iterator_was_made_may_come_or_not() {
    in_both_orders(|checked| {
        for which in 0..3 {
            let mut ticket = checked.oracle.begin_scan(5, None);
            let old = checked.pairs(5);
            checked.put(5);
            let between = checked.pairs(5);
            checked.put(5);
            let last = checked.pairs(5);
            checked.oracle.scan_created(&mut ticket);
            checked.put(5);
            assert_eq!(checked.judge(ticket, [&old, &between, &last][which]), []);
        }
    });
}

#[test]
fn one_instant_explains_all_keys_of_a_scan() {
    in_both_orders(|checked| {
        let first = (0..KEYS).min_by_key(|number| checked.keys.position(*number)).unwrap();
        for (one, other) in [(2, 7), (7, 2)] {
            // One key is overwritten, then another, both during the creation of the iterator.
            let takes = |has_one: bool, has_other: bool, checked: &mut Checked| {
                let mut ticket = checked.oracle.begin_scan(first, None);
                let old = checked.values.clone();
                checked.put(one);
                checked.put(other);
                checked.oracle.scan_created(&mut ticket);
                let new = checked.values.clone();
                for (key, has_new) in [(one, has_one), (other, has_other)] {
                    let value = if has_new { &new[&key] } else { &old[&key] };
                    checked.values.insert(key, value.clone());
                }
                let pairs = checked.pairs(first);
                checked.values = new;
                checked.kinds(ticket, &pairs)
            };
            assert_eq!(takes(false, false, checked), []);
            assert_eq!(takes(true, false, checked), []);
            assert_eq!(takes(true, true, checked), []);
            let [torn] = takes(false, true, checked)[..] else { panic!("one surprise") };
            assert!(matches!(torn, MismatchKind::Stale | MismatchKind::Newer), "{torn:?}");
        }
    });
}

#[test]
fn an_instant_with_a_record_has_those_inserted_before_it() {
    in_both_orders(|checked| {
        let first = (0..KEYS).min_by_key(|number| checked.keys.position(*number)).unwrap();
        checked.delete(2);
        checked.delete(7);
        let mut ticket = checked.oracle.begin_scan(first, None);
        let value = checked.put(2);
        checked.put(7);
        checked.oracle.scan_created(&mut ticket);
        checked.values.remove(&2);
        let pairs = checked.pairs(first);
        checked.values.insert(2, value);
        let kinds = checked.kinds(ticket, &pairs);
        // The check believes the key that comes first.
        assert!(kinds == [MismatchKind::Skipped] || kinds == [MismatchKind::Newer], "{kinds:?}");
    });
}

#[test]
fn keys_come_in_order_within_their_bounds_and_are_the_sessions() {
    in_both_orders(|checked| {
        let pairs = checked.pairs(5);
        let bound = checked.oracle.key_after(5, 2);
        assert_eq!(bound.is_some(), pairs.len() > 2);
        if bound.is_some() {
            let ticket = checked.scan(5, bound);
            assert_eq!(checked.judge(ticket, &pairs[..2]), []);
            let ticket = checked.scan(5, bound);
            assert_eq!(checked.kinds(ticket, &pairs[..1]), [MismatchKind::Skipped]);
            let ticket = checked.scan(5, bound);
            assert_eq!(checked.kinds(ticket, &pairs), [MismatchKind::OutOfBounds]);
        }
        let twice = [&pairs[..1], &pairs].concat();
        let ticket = checked.scan(5, None);
        let [told] = &checked.judge(ticket, &twice)[..] else { panic!("one surprise") };
        assert_eq!(told.kind, MismatchKind::OutOfOrder);
        assert_eq!(told.expected, format!("a key above {}, which came before", told.key));

        let all = [checked.pair(0, &checked.values[&0]), checked.pair(1, &checked.values[&1])];
        let mut sorted = all.to_vec();
        sorted.sort_by(|one, other| one.key.cmp(&other.key));
        let start = checked.keys.number_at(checked.keys.parse(&sorted[1].key).unwrap());
        let ticket = checked.scan(start, None);
        assert_eq!(checked.kinds(ticket, &sorted), [MismatchKind::OutOfBounds]);

        for foreign in [b"x00001".as_slice(), b"k0", b"k99999"] {
            let pair = Pair { key: foreign.into(), value: pairs[0].value.clone() };
            let ticket = checked.scan(5, None);
            assert_eq!(checked.kinds(ticket, &[pair]), [MismatchKind::ForeignKey]);
        }
    });
}

#[test]
fn the_journal_lasts_as_long_as_the_oldest_scan() {
    let mut checked = Checked::new(InsertOrder::Hashed);
    checked.put(1);
    assert_eq!(checked.oracle.versions.journal.len(), 0);
    let first = checked.scan(5, None);
    checked.put(1);
    let second = checked.scan(5, None);
    checked.put(1);
    assert_eq!(checked.oracle.versions.journal.len(), 4);
    checked.oracle.end_scan(first);
    assert_eq!(checked.oracle.versions.journal.len(), 2);
    checked.oracle.end_scan(second);
    assert_eq!(checked.oracle.versions.journal.len(), 0);
}

/// A write of one key, with the steps at which it began and was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Written {
    key: u64,
    version: u32,
    began: usize,
    acknowledged: usize,
}

enum Running {
    Write { index: usize, ticket: WriteTicket, value: Option<Value>, has_effect: bool },
    Making { ticket: ScanTicket, asked: usize, snapshot: Option<BTreeMap<u64, Value>> },
    Open { ticket: ScanTicket, asked: usize, answered: usize, snapshot: BTreeMap<u64, Value> },
}

/// A store of few keys in which every write, and every creation of an iterator, takes effect at one
/// instant between its begin and its end; and its history, for comparison with the definition.
struct Store {
    checked: Checked,
    history: Vec<Written>,
    running: Vec<Running>,
    step: usize,
}

impl Store {
    fn new(order: InsertOrder) -> Self {
        let checked = Checked::new(order);
        let loaded = |key| Written { key, version: 0b11, began: 0, acknowledged: 0 };
        let never = |key| Written { key, version: 0, began: 0, acknowledged: 0 };
        let history = (0..KEYS).map(loaded).chain((KEYS..KEYS + 3).map(never)).collect();
        Self { checked, history, running: Vec::new(), step: 1 }
    }

    fn begin(&mut self, kind: u8, key: u64) {
        let oracle = &mut self.checked.oracle;
        let (ticket, value) = match kind {
            0 => {
                let (ticket, value) = oracle.begin_put(key);
                (ticket, Some(value))
            }
            1 => (oracle.begin_delete(key), None),
            _ => {
                let ticket = oracle.begin_scan(key % KEYS, None);
                let making = Running::Making { ticket, asked: self.step, snapshot: None };
                self.running.push(making);
                return;
            }
        };
        let (version, began) = (ticket.0.version, self.step);
        self.history.push(Written { key, version, began, acknowledged: usize::MAX });
        let index = self.history.len() - 1;
        self.running.push(Running::Write { index, ticket, value, has_effect: false });
    }

    fn take_effect(&mut self, running: usize) {
        let values = &mut self.checked.values;
        match &mut self.running[running] {
            Running::Write { index, value, has_effect, .. } => {
                let key = self.history[*index].key;
                match (std::mem::replace(has_effect, true), value) {
                    (true, _) => {}
                    (false, Some(value)) => {
                        values.insert(key, value.clone());
                    }
                    (false, None) => {
                        values.remove(&key);
                    }
                }
            }
            Running::Making { snapshot, .. } => {
                snapshot.get_or_insert_with(|| values.clone());
            }
            Running::Open { .. } => {}
        }
    }

    fn end(&mut self, running: usize) {
        self.take_effect(running);
        match self.running.swap_remove(running) {
            Running::Write { index, ticket, .. } => {
                self.history[index].acknowledged = self.step;
                self.checked.oracle.acknowledge(ticket);
            }
            Running::Making { mut ticket, asked, snapshot } => {
                self.checked.oracle.scan_created(&mut ticket);
                let snapshot = snapshot.expect("it has taken effect");
                let answered = self.step;
                self.running.push(Running::Open { ticket, asked, answered, snapshot });
            }
            Running::Open { ticket, asked, answered, snapshot } => {
                self.check_against_definition(&ticket, asked, answered);
                self.read(ticket, snapshot);
            }
        }
    }

    /// Asserts that the oracle accepts the whole scan.
    fn read(&mut self, mut ticket: ScanTicket, snapshot: BTreeMap<u64, Value>) {
        let now = std::mem::replace(&mut self.checked.values, snapshot);
        let start = self.checked.keys.number_at(ticket.start());
        for pair in self.checked.pairs(start) {
            let surprises = self.checked.oracle.check_pair(&mut ticket, &pair);
            assert_eq!(surprises, [], "{:?}", self.history);
        }
        assert_eq!(self.checked.oracle.check_end(&mut ticket), None, "{:?}", self.history);
        self.checked.oracle.end_scan(ticket);
        self.checked.values = now;
    }

    /// Asserts that the definition allows everything that the oracle allows.
    fn check_against_definition(&self, ticket: &ScanTicket, asked: usize, answered: usize) {
        let versions = &self.checked.oracle.versions;
        let is_allowed = |write: &Written| {
            let replaced = self.history.iter().any(|later| {
                let is_later = write.acknowledged < later.began && later.acknowledged < asked;
                later.key == write.key && is_later
            });
            write.began < answered && !replaced
        };
        for key in 0..KEYS + 3 {
            let view = versions.view(ticket.time(), key);
            let mut may_be_gone = false;
            for write in self.history.iter().filter(|write| write.key == key) {
                let is_allowed = is_allowed(write);
                may_be_gone |= is_allowed && !is_put(write.version);
                let seen = Seen::Write(write.version);
                let may_be_seen = is_put(write.version) && versions.view_allows(&view, seen);
                assert!(is_allowed || !may_be_seen, "{write:?} in {:?}", self.history);
            }
            assert!(may_be_gone || !versions.view_allows(&view, Seen::Nothing), "key {key}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn true_snapshots_are_never_refused_and_nothing_else_is_allowed(
        is_hashed in any::<bool>(),
        steps in prop::collection::vec(
            (0_u8..3, 0_u8..4, 0..KEYS + 3, any::<prop::sample::Index>()),
            1..150,
        )
    ) {
        let order = if is_hashed { InsertOrder::Hashed } else { InsertOrder::Ordered };
        let mut store = Store::new(order);
        for (what, kind, key, which) in steps {
            store.step += 1;
            match (what, store.running.len()) {
                (0, 0..8) | (_, 0) => store.begin(kind, key),
                (1, running) => store.take_effect(which.index(running)),
                (_, running) => store.end(which.index(running)),
            }
        }
        while !store.running.is_empty() {
            store.step += 1;
            store.end(0);
        }
        assert_eq!(store.checked.oracle.versions.journal.len(), 0);
    }
}
