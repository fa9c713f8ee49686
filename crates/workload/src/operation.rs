//! What a client does next: the operation mix and the stream of operations of a phase.
//!
//! All clients of a phase share one stream, so that what is asked of the store does not depend on
//! how many clients ask. Cost: a random number for the kind, then the key's draw.

use std::ops::Range;

use runtime::Rng;

use crate::CoreWorkload;
use crate::generator::{InsertCounter, KeyChooser};

/// What latencies are kept apart by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OpKind {
    /// A read of one key, also the one within a read-modify-write.
    Get,
    /// A write of one key: update, insert, and the one within a read-modify-write.
    Put,
    /// A delete of one key.
    Delete,
    /// A range of keys.
    Scan,
    /// A read-modify-write as a whole.
    ReadModifyWrite,
}

impl OpKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Get, Self::Put, Self::Delete, Self::Scan, Self::ReadModifyWrite];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// The share of each operation in a run, relative to the others: their sum need not be 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Mix {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `deleteproportion`, which YCSB does not have.
    pub delete: f64,
}

impl Mix {
    /// The sum of all shares.
    pub fn sum(&self) -> f64 {
        self.shares().into_iter().map(|(share, _)| share).sum()
    }

    /// Inserts among all operations, from 0 to 1.
    pub(crate) fn insert_share(&self) -> f64 {
        self.insert / self.sum()
    }

    fn shares(&self) -> [(f64, Action); 6] {
        [
            (self.read, Action::Read),
            (self.update, Action::Update),
            (self.insert, Action::Insert),
            (self.scan, Action::Scan),
            (self.read_modify_write, Action::ReadModifyWrite),
            (self.delete, Action::Delete),
        ]
    }
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Put one of the records to begin with.
    Load,
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
    Delete,
}

/// One operation of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    pub(crate) key: u64,
}

/// Draws actions by their shares.
struct ActionChooser {
    /// Shares summed up to and with each action; actions without a share are left out.
    bounds: Vec<(f64, Action)>,
}

impl ActionChooser {
    fn new(mix: &Mix) -> Self {
        let mut sum = 0.0;
        let shares = mix.shares().into_iter().filter(|(share, _)| *share > 0.0);
        let bounds: Vec<_> = shares
            .map(|(share, action)| {
                sum += share;
                (sum, action)
            })
            .collect();
        assert!(!bounds.is_empty(), "settings have checked that some operation has a share");
        Self { bounds }
    }

    fn draw(&self, rng: &mut Rng) -> Action {
        let (sum, last) = self.bounds[self.bounds.len() - 1];
        let at = rng.unit_f64() * sum;
        let found = self.bounds.iter().find(|(bound, _)| at < *bound);
        found.map_or(last, |(_, action)| *action)
    }
}

/// The operations of one phase, one after the other.
pub(crate) enum OperationStream {
    /// Inserts of the records to begin with, in the order of their numbers.
    Load(Range<u64>),
    /// Operations by the mix and the request distribution.
    Run(Box<RunStream>),
}

pub(crate) struct RunStream {
    actions: ActionChooser,
    keys: KeyChooser,
    rng: Rng,
    remaining: u64,
}

impl OperationStream {
    pub(crate) fn load(workload: &CoreWorkload) -> Self {
        let first = workload.insert_start;
        Self::Load(first..first + workload.insert_count)
    }

    pub(crate) fn run(workload: &CoreWorkload, rng: Rng) -> Self {
        Self::Run(Box::new(RunStream {
            actions: ActionChooser::new(&workload.mix),
            keys: KeyChooser::new(workload),
            rng,
            remaining: workload.operation_count,
        }))
    }

    /// How many operations are to come.
    pub(crate) fn remaining(&self) -> u64 {
        match self {
            Self::Load(keys) => keys.end - keys.start,
            Self::Run(run) => run.remaining,
        }
    }

    /// The next operation; `None` at the end. An insert takes its number from `inserts`.
    pub(crate) fn next(&mut self, inserts: &mut InsertCounter) -> Option<Operation> {
        match self {
            Self::Load(keys) => keys.next().map(|key| Operation { action: Action::Load, key }),
            Self::Run(run) => run.next(inserts),
        }
    }
}

impl RunStream {
    fn next(&mut self, inserts: &mut InsertCounter) -> Option<Operation> {
        self.remaining = self.remaining.checked_sub(1)?;
        let action = self.actions.draw(&mut self.rng);
        let key = match action {
            Action::Insert => inserts.issue(),
            _ => self.keys.draw(&mut self.rng, inserts.newest()),
        };
        Some(Operation { action, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn shares_need_not_sum_to_one() {
        let chooser = ActionChooser::new(&Mix { read: 3.0, delete: 1.0, ..Mix::default() });
        let mut rng = Rng::new(6);
        let draws: Vec<Action> = (0..40_000).map(|_| chooser.draw(&mut rng)).collect();
        let reads = draws.iter().filter(|action| **action == Action::Read).count();
        let deletes = draws.iter().filter(|action| **action == Action::Delete).count();
        assert_eq!(reads + deletes, draws.len());
        assert!((29_500..30_500).contains(&reads), "{reads}");
    }

    #[test]
    fn a_load_inserts_each_record_once_in_order() {
        let mut properties = builtin("a").unwrap();
        properties.set("insertstart", "10");
        properties.set("insertcount", "5");
        let workload = CoreWorkload::from_properties(&properties).unwrap();
        let mut stream = OperationStream::load(&workload);
        assert_eq!(stream.remaining(), 5);
        let mut inserts = InsertCounter::new(1000);
        let operations: Vec<Operation> = std::iter::from_fn(|| stream.next(&mut inserts)).collect();
        assert!(operations.iter().all(|operation| operation.action == Action::Load));
        assert!(operations.iter().map(|operation| operation.key).eq(10..15));
    }

    #[test]
    fn a_run_ends_after_its_operations_and_numbers_inserts_after_the_records() {
        let workload = CoreWorkload::from_properties(&builtin("d").unwrap()).unwrap();
        let mut stream = OperationStream::run(&workload, Rng::new(1));
        let mut inserts = InsertCounter::new(1000);
        let operations: Vec<Operation> = std::iter::from_fn(|| stream.next(&mut inserts)).collect();
        assert_eq!(operations.len(), 1000);
        let inserted: Vec<u64> = operations
            .iter()
            .filter(|operation| operation.action == Action::Insert)
            .map(|operation| operation.key)
            .collect();
        assert!(inserted.iter().copied().eq(1000..1000 + inserted.len() as u64));
        let reads = operations.iter().filter(|operation| operation.action == Action::Read);
        assert!(reads.into_iter().all(|read| read.key < 1000), "no insert was acknowledged");
    }
}
