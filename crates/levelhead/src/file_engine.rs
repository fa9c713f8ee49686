//! The engine on a store's files: its calls as a store makes them. In real time nothing is charged, and a write says how durable
//! it is to be.

use std::ops::Deref;

use engine::Engine;
use engine::sizing::LevelPlan;
use pages::{BatchOptions, BatchWrite, EngineError, LogSync, Value, WriteOptions};
use runtime::Nanos;
use volume::{BlockRange, OneOrMany};

use crate::device::Device;

/// The file of one directory, as a medium.
pub(crate) type Member = BlockRange<Device>;
/// What the engine is on: one file, or several with parity.
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

    /// Makes everything durable, and the end of the log plain: of a log's last group, if it is damaged, nobody can say whether a
    /// power cut tore it. So another one follows what clients wrote, which takes a key away that there is not.
    pub(crate) async fn close(&self, unused: &[u8]) -> Result<(), EngineError> {
        self.sync().await?;
        if self.stats().writes > 0 { self.write_nothing(unused).await } else { Ok(()) }
    }

    /// Writes a durable delete of a key that there is not.
    pub(crate) async fn write_nothing(&self, unused: &[u8]) -> Result<(), EngineError> {
        match self.get(unused).await? {
            Some(_) => Ok(()),
            None => self.write(unused, None, LogSync::Each).await,
        }
    }

    /// Flushes the memtable, and waits for background work.
    pub(crate) async fn settle(&self) {
        self.0.flush().await;
        self.0.settle().await;
    }

    /// Memory that snapshots take, and what reads them, in bytes.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_memory().total()
    }

    /// The sizes of levels in force, and segments and entries of each.
    pub(crate) fn levels(&self) -> (LevelPlan, Vec<(u64, u64)>) {
        (self.plan(), self.0.levels())
    }
}
