//! The stream of operations of a phase.
//!
//! All clients of a phase share one stream, so that the operations do not depend on the number of
//! clients. Cost: a random number for the kind, then the key's draw.

use std::ops::Range;

use runtime::Rng;

use crate::generator::{InsertCounter, KeyChooser, LengthChooser};
use crate::settings::{CoreWorkload, Mix};

/// Kinds of operations with separate latencies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OpKind {
    /// A read of one key, including that of a read-modify-write.
    Get,
    /// A write of one key: update, insert, and that of a read-modify-write.
    Put,
    /// A delete of one key.
    Delete,
    /// A range of keys as a whole, from creating the iterator to destroying it.
    Scan,
    /// The Seek of a scan.
    Seek,
    /// A Next of a scan; in bulk, one that returns several pairs.
    Next,
    /// A read-modify-write as a whole.
    ReadModifyWrite,
}

impl OpKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::Put,
        Self::Delete,
        Self::Scan,
        Self::Seek,
        Self::Next,
        Self::ReadModifyWrite,
    ];

    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::Seek => "seek",
            Self::Next => "next",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// The action of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Puts one of the initial records.
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
    /// Number within the phase, from 1, in the order of issue.
    pub(crate) number: u64,
    pub(crate) action: Action,
    pub(crate) key: u64,
    /// Records of the operation: 1, unless it is a scan.
    pub(crate) records: u64,
}

/// Draws actions by their shares.
struct ActionChooser {
    /// Cumulative shares; actions without a share are left out.
    bounds: Vec<(f64, Action)>,
}

impl ActionChooser {
    fn new(mix: &Mix) -> Self {
        let mut sum = 0.0;
        let shares = [
            (mix.read, Action::Read),
            (mix.update, Action::Update),
            (mix.insert, Action::Insert),
            (mix.scan, Action::Scan),
            (mix.read_modify_write, Action::ReadModifyWrite),
            (mix.delete, Action::Delete),
        ];
        let shares = shares.into_iter().filter(|(share, _)| *share > 0.0);
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

/// The operations of one phase, in order.
pub(crate) enum OperationStream {
    /// Inserts of the initial records, in the order of their numbers.
    Load { first: u64, left: Range<u64> },
    /// Operations by the mix and the request distribution.
    Run(Box<RunStream>),
}

pub(crate) struct RunStream {
    actions: ActionChooser,
    keys: KeyChooser,
    lengths: LengthChooser,
    rng: Rng,
    issued: u64,
    count: u64,
}

impl OperationStream {
    pub(crate) fn load(workload: &CoreWorkload) -> Self {
        let first = workload.insert_start;
        Self::Load { first, left: first..first + workload.insert_count }
    }

    pub(crate) fn run(workload: &CoreWorkload, rng: Rng) -> Self {
        Self::Run(Box::new(RunStream {
            actions: ActionChooser::new(&workload.mix),
            keys: KeyChooser::new(workload),
            lengths: LengthChooser::new(workload.scans.lengths),
            rng,
            issued: 0,
            count: workload.operation_count,
        }))
    }

    /// Returns the number of operations left.
    pub(crate) fn remaining(&self) -> u64 {
        match self {
            Self::Load { left, .. } => left.end - left.start,
            Self::Run(run) => run.count - run.issued,
        }
    }

    /// Returns the next operation; `None` at the end. An insert takes its number from `inserts`.
    pub(crate) fn next(&mut self, inserts: &mut InsertCounter) -> Option<Operation> {
        match self {
            Self::Load { first, left } => {
                let key = left.next()?;
                Some(Operation { number: key - *first + 1, action: Action::Load, key, records: 1 })
            }
            Self::Run(run) => run.next(inserts),
        }
    }
}

impl RunStream {
    fn next(&mut self, inserts: &mut InsertCounter) -> Option<Operation> {
        if self.issued == self.count {
            return None;
        }
        self.issued += 1;
        let action = self.actions.draw(&mut self.rng);
        let key = match action {
            Action::Insert => inserts.issue(),
            _ => self.keys.draw(&mut self.rng, inserts.newest()),
        };
        let records = match action {
            Action::Scan => self.lengths.draw(&mut self.rng),
            _ => 1,
        };
        Some(Operation { number: self.issued, action, key, records })
    }
}

#[cfg(test)]
mod tests {
    use runtime::mix64;

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
        assert!(operations.iter().map(|operation| operation.number).eq(1..=5));
    }

    #[test]
    fn a_run_ends_after_its_operations_and_numbers_inserts_after_the_records() {
        let workload = CoreWorkload::from_properties(&builtin("d").unwrap()).unwrap();
        let mut stream = OperationStream::run(&workload, Rng::new(1));
        let mut inserts = InsertCounter::new(1000);
        let operations: Vec<Operation> = std::iter::from_fn(|| stream.next(&mut inserts)).collect();
        assert!(operations.iter().map(|operation| operation.number).eq(1..=1000));
        let inserted: Vec<u64> = operations
            .iter()
            .filter(|operation| operation.action == Action::Insert)
            .map(|operation| operation.key)
            .collect();
        assert!(inserted.iter().copied().eq(1000..1000 + inserted.len() as u64));
        let reads = operations.iter().filter(|operation| operation.action == Action::Read);
        assert!(reads.into_iter().all(|read| read.key < 1000), "no insert was acknowledged");
    }

    /// Returns a hash of all operations of a run.
    fn fingerprint(name: &str, seed: u64) -> u64 {
        let mut properties = builtin(name).unwrap();
        properties.set("operationcount", "20000");
        let workload = CoreWorkload::from_properties(&properties).unwrap();
        let mut stream = OperationStream::run(&workload, Rng::new(seed));
        let mut inserts = InsertCounter::new(1000);
        let operations = std::iter::from_fn(|| stream.next(&mut inserts));
        let words = operations
            .flat_map(|Operation { action, key, records, .. }| [action as u64, key, records]);
        words.fold(0, |hash, word| mix64(hash ^ word))
    }

    #[test]
    fn what_workloads_ask_for_is_the_same_in_every_version() {
        let table = [
            ("a", 0xA3EF_C7C9_494C_6B3A),
            ("b", 0xEFB8_4F1B_4EB7_567E),
            ("c", 0x7AE2_FB3E_C7F2_F775),
            ("d", 0x423B_34BE_F75D_D921),
            ("e", 0xEA47_CF3D_74F4_CDA7),
            ("f", 0x02D1_C504_820C_7008),
            ("seekrandom", 0x2BCE_0D23_1274_1BC3),
            ("userdb", 0xE143_15AD_E041_96D4),
            ("zippydb", 0x772C_6877_8A60_019D),
        ];
        let found = table.map(|(name, _)| (name, fingerprint(name, 1)));
        assert_eq!(found, table, "{found:#018x?}");
        assert_ne!(fingerprint("a", 1), fingerprint("a", 2));
    }
}
