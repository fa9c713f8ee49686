//! Tests of the oracle: cases by hand, and random histories of a true register.

use proptest::prelude::*;

use super::ticket::ReadTicket;
use super::versions::{Seen, Versions};
use super::*;
use crate::{FieldLengths, ValueForm};

const KEY: u64 = 3;

fn oracle(form: ValueForm, len: u32) -> Oracle {
    Oracle::new(ValueRecipe::new(1, FieldLengths::Constant(len), form), 10)
}

/// Executes a Put, and returns its value.
fn put(oracle: &mut Oracle, key: u64) -> Value {
    let (ticket, value) = oracle.begin_put(key);
    oracle.acknowledge(ticket);
    value
}

fn delete(oracle: &mut Oracle, key: u64) {
    let ticket = oracle.begin_delete(key);
    oracle.acknowledge(ticket);
}

/// Executes a Get, and returns the kind of mismatch, if any.
fn get(oracle: &mut Oracle, key: u64, value: Option<&Value>) -> Option<MismatchKind> {
    let ticket = oracle.begin_get(key);
    oracle.finish_get(&ticket, value).err().map(|surprise| surprise.kind)
}

#[test]
fn the_newest_acknowledged_write_is_the_only_right_answer_when_nothing_overlaps() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    assert_eq!(get(oracle, KEY, None), None);
    let first = put(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&first)), None);
    assert_eq!(get(oracle, KEY, None), Some(MismatchKind::Lost));
    let second = put(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&first)), Some(MismatchKind::Stale));
    assert_eq!(get(oracle, KEY, Some(&second)), None);
    delete(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&second)), Some(MismatchKind::Resurrected));
    assert_eq!(get(oracle, KEY, None), None);
    let third = put(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&third)), None);
    assert_eq!(get(oracle, KEY, Some(&second)), Some(MismatchKind::Stale));
    assert_eq!(oracle.versions.contested(), 0);
}

#[test]
fn what_is_carried_knows_what_was_unsettled() {
    let old = &mut oracle(ValueForm::Synthetic, 100);
    let settled = put(old, 1);
    // Two overlapping writes: either may be found until a Get settles the order.
    let ((one, first), (other, second)) = (old.begin_put(KEY), old.begin_put(KEY));
    old.acknowledge(one);
    old.acknowledge(other);
    assert_eq!(old.versions.contested(), 1);
    let mut bytes = Vec::new();
    old.carry(&mut Carrier::out(&mut bytes)).expect("it is little");
    assert_eq!(old.versions.contested(), 1, "nothing is taken away");
    let opened = |bytes: &[u8]| {
        let mut new = oracle(ValueForm::Synthetic, 100);
        let by = &mut Carrier::back(bytes);
        new.carry(by).filter(|()| by.is_at_end()).map(|()| new)
    };
    for (found, is_right) in [(&first, true), (&second, true), (&settled, false)] {
        let mut new = opened(&bytes).expect("it is whole");
        assert_eq!(get(&mut new, KEY, Some(found)).is_none(), is_right);
        assert_eq!(get(&mut new, 1, Some(&settled)), None);
        assert_eq!(get(&mut new, 1, None), Some(MismatchKind::Lost));
    }
    let mut new = opened(&bytes).expect("it is whole");
    assert_eq!(get(&mut new, KEY, Some(&first)), None);
    assert_eq!(get(&mut new, KEY, Some(&second)), Some(MismatchKind::Stale), "it is settled now");
    for len in 0..bytes.len() {
        assert!(opened(&bytes[..len]).is_none(), "{len} of {} bytes", bytes.len());
    }
    // The first slot without its mark, and with a wrong mark.
    let mut unmarked = bytes.clone();
    unmarked[4 + 4 * KEY as usize + 3] &= 0x7f;
    assert!(opened(&unmarked).is_none());
    let mut marked = bytes;
    marked[4 + 3] |= 0x80;
    assert!(opened(&marked).is_none());
}

