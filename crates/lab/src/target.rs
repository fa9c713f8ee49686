//! What designs run on as the workloads see it, and as the results do.

use ::host::GetTimes;
use design::Index;
use engine::{Medium, Value};
use flash::FlashStats;
use kvssd::{IteratorHandle, KvDrive, RawFlash, Status, StoreMode};
use limiter::LimiterStats;
use ssd::SetStats;
use workload::{KvIterator, KvTarget, Pair};

mod host;
mod windowing;

pub(crate) use host::{HostMedium, HostTarget};
pub(crate) use windowing::{VolumeWindows, Windowing};

/// What a bench runs on and asks for counters.
pub(crate) trait Subject: KvTarget {
    type Medium: Medium;

    /// The index.
    fn index(&self) -> &Index<Self::Medium>;

    /// Counters of the drive's flash.
    fn flash_stats(&self) -> FlashStats;

    /// Counters of a block drive's firmware, all sets together.
    fn block_stats(&self) -> Option<SetStats>;

    /// What limits on background I/O did, on a host.
    fn limiter_stats(&self) -> Option<LimiterStats>;

    /// Where the time of a host's Gets went.
    fn get_times(&self) -> Option<GetTimes>;

    /// The windows of a host's volume, if it has one.
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

/// Drives a [`KvDrive`]; the host's buffer takes any value.
#[derive(Clone)]
pub(crate) struct DriveTarget(pub KvDrive);

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

/// An iterator of a drive.
pub(crate) struct DriveIterator {
    drive: KvDrive,
    handle: IteratorHandle,
}

/// The reply buffer of a bulk read, in bytes: what one command of the drive may transfer.
const REPLY_BYTES: u64 = 512 << 10;

impl DriveIterator {
    /// A command's answer; as long as it says to ask again, that of the Next that follows.
    async fn answer(&self, first: Result<kvssd::Pair, Status>) -> Result<Option<Pair>, Status> {
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
