//! The table's admission of writes.

use runtime::Nanos;

use super::Inner;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::medium::Medium;
use crate::operations::Fullness;
use crate::write::{Admission, Index};

impl<M: Medium> Inner<M> {
    /// Returns whether the table has room for one more key. All keys in memtables count as new.
    fn has_slot(&self) -> Admission {
        let memtables = self.front.memtables.borrow();
        let lengths = memtables.newest_first().map(|memtable| memtable.borrow().len() as u64);
        let waiting: u64 = lengths.sum();
        match self.keys.get() + waiting < self.table.most_keys() {
            true => Admission::Now,
            false if waiting > 0 => Admission::AfterFlush,
            false => Admission::Never,
        }
    }
}

impl<M: Medium> Index for Inner<M> {
    async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        Ok(self.locate(key, work, false, &mut 0).await?.exists())
    }

    fn admits_put(&self) -> Admission {
        if self.front.has_space_for_clients() { self.has_slot() } else { Admission::Later }
    }

    fn admits_delete(&self) -> Admission {
        Admission::Now
    }

    /// A delete in a full store should free space at once.
    fn wants_flush(&self) -> bool {
        self.front.fullness.get() != Fullness::Room
    }

    /// The table has no snapshots.
    fn newest_snapshot(&self) -> Option<Sequence> {
        None
    }
}