#[test]
fn a_put_under_way_may_be_seen_or_not() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let old = put(oracle, KEY);
    let (ticket, new) = oracle.begin_put(KEY);
    assert_eq!(get(oracle, KEY, Some(&old)), None);
    assert_eq!(get(oracle, KEY, Some(&new)), None);
    assert_eq!(get(oracle, KEY, None), Some(MismatchKind::Lost));
    oracle.acknowledge(ticket);
    assert_eq!(get(oracle, KEY, Some(&old)), Some(MismatchKind::Stale));
    assert_eq!(get(oracle, KEY, Some(&new)), None);
}

#[test]
fn a_get_may_see_any_write_that_began_while_it_ran() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let old = put(oracle, KEY);
    let ticket = oracle.begin_get(KEY);
    let (first, second) = (put(oracle, KEY), put(oracle, KEY));
    for value in [&old, &first, &second] {
        assert_eq!(oracle.finish_get(&ticket, Some(value)), Ok(()));
    }
    assert_eq!(oracle.finish_get(&ticket, None).unwrap_err().kind, MismatchKind::Lost);
    let later = oracle.begin_get(KEY);
    for value in [&old, &first] {
        let surprise = oracle.finish_get(&later, Some(value)).unwrap_err();
        assert_eq!(surprise.kind, MismatchKind::Stale);
    }
}

#[test]
fn overlapping_puts_may_end_either_way_until_a_get_settles_it() {
    for last in [0, 1] {
        let oracle = &mut oracle(ValueForm::Synthetic, 100);
        let old = put(oracle, KEY);
        let (one, first) = oracle.begin_put(KEY);
        let (two, second) = oracle.begin_put(KEY);
        oracle.acknowledge(two);
        oracle.acknowledge(one);
        assert_eq!(get(oracle, KEY, Some(&old)), Some(MismatchKind::Stale));
        let values = [&first, &second];
        let early = oracle.begin_get(KEY);
        assert_eq!(get(oracle, KEY, Some(values[last])), None);
        // Settled, even for a Get that began before the settling one ended.
        assert_eq!(get(oracle, KEY, Some(values[1 - last])), Some(MismatchKind::Stale));
        assert!(oracle.finish_get(&early, Some(values[1 - last])).is_err());
        assert_eq!(oracle.finish_get(&early, Some(values[last])), Ok(()));
        let newer = put(oracle, KEY);
        assert_eq!(get(oracle, KEY, Some(values[last])), Some(MismatchKind::Stale));
        assert_eq!(get(oracle, KEY, Some(&newer)), None);
        assert_eq!(oracle.versions.contested(), 0);
    }
}

#[test]
fn a_long_put_may_take_effect_after_shorter_ones_but_they_keep_their_order() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let (long, slow) = oracle.begin_put(KEY);
    let (first, second) = (put(oracle, KEY), put(oracle, KEY));
    assert_eq!(get(oracle, KEY, Some(&slow)), None);
    assert_eq!(get(oracle, KEY, Some(&second)), None);
    assert_eq!(get(oracle, KEY, Some(&first)), Some(MismatchKind::Stale));
    oracle.acknowledge(long);
    assert_eq!(get(oracle, KEY, Some(&first)), Some(MismatchKind::Stale));
    assert_eq!(get(oracle, KEY, Some(&slow)), None);
}

#[test]
fn a_get_during_which_an_unsettled_key_is_written_may_see_what_was_before() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let (one, first) = oracle.begin_put(KEY);
    let (two, second) = oracle.begin_put(KEY);
    oracle.acknowledge(one);
    oracle.acknowledge(two);
    let ticket = oracle.begin_get(KEY);
    let third = put(oracle, KEY);
    for value in [&first, &second, &third] {
        assert_eq!(oracle.finish_get(&ticket, Some(value)), Ok(()));
    }
    assert_eq!(get(oracle, KEY, Some(&third)), None);
}

