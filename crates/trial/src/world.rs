//! The model: for each key the history of values that were asked for, and what a store got wrong.
//!
//! A read may return any value from the newest one acknowledged when it began to the newest one
//! asked for when it ended; after a power cut any value from the newest acknowledged one on is right,
//! and settles it. Where writes are acknowledged before they are durable, a power cut may take the
//! newest ones, in order: `survival`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pages::{LogSync, Value};
use runtime::Nanos;

use crate::complaint::{Complaint, Kind, is_same};
use crate::names::Names;
use crate::survival::{Finding, Mark, Order, Session};

/// What a read answered: the value of the key, if it has one; or what a command that must not fail did.
pub type Answer = Result<Option<Value>, Complaint>;

/// The values a key was given, oldest first.
#[derive(Default)]
struct History {
    values: Vec<Option<Value>>,
    /// Index of the newest value that was acknowledged, plus one; 0 if none was.
    acknowledged: usize,
    /// The same of those that survive the next power cut, as far as that was known at the last one.
    durable: usize,
    /// When each was asked for and acknowledged.
    marks: Vec<Mark>,
}

impl History {
    /// The indices from `from` on at which the key has what was found.
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

    /// What is wrong with finding this, where the value from `from` on may be found.
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

/// What clients share.
pub struct World {
    /// The keys.
    pub names: Names,
    histories: RefCell<Vec<History>>,
    session: Session,
    complaint: RefCell<Option<Complaint>>,
    commands: Cell<u64>,
    refused: Cell<u64>,
    expired: Cell<u64>,
    /// Commands by client in this session.
    by_client: RefCell<Vec<u64>>,
}

impl World {
    /// So many keys of these names, none of which has a value.
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

    /// Writes with `interval` may take that long until they are durable, and so much longer for each KiB that is written.
    pub fn expect_log_behind(&self, time: Nanos, per_kib: Nanos) {
        self.session.expect_log_behind(time, per_kib);
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.histories.borrow().len()
    }

    /// Something is wrong. The first complaint counts.
    pub fn complain(&self, kind: Kind, what: impl Into<String>) {
        self.complain_of(Complaint::new(kind, what));
    }

    /// The same.
    pub fn complain_of(&self, complaint: Complaint) {
        self.complaint.borrow_mut().get_or_insert(complaint);
    }

    /// What was wrong, if anything.
    ///
    /// # Errors
    /// The complaint.
    pub fn result(&self) -> Result<(), Complaint> {
        self.complaint.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// A session begins; whether it is the first.
    pub fn begin_session(&self, clients: usize) -> bool {
        *self.by_client.borrow_mut() = vec![0; clients];
        self.commands.get() == 0
    }

    /// A client is about to do something.
    pub fn count_command(&self, client: usize) {
        self.commands.set(self.commands.get() + 1);
        self.by_client.borrow_mut()[client] += 1;
    }

    /// Commands by client in this session.
    pub fn by_client(&self) -> Vec<u64> {
        self.by_client.borrow().clone()
    }

    /// A snapshot expired.
    pub fn count_expired(&self) {
        self.expired.set(self.expired.get() + 1);
    }

    /// A write was refused by a full store.
    pub fn count_refused(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// What clients did.
    pub fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Writes that were refused by a full store.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Snapshots that expired.
    pub fn expired(&self) -> u64 {
        self.expired.get()
    }

    /// By key, the newest value that is acknowledged.
    pub fn acknowledged_all(&self) -> Vec<usize> {
        self.histories.borrow().iter().map(|history| history.acknowledged).collect()
    }

    /// The values that a key may have from index `from` on.
    pub fn values_since(&self, key: usize, from: usize) -> Vec<Option<Value>> {
        let history = &self.histories.borrow()[key];
        (from..=history.values.len()).map(|index| history.at(index).cloned()).collect()
    }

    /// Whether a key exists; `None` if a power cut left that open.
    pub fn exists(&self, key: usize) -> Option<bool> {
        let history = &self.histories.borrow()[key];
        history.is_settled().then(|| history.at(history.acknowledged).is_some())
    }

    /// Keys of which a power cut left open what they have.
    pub fn unsettled(&self) -> Vec<usize> {
        let histories = self.histories.borrow();
        (0..histories.len()).filter(|key| !histories[*key].is_settled()).collect()
    }

    /// What the next write of `key` puts there; it may take effect from now on.
    pub fn ask(&self, key: usize, value: Option<Value>) -> usize {
        let history = &mut self.histories.borrow_mut()[key];
        let bytes =
            self.names.of(key).len() as u64 + u64::from(value.as_ref().map_or(0, Value::len));
        self.session.count_bytes(bytes);
        history.values.push(value);
        history.marks.push(self.session.ask());
        history.values.len()
    }

    /// Write `index` of `key` was acknowledged.
    pub fn acknowledge(&self, key: usize, index: usize, sync: LogSync, now: Nanos) {
        let history = &mut self.histories.borrow_mut()[key];
        history.acknowledged = index;
        self.session.acknowledge(&mut history.marks[index - 1], sync, now);
    }

    /// Power is about to fail: what was acknowledged before it was durable may be lost.
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

    /// A write was refused: it never takes effect.
    pub fn refuse(&self, key: usize) {
        let history = &mut self.histories.borrow_mut()[key];
        history.values.pop();
        history.marks.pop();
    }

    /// The newest value of `key` that is acknowledged.
    pub fn acknowledged(&self, key: usize) -> usize {
        self.histories.borrow()[key].acknowledged
    }

    /// A read of `key` that began when `from` was the newest value found this.
    pub fn check(&self, key: usize, from: usize, found: Option<&Value>, when: &str) {
        let history = &self.histories.borrow()[key];
        if let Some(kind) = history.objection(from, found) {
            let expected: Vec<_> = (from..=history.values.len()).map(|i| history.at(i)).collect();
            let what = format!("{when}: key {key} has {found:?}, expected one of {expected:?}");
            self.complain(kind, what);
        }
    }

    /// Checks what a read of any kind answered.
    pub fn check_answer(&self, key: usize, from: usize, answer: &Answer, when: &str) {
        match answer {
            Ok(found) => self.check(key, from, found.as_ref(), when),
            Err(Complaint { kind, text }) => {
                self.complain(*kind, format!("{when}: key {key}: {text}"));
            }
        }
    }

    /// After a power cut: what was found is what was there all along.
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

    /// Whether what survived is a first part of what was written.
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
