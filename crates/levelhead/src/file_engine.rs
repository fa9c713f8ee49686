//! The engine on a store's files, with the operations that a store needs. In real time no processor
//! time is charged, and each write chooses its durability.

use std::ops::Deref;

use engine::sizing::LevelPlan;
use engine::{BatchOptions, BatchWrite, Engine, EngineError, LogSync, Value, WriteOptions};
use runtime::Nanos;
use volume::{BlockRange, OneOrMany};

use crate::device::Device;

/// The file of one directory, as a medium.
pub(crate) type Member = BlockRange<Device>;
/// The engine's medium: one file, or several with parity.
pub(crate) type Files = OneOrMany<Member>;

/// An engine on one file, or on several with parity.
#[derive(Clone)]
pub(crate) struct FileEngine(pub Engine<Files>);

impl Deref for FileEngine {
    type Target = Engine<Files>;

    fn deref(&self) -> &Engine<Files> {
        &self.0
    }
}

impl FileEngine {
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        Ok(self.0.get(key, Nanos::ZERO).await?.value)
    }

    pub(crate) async fn exists(&self, key: &[u8]) -> Result<bool, EngineError> {
        self.0.exists(key, Nanos::ZERO).await
    }

    pub(crate) async fn write(
        &self,
        key: &[u8],
        value: Option<Value>,
        sync: LogSync,
    ) -> Result<(), EngineError> {
        let options = WriteOptions { sync: Some(sync), ..WriteOptions::default() };
        match value {
            Some(value) => self.0.put(key, value, options, Nanos::ZERO).await?,
            None => self.0.delete(key, options, Nanos::ZERO).await?,
        };
        Ok(())
    }

    pub(crate) async fn write_batch(
        &self,
        batch: Vec<BatchWrite>,
        options: BatchOptions,
    ) -> Result<(), EngineError> {
        self.0.write_batch(batch, options, Nanos::ZERO).await
    }

    /// Makes everything durable and gives the log an unambiguous end. If the last group of a log is
    /// damaged, recovery cannot tell whether a power cut tore it. So one more group, the delete of
    /// a key that does not exist, follows the clients' last group.
    pub(crate) async fn close(&self, unused: &[u8]) -> Result<(), EngineError> {
        self.sync().await?;
        if self.stats().writes > 0 { self.write_nothing(unused).await } else { Ok(()) }
    }

    /// Writes a durable delete of a key that does not exist.
    pub(crate) async fn write_nothing(&self, unused: &[u8]) -> Result<(), EngineError> {
        match self.get(unused).await? {
            Some(_) => Ok(()),
            None => self.write(unused, None, LogSync::Each).await,
        }
    }

    /// Flushes the memtable and waits for background work.
    pub(crate) async fn settle(&self) {
        self.0.flush().await;
        self.0.settle().await;
    }

    /// Returns the memory of snapshots and their readers, in bytes.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_memory().total()
    }

    /// Returns the current level sizes, and the number of segments and entries of each level.
    pub(crate) fn levels(&self) -> (LevelPlan, Vec<(u64, u64)>) {
        (self.plan(), self.0.levels())
    }
}
