//! A host's store as a target.

use std::rc::Rc;

use block::BlockDevice;
use drives::nand::FlashStats;
use drives::ssd::{SetReport, SetStats, Ssd};
use engine::{EngineError, Value};
use stacks::design::Index;
use stacks::host::{GetTimes, HostIterator, HostStore};
use stacks::limiter::{Limited, LimiterStats};
use volume::{BlockRange, OneOrMany};
use workload::{KvIterator, KvTarget, Pair};

use super::{Subject, Windowing};

/// A set of the drive, or a volume of several.
pub(crate) type HostMedium = OneOrMany<BlockRange<Ssd>>;

/// A host's store on its medium, and the drive below.
#[derive(Clone)]
pub(crate) struct HostTarget {
    pub store: HostStore<Limited<HostMedium>>,
    pub medium: Limited<HostMedium>,
    pub ssd: Ssd,
    pub windowing: Option<Rc<dyn Windowing>>,
}

impl HostTarget {
    fn reports(&self) -> impl Iterator<Item = SetReport> {
        let sets = self.ssd.sets().into_iter();
        sets.map(|shape| self.ssd.report(shape.id).expect("the drive has the set"))
    }
}

impl Subject for HostTarget {
    type Medium = Limited<HostMedium>;

    fn index(&self) -> &Index<Limited<HostMedium>> {
        self.store.index()
    }

    fn flash_stats(&self) -> FlashStats {
        self.reports().fold(FlashStats::default(), |mut sum, set| {
            sum += &set.flash;
            sum
        })
    }

    fn block_stats(&self) -> Option<SetStats> {
        Some(self.reports().fold(SetStats::default(), |mut sum, set| {
            sum += set.firmware;
            sum
        }))
    }

    fn limiter_stats(&self) -> Option<LimiterStats> {
        Some(self.medium.stats())
    }

    fn get_times(&self) -> Option<GetTimes> {
        Some(self.store.get_times())
    }

    fn windowing(&self) -> Option<&dyn Windowing> {
        self.windowing.as_deref()
    }
}

impl KvTarget for HostTarget {
    type Error = EngineError;
    type Iterator = HostIteration;

    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, EngineError>> {
        self.store.get(key)
    }

    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), EngineError>> {
        self.store.put(key, value, None)
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, EngineError> {
        // The store does not check whether the key existed.
        self.store.delete(key, None).await.map(|()| true)
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        self.store.index().lsm().is_none().then_some("the hash design keeps no key order")
    }

    async fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<HostIteration, EngineError> {
        let iterator = self.store.create_iterator(upper_bound)?;
        Ok(HostIteration(iterator.expect("sessions ask why there are none")))
    }
}

/// An iterator of a host's store.
pub(crate) struct HostIteration(HostIterator<Limited<HostMedium>>);

fn pair((key, value): (Box<[u8]>, Value)) -> Pair {
    Pair { key, value }
}

impl KvIterator for HostIteration {
    type Error = EngineError;

    async fn seek(&mut self, target: &[u8]) -> Result<Option<Pair>, EngineError> {
        Ok(self.0.seek(target).await?.map(pair))
    }

    async fn next(&mut self) -> Result<Option<Pair>, EngineError> {
        Ok(self.0.next(0).await?.map(pair))
    }

    async fn next_many(&mut self, count: usize) -> Result<Vec<Pair>, EngineError> {
        let mut pairs = Vec::with_capacity(count);
        while pairs.len() < count {
            let ahead = (count - pairs.len() - 1) as u32;
            let Some(next) = self.0.next(ahead).await? else { break };
            pairs.push(pair(next));
        }
        Ok(pairs)
    }

    async fn destroy(self) -> Result<(), EngineError> {
        Ok(())
    }
}
