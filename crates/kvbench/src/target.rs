//! Platforms of designs, as targets of workloads and as sources of counters.

mod host;
mod windowing;

use drives::nand::FlashStats;
use drives::ssd::SetStats;
use engine::{Medium, Value};
use stacks::design::Index;
use stacks::host::GetTimes;
use stacks::kvssd::{IteratorHandle, KvDrive, RawFlash, Status, StoreMode};
use stacks::limiter::LimiterStats;
use workload::{KvIterator, KvTarget, Pair};

pub(crate) use host::{HostMedium, HostTarget};
pub(crate) use windowing::{VolumeWindows, Windowing};

/// A target of a workload whose counters a bench reads.
pub(crate) trait Subject: KvTarget {
    type Medium: Medium;

    /// Returns the index.
    fn index(&self) -> &Index<Self::Medium>;

    /// Returns the counters of the drive's flash.
    fn flash_stats(&self) -> FlashStats;

    /// Returns the counters of a block drive's firmware, summed over all sets.
    fn block_stats(&self) -> Option<SetStats>;

    /// Returns the counters of a host's limits on background I/O.
    fn limiter_stats(&self) -> Option<LimiterStats>;

    /// Returns the time of a host's Gets.
    fn get_times(&self) -> Option<GetTimes>;

    /// Returns the windows of a host's volume, if it has any.
    fn windowing(&self) -> Option<&dyn Windowing>;
}

impl Subject for DriveTarget {
    type Medium = RawFlash;

    fn index(&self) -> &Index<RawFlash> {
        self.0.engine()
    }

    fn flash_stats(&self) -> FlashStats {
        self.0.flash_stats()
    }

    fn block_stats(&self) -> Option<SetStats> {
        None
    }

    fn limiter_stats(&self) -> Option<LimiterStats> {
        None
    }

    fn get_times(&self) -> Option<GetTimes> {
        None
    }

    fn windowing(&self) -> Option<&dyn Windowing> {
        None
    }
}

/// A [`KvDrive`] as a target. The host's buffer has space for any value.
#[derive(Clone)]
pub struct DriveTarget(pub KvDrive);

impl KvTarget for DriveTarget {
    type Error = Status;
    type Iterator = DriveIterator;

    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, Status>> {
        self.0.get(key)
    }

    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), Status>> {
        self.0.store(key, value, StoreMode::Upsert)
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, Status> {
        match self.0.delete(key).await {
            Ok(()) => Ok(true),
            Err(Status::KeyDoesNotExist) => Ok(false),
            Err(status) => Err(status),
        }
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        match self.0.engine() {
            Index::Lsm(_) => None,
            Index::Hash(_) => Some("the hash design keeps no key order"),
        }
    }

    async fn create_iterator(&self, upper_bound: Option<&[u8]>) -> Result<DriveIterator, Status> {
        let handle = self.0.create_iterator(upper_bound).await?;
        Ok(DriveIterator { drive: self.0.clone(), handle })
    }
}

/// An iterator of a KV drive.
pub struct DriveIterator {
    drive: KvDrive,
    handle: IteratorHandle,
}

/// Size of the reply buffer of a bulk read, in bytes: the maximum transfer of one command.
const REPLY_BYTES: u64 = 512 << 10;

impl DriveIterator {
    /// Returns the answer of a command. If the drive answers [`Status::AskAgain`], repeats Next.
    async fn answer(
        &self,
        first: Result<stacks::kvssd::Pair, Status>,
    ) -> Result<Option<Pair>, Status> {
        let mut answer = first;
        while answer == Err(Status::AskAgain) {
            answer = self.drive.next(self.handle).await;
        }
        match answer {
            Ok(pair) => Ok(Some(Pair { key: pair.key, value: pair.value })),
            Err(Status::EndOfRange) => Ok(None),
            Err(status) => Err(status),
        }
    }
}

impl KvIterator for DriveIterator {
    type Error = Status;

    async fn seek(&mut self, target: &[u8]) -> Result<Option<Pair>, Status> {
        let answer = self.drive.seek(self.handle, target).await;
        self.answer(answer).await
    }

    async fn next(&mut self) -> Result<Option<Pair>, Status> {
        let answer = self.drive.next(self.handle).await;
        self.answer(answer).await
    }

    async fn next_many(&mut self, count: usize) -> Result<Vec<Pair>, Status> {
        let mut pairs = Vec::with_capacity(count);
        while pairs.len() < count {
            let left = (count - pairs.len()) as u32;
            match self.drive.next_many(self.handle, left, REPLY_BYTES).await {
                Ok(batch) => {
                    let batch_pairs = batch.pairs.into_iter();
                    pairs.extend(batch_pairs.map(|p| Pair { key: p.key, value: p.value }));
                    if batch.is_last {
                        break;
                    }
                }
                Err(Status::AskAgain) => {}
                Err(Status::EndOfRange) => break,
                Err(status) => return Err(status),
            }
        }
        Ok(pairs)
    }

    async fn destroy(self) -> Result<(), Status> {
        self.drive.destroy_iterator(self.handle).await
    }
}