#[test]
fn deletes_count_as_writes() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let old = put(oracle, KEY);
    let ticket = oracle.begin_delete(KEY);
    assert_eq!(get(oracle, KEY, None), None);
    assert_eq!(get(oracle, KEY, Some(&old)), None);
    oracle.acknowledge(ticket);
    assert_eq!(get(oracle, KEY, Some(&old)), Some(MismatchKind::Resurrected));
    // A Get during which the key is written, deleted and written again may see any of these states.
    let ticket = oracle.begin_get(KEY);
    let first = put(oracle, KEY);
    delete(oracle, KEY);
    let second = put(oracle, KEY);
    for value in [None, Some(&first), Some(&second)] {
        assert_eq!(oracle.finish_get(&ticket, value), Ok(()));
    }
    // Without a delete the key always had a value.
    let ticket = oracle.begin_get(KEY);
    put(oracle, KEY);
    put(oracle, KEY);
    assert_eq!(oracle.finish_get(&ticket, None).unwrap_err().kind, MismatchKind::Lost);
}

#[test]
fn a_failed_write_may_take_effect_at_any_time() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    let old = put(oracle, KEY);
    let (_, failed) = oracle.begin_put(KEY);
    assert_eq!(get(oracle, KEY, Some(&old)), None);
    assert_eq!(get(oracle, KEY, Some(&failed)), None);
    let new = put(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&failed)), None);
    assert_eq!(get(oracle, KEY, Some(&new)), None);
    assert_eq!(get(oracle, KEY, Some(&old)), Some(MismatchKind::Stale));
}

#[test]
fn foreign_values_are_named() {
    for form in [ValueForm::Synthetic, ValueForm::Bytes] {
        let oracle = &mut oracle(form, 100);
        put(oracle, KEY);
        let other = put(oracle, 7);
        let told = |oracle: &mut Oracle, value: &Value| {
            let ticket = oracle.begin_get(KEY);
            let surprise = oracle.finish_get(&ticket, Some(value)).unwrap_err();
            assert_eq!(surprise.kind, MismatchKind::Foreign);
            let (expected, got) = oracle.describe(&ticket, &surprise);
            assert_eq!(expected, "write 1");
            got
        };
        assert_eq!(told(oracle, &other), "the value of key number 7, write 1");
        let never = oracle.recipe.value(Stamp { key: KEY, version: 5 });
        assert_eq!(told(oracle, &never), "a value that was never written");
        let junk = Value::from_bytes(&[0x55; 100]);
        assert_eq!(told(oracle, &junk), "a value that was never written");
    }
}

#[test]
fn damaged_values_are_told_from_right_ones() {
    let oracle = &mut oracle(ValueForm::Bytes, 100);
    let value = put(oracle, KEY);
    let told = |oracle: &mut Oracle, value: &Value| {
        let ticket = oracle.begin_get(KEY);
        let surprise = oracle.finish_get(&ticket, Some(value)).unwrap_err();
        oracle.describe(&ticket, &surprise).1
    };
    let bytes = value.to_bytes();
    let cut = Value::from_bytes(&bytes[..99]);
    let name = "the value of key number 3, write 1, but";
    assert_eq!(told(oracle, &cut), format!("{name} 99 bytes long instead of 100"));
    let mut flipped = bytes.to_vec();
    flipped[64] ^= 1;
    let got = told(oracle, &Value::from_bytes(&flipped));
    assert_eq!(got, format!("{name} wrong from byte 64 on"));
    flipped[0] ^= 1;
    assert_eq!(told(oracle, &Value::from_bytes(&flipped)), "a value that was never written");
    assert_eq!(get(oracle, KEY, Some(&value)), None);
}

#[test]
fn bytes_and_recipes_are_equally_good() {
    for form in [ValueForm::Synthetic, ValueForm::Bytes] {
        let oracle = &mut oracle(form, 100);
        put(oracle, KEY);
        let recipe = oracle.recipe.synthetic(Stamp { key: KEY, version: 3 });
        assert_eq!(get(oracle, KEY, Some(&recipe)), None);
        assert_eq!(get(oracle, KEY, Some(&Value::Bytes(recipe.to_bytes()))), None);
    }
}

#[test]
fn short_values_are_compared_with_what_is_allowed() {
    let oracle = &mut oracle(ValueForm::Bytes, 5);
    let first = put(oracle, KEY);
    let second = put(oracle, KEY);
    assert_eq!(get(oracle, KEY, Some(&second)), None);
    assert_eq!(get(oracle, KEY, Some(&first)), Some(MismatchKind::Foreign));
    let (_ticket, third) = oracle.begin_put(KEY);
    assert_eq!(get(oracle, KEY, Some(&second)), None);
    assert_eq!(get(oracle, KEY, Some(&third)), None);
    assert_eq!(get(oracle, KEY, Some(&Value::from_bytes(b""))), Some(MismatchKind::Foreign));
}

