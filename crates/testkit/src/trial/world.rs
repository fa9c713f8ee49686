//! The model: for each key the history of requested values, and the errors of a store.
//!
//! A read may return any value between the newest value acknowledged when the read began and the
//! newest value requested when it ended. After a power cut, any value from the newest acknowledged
//! one on is correct, and the first read fixes it. Writes that are acknowledged before they are
//! durable may be lost by a power cut, newest first: see `survival`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::{LogSync, Value};
use runtime::Nanos;

use super::complaint::{Complaint, Kind, is_same};
use super::names::Names;
use super::survival::{Finding, Mark, Order, Session};

/// The result of a read: the value of the key, if it exists; or a complaint, if the read failed
/// although it must not.
pub type Answer = Result<Option<Value>, Complaint>;

/// The values written to a key, oldest first.
#[derive(Default)]
struct History {
    values: Vec<Option<Value>>,
    /// Index of the newest acknowledged value, plus one; 0 if none was acknowledged.
    acknowledged: usize,
    /// The same for values that survive the next power cut, as known at the last power cut.
    durable: usize,
    /// The events of each write.
    marks: Vec<Mark>,
}

impl History {
    /// Returns the indices from `from` on at which the value equals `found`.
    fn matches(
        &self,
        from: usize,
        found: Option<&Value>,
    ) -> impl DoubleEndedIterator<Item = usize> {
        (from..=self.values.len()).filter(move |index| is_same(self.at(*index), found))
    }

    fn at(&self, index: usize) -> Option<&Value> {
        index.checked_sub(1).and_then(|i| self.values[i].as_ref())
    }

    /// Returns the kind of error if a read returned `found`, where the values from `from` on are
    /// allowed.
    fn objection(&self, from: usize, found: Option<&Value>) -> Option<Kind> {
        let is_at = |index: usize| is_same(self.at(index), found);
        if (from..=self.values.len()).any(is_at) {
            None
        } else if found.is_none() {
            Some(Kind::Lost)
        } else if (0..from).any(is_at) {
            Some(Kind::Stale)
        } else {
            Some(Kind::Foreign)
        }
    }

    fn is_settled(&self) -> bool {
        self.acknowledged == self.values.len()
    }
}

/// The model that clients share.
pub struct World {
    /// The names of the keys.
    pub names: Names,
    histories: RefCell<Vec<History>>,
    session: Session,
    complaint: RefCell<Option<Complaint>>,
    commands: Cell<u64>,
    refused: Cell<u64>,
    expired: Cell<u64>,
    /// Commands of this session, by client.
    by_client: RefCell<Vec<u64>>,
}

impl World {
    /// Creates a model of `keys` keys without values.
    pub fn new(keys: usize, names: Names) -> Rc<Self> {
        let histories = RefCell::new((0..keys).map(|_| History::default()).collect());
        Rc::new(Self {
            names,
            histories,
            session: Session::default(),
            complaint: RefCell::default(),
            commands: Cell::new(0),
            refused: Cell::new(0),
            expired: Cell::new(0),
            by_client: RefCell::default(),
        })
    }

    /// Sets the maximum time until a write with `interval` is durable: `time`, and `per_kib` for
    /// each KiB written.
    pub fn expect_log_behind(&self, time: Nanos, per_kib: Nanos) {
        self.session.expect_log_behind(time, per_kib);
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.histories.borrow().len()
    }

    /// Records an error. The first error is kept.
    pub fn complain(&self, kind: Kind, what: impl Into<String>) {
        self.complain_of(Complaint::new(kind, what));
    }

    /// Records a complaint. The first complaint is kept.
    pub fn complain_of(&self, complaint: Complaint) {
        self.complaint.borrow_mut().get_or_insert(complaint);
    }

