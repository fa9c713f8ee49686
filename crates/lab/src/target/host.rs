//! A host's store as the workloads see it.

use std::rc::Rc;

use block::BlockDevice;
use design::Index;
use flash::FlashStats;
use host::{GetTimes, HostIterator, HostStore};
use limiter::{Limited, LimiterStats};
use pages::{EngineError, Medium, Value};
use ssd::{SetReport, SetStats, Ssd};
use workload::{KvIterator, KvTarget, Pair};

use crate::target::{Subject, Windowing};

/// A store of a host on its medium, and the drive below it.
pub(crate) struct HostTarget<M: Medium> {
    pub store: HostStore<Limited<M>>,
    pub medium: Limited<M>,
    pub ssd: Ssd,
    pub windowing: Option<Rc<dyn Windowing>>,
}

impl<M: Medium> Clone for HostTarget<M> {
    fn clone(&self) -> Self {
        let Self { store, medium, ssd, windowing } = self;
        let windowing = windowing.clone();
        Self { store: store.clone(), medium: medium.clone(), ssd: ssd.clone(), windowing }
    }
}

impl<M: Medium> HostTarget<M> {
    fn reports(&self) -> impl Iterator<Item = SetReport> {
        let sets = self.ssd.sets().into_iter();
        sets.map(|shape| self.ssd.report(shape.id).expect("the drive has the set"))
    }
}

impl<M: Medium> Subject for HostTarget<M> {
    type Medium = Limited<M>;

    fn index(&self) -> &Index<Limited<M>> {
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

impl<M: Medium> KvTarget for HostTarget<M> {
    type Error = EngineError;
    type Iterator = HostIteration<Limited<M>>;

    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, EngineError>> {
        self.store.get(key)
    }

    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), EngineError>> {
        self.store.put(key, value, None)
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, EngineError> {
        // Whether there was one is not looked up.
        self.store.delete(key, None).await.map(|()| true)
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        self.store.index().lsm().is_none().then_some("the hash design keeps no key order")
    }

    async fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<HostIteration<Limited<M>>, EngineError> {
        let iterator = self.store.create_iterator(upper_bound)?;
        Ok(HostIteration(iterator.expect("sessions ask why there are none")))
    }
}

/// An iterator of a host's store.
pub(crate) struct HostIteration<M: Medium>(HostIterator<M>);

fn pair((key, value): (Box<[u8]>, Value)) -> Pair {
    Pair { key, value }
}

impl<M: Medium> KvIterator for HostIteration<M> {
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