#[test]
fn memory_is_four_bytes_a_key_and_settled_keys_leave_nothing_behind() {
    let oracle = &mut oracle(ValueForm::Synthetic, 100);
    for key in 0..1000 {
        put(oracle, key);
        put(oracle, key);
    }
    assert_eq!(oracle.versions.contested(), 0);
}

/// One write of a history, with the steps at which it began and was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Written {
    version: u32,
    began: usize,
    acknowledged: usize,
}

/// An operation in flight on the true register.
enum Running {
    Write { index: usize, has_effect: bool },
    Read { ticket: ReadTicket, began: usize, seen: Option<Seen> },
}

/// A register in which each operation takes effect at one instant between its begin and its end;
/// with the oracle's versions, and the history for comparison with the definition.
struct Register {
    versions: Versions,
    history: Vec<Written>,
    current: Seen,
    running: Vec<Running>,
    step: usize,
}

impl Register {
    fn new() -> Self {
        let never = Written { version: 0, began: 0, acknowledged: 0 };
        Self {
            versions: Versions::new(1),
            history: vec![never],
            current: Seen::Nothing,
            running: Vec::new(),
            step: 1,
        }
    }

    fn begin(&mut self, kind: u8) {
        let version = match kind {
            0 => self.versions.issue_put(0),
            1 => self.versions.issue_delete(0),
            _ => {
                let ticket = self.versions.begin_read(0);
                self.running.push(Running::Read { ticket, began: self.step, seen: None });
                return;
            }
        };
        self.history.push(Written { version, began: self.step, acknowledged: usize::MAX });
        self.running.push(Running::Write { index: self.history.len() - 1, has_effect: false });
    }

    fn take_effect(&mut self, running: usize) {
        match &mut self.running[running] {
            Running::Write { has_effect, index } => {
                let version = self.history[*index].version;
                if !std::mem::replace(has_effect, true) {
                    let is_put = version & 1 == 1;
                    self.current = if is_put { Seen::Write(version) } else { Seen::Nothing };
                }
            }
            Running::Read { seen, .. } => {
                seen.get_or_insert(self.current);
            }
        }
    }

    fn end(&mut self, running: usize) {
        self.take_effect(running);
        match self.running.swap_remove(running) {
            Running::Write { index, .. } => {
                self.history[index].acknowledged = self.step;
                self.versions.acknowledge(0, self.history[index].version);
            }
            Running::Read { ticket, began, seen } => {
                self.check_against_definition(&ticket, began);
                let seen = seen.expect("it has taken effect");
                assert!(self.versions.finish_read(&ticket, seen), "{seen:?}: {:?}", self.history);
            }
        }
    }

    /// Asserts that the definition allows everything that the oracle allows, except for the
    /// documented leniency.
    fn check_against_definition(&self, ticket: &ReadTicket, began: usize) {
        let is_allowed = |write: &Written| {
            !self
                .history
                .iter()
                .any(|later| write.acknowledged < later.began && later.acknowledged < began)
        };
        for write in self.history.iter().filter(|write| write.version & 1 == 1) {
            let seen = Seen::Write(write.version);
            assert!(!self.versions.allows(ticket, seen) || is_allowed(write), "{write:?}");
        }
        let mut deletes = self.history.iter().filter(|write| write.version & 1 == 0);
        let may_be_gone = deletes.any(is_allowed);
        assert!(!self.versions.allows(ticket, Seen::Nothing) || may_be_gone);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_true_register_is_never_refused_and_nothing_else_is_allowed(
        steps in prop::collection::vec((0_u8..3, 0_u8..3, any::<prop::sample::Index>()), 1..120)
    ) {
        let mut register = Register::new();
        for (what, kind, which) in steps {
            register.step += 1;
            match (what, register.running.len()) {
                (0, 0..6) | (_, 0) => register.begin(kind),
                (1, running) => register.take_effect(which.index(running)),
                (_, running) => register.end(which.index(running)),
            }
        }
    }
}