    /// Returns the recorded complaint as an error and clears it.
    ///
    /// # Errors
    /// Returns the complaint, if any.
    pub fn result(&self) -> Result<(), Complaint> {
        self.complaint.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Begins a session. Returns whether it is the first.
    pub fn begin_session(&self, clients: usize) -> bool {
        *self.by_client.borrow_mut() = vec![0; clients];
        self.commands.get() == 0
    }

    /// Counts a command of a client.
    pub fn count_command(&self, client: usize) {
        self.commands.set(self.commands.get() + 1);
        self.by_client.borrow_mut()[client] += 1;
    }

    /// Returns the commands of this session, by client.
    pub fn by_client(&self) -> Vec<u64> {
        self.by_client.borrow().clone()
    }

    /// Counts an expired snapshot.
    pub fn count_expired(&self) {
        self.expired.set(self.expired.get() + 1);
    }

    /// Counts a write that a full store refused.
    pub fn count_refused(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// Returns the number of client commands.
    pub fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Returns the number of writes that a full store refused.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Returns the number of expired snapshots.
    pub fn expired(&self) -> u64 {
        self.expired.get()
    }

    /// Returns the index of the newest acknowledged value of each key.
    pub fn acknowledged_all(&self) -> Vec<usize> {
        self.histories.borrow().iter().map(|history| history.acknowledged).collect()
    }

    /// Returns the values that a key may have, from index `from` on.
    pub fn values_since(&self, key: usize, from: usize) -> Vec<Option<Value>> {
        let history = &self.histories.borrow()[key];
        (from..=history.values.len()).map(|index| history.at(index).cloned()).collect()
    }

    /// Whether a key exists; `None` if a power cut left that uncertain.
    pub fn exists(&self, key: usize) -> Option<bool> {
        let history = &self.histories.borrow()[key];
        history.is_settled().then(|| history.at(history.acknowledged).is_some())
    }

    /// Returns the keys whose value is uncertain after a power cut.
    pub fn unsettled(&self) -> Vec<usize> {
        let histories = self.histories.borrow();
        (0..histories.len()).filter(|key| !histories[*key].is_settled()).collect()
    }

    /// Records a requested write of `key`, which may take effect from now on. Returns its index.
    pub fn ask(&self, key: usize, value: Option<Value>) -> usize {
        let history = &mut self.histories.borrow_mut()[key];
        let bytes =
            self.names.of(key).len() as u64 + u64::from(value.as_ref().map_or(0, Value::len));
        self.session.count_bytes(bytes);
        history.values.push(value);
        history.marks.push(self.session.ask());
        history.values.len()
    }

    /// Records the acknowledgement of write `index` of `key`.
    pub fn acknowledge(&self, key: usize, index: usize, sync: LogSync, now: Nanos) {
        let history = &mut self.histories.borrow_mut()[key];
        history.acknowledged = index;
        self.session.acknowledge(&mut history.marks[index - 1], sync, now);
    }

    /// Ends the session by a power cut: writes acknowledged before they were durable may be lost.
    pub fn lose_power(&self, now: Nanos) {
        let histories = &mut *self.histories.borrow_mut();
        let marks = histories.iter().flat_map(|history| &history.marks);
        let durable = self.session.durable_before(marks, now);
        for history in &mut *histories {
            let kept =
                history.marks.iter().rposition(|mark| self.session.is_durable(mark, durable));
            history.durable = history.durable.max(kept.map_or(0, |index| index + 1));
            history.acknowledged = history.durable;
        }
        self.session.end();
    }

    /// Removes a refused write, which never takes effect.
    pub fn refuse(&self, key: usize) {
        let history = &mut self.histories.borrow_mut()[key];
        history.values.pop();
        history.marks.pop();
    }

    /// Returns the index of the newest acknowledged value of `key`.
    pub fn acknowledged(&self, key: usize) -> usize {
        self.histories.borrow()[key].acknowledged
    }

    /// Checks the result of a read of `key` that began when `from` was the newest acknowledged
    /// value.
    pub fn check(&self, key: usize, from: usize, found: Option<&Value>, when: &str) {
        let history = &self.histories.borrow()[key];
        if let Some(kind) = history.objection(from, found) {
            let expected: Vec<_> = (from..=history.values.len()).map(|i| history.at(i)).collect();
            let what = format!("{when}: key {key} has {found:?}, expected one of {expected:?}");
            self.complain(kind, what);
        }
    }

    /// Checks the result of a read, including its failure.
    pub fn check_answer(&self, key: usize, from: usize, answer: &Answer, when: &str) {
        match answer {
            Ok(found) => self.check(key, from, found.as_ref(), when),
            Err(Complaint { kind, text }) => {
                self.complain(*kind, format!("{when}: key {key}: {text}"));
            }
        }
    }

    /// Fixes the values found after a power cut: from now on they are the values of their keys.
    pub fn settle(&self, answers: Vec<(usize, Answer)>) {
        self.check_order(&answers);
        for (key, answer) in answers {
            self.check_answer(key, self.acknowledged(key), &answer, "after recovery");
            let history = &mut self.histories.borrow_mut()[key];
            history.values.push(answer.ok().flatten());
            history.marks.push(self.session.settled());
            history.acknowledged = history.values.len();
        }
    }

    /// Checks that the surviving writes are a prefix of the write order.
    fn check_order(&self, answers: &[(usize, Answer)]) {
        let histories = self.histories.borrow();
        let findings = answers.iter().filter_map(|(key, answer)| {
            let history = &histories[*key];
            let found = answer.as_ref().ok()?.as_ref();
            let mut matches = history.matches(history.acknowledged, found);
            let oldest = matches.next()?;
            let newest = matches.next_back().unwrap_or(oldest);
            Some(Finding { key: *key, marks: &history.marks, oldest, newest })
        });
        let findings: Vec<Finding<'_>> = findings.collect();
        if let Some(lost) = Order::of(&findings).lost(&findings) {
            self.complain(Kind::Lost, lost);
        }
    }
}
