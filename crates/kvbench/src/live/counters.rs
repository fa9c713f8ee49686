//! Counters of a bench in real time.

use levelhead::{Inside, Store};
use workload::RunReport;

/// Bytes that this process has read from drives and written to drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// Counters of the machine.
pub trait Machine {
    /// Returns the bytes read and written so far, or `None` if the system does not count them.
    fn disk_bytes(&self) -> Option<DiskBytes>;
}

/// Counters of the store and of the machine at one moment.
pub(super) struct Moment {
    pub inside: Inside,
    pub disk: Option<DiskBytes>,
}

impl Moment {
    pub(super) fn now(store: &Store, machine: &dyn Machine) -> Self {
        Self { inside: store.inside(), disk: machine.disk_bytes() }
    }
}

/// Reports and counters of the phases of a bench.
pub(super) struct Phases {
    pub load: RunReport,
    pub run: RunReport,
    pub before_load: Option<DiskBytes>,
    pub before_run: Moment,
    /// After the last operation of the run, before the store settles.
    pub after_run: Moment,
    pub settled: Moment,
    pub settle_seconds: [f64; 2],
}
