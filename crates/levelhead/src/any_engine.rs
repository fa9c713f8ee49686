//! The engine, whatever it is on: its calls, each written once.

use engine::sizing::LevelPlan;
use engine::{Engine, Look, SnapshotInfo};
use pages::{
    BatchOptions, BatchWrite, EngineError, EngineStats, Lack, LogSync, MemoryUse, Value,
    WriteOptions,
};
use runtime::{Nanos, Rng};
use volume::{BlockRange, Volume};

use crate::device::Device;

pub(crate) type Plain = BlockRange<Device>;

/// An engine on one file, or on several with parity.
#[derive(Clone)]
pub(crate) enum AnyEngine {
    Plain(Engine<Plain>),
    Parity(Engine<Volume<Plain>>),
}

macro_rules! on_either {
    ($self:expr, $engine:ident => $call:expr) => {
        match $self {
            AnyEngine::Plain($engine) => $call,
            AnyEngine::Parity($engine) => $call,
        }
    };
}

/// What comes of a future of either. Those of volumes are four times as large, and in a box, so that calls of a store on one
/// file do not make room for them.
macro_rules! of_either {
    ($self:expr, $engine:ident => $future:expr) => {
        match $self {
            AnyEngine::Plain($engine) => $future.await,
            AnyEngine::Parity($engine) => Box::pin($future).await,
        }
    };
}

impl AnyEngine {
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        Ok(of_either!(self, engine => engine.get(key, Nanos::ZERO))?.value)
    }

    pub(crate) fn look(&self, key: &[u8]) -> Result<Look, EngineError> {
        on_either!(self, engine => engine.look(key))
    }

    pub(crate) fn max_value_bytes(&self) -> u32 {
        on_either!(self, engine => engine.max_value_bytes())
    }

    pub(crate) async fn exists(&self, key: &[u8]) -> Result<bool, EngineError> {
        of_either!(self, engine => engine.exists(key, Nanos::ZERO))
    }

    pub(crate) async fn draw(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Option<Box<[u8]>>, EngineError> {
        on_either!(self, engine => Box::pin(engine.draw(from, to, rng)).await)
    }

    pub(crate) async fn write(
        &self,
        key: &[u8],
        value: Option<Value>,
        sync: LogSync,
    ) -> Result<(), EngineError> {
        let options = WriteOptions { sync: Some(sync), ..WriteOptions::default() };
        match value {
            Some(value) => {
                of_either!(self, engine => engine.put(key, value, options, Nanos::ZERO))?
            }
            None => of_either!(self, engine => engine.delete(key, options, Nanos::ZERO))?,
        };
        Ok(())
    }

    pub(crate) async fn write_batch(
        &self,
        batch: Vec<BatchWrite>,
        options: BatchOptions,
    ) -> Result<(), EngineError> {
        on_either!(self, engine => engine.write_batch(batch, options, Nanos::ZERO).await)
    }

    pub(crate) async fn begun(&self) -> Result<(), EngineError> {
        on_either!(self, engine => engine.begun().await)
    }

    pub(crate) async fn sync(&self) -> Result<(), EngineError> {
        on_either!(self, engine => engine.sync().await)
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

    pub(crate) async fn settle(&self) {
        on_either!(self, engine => {
            engine.flush().await;
            engine.settle().await;
        });
    }

    pub(crate) async fn compact(&self) -> Result<(), EngineError> {
        on_either!(self, engine => Box::pin(engine.compact()).await)
    }

    /// Bytes of extents that hold anything.
    pub(crate) fn used_bytes(&self) -> u64 {
        on_either!(self, engine => engine.used_bytes())
    }

    pub(crate) fn stats(&self) -> EngineStats {
        on_either!(self, engine => engine.stats())
    }

    pub(crate) fn memory(&self) -> MemoryUse {
        on_either!(self, engine => engine.memory())
    }

    /// See [`Engine::tell_of_lack`].
    pub(crate) fn tell_of_lack(&self, lack: Lack) {
        on_either!(self, engine => engine.tell_of_lack(lack));
    }

    /// See [`Engine::is_healthy`].
    pub(crate) fn is_healthy(&self) -> bool {
        on_either!(self, engine => engine.is_healthy())
    }

    /// Instants that somebody holds.
    pub(crate) fn snapshots(&self) -> Vec<SnapshotInfo> {
        on_either!(self, engine => engine.snapshots())
    }

    /// Bytes of an extent.
    pub(crate) fn extent_bytes(&self) -> u64 {
        on_either!(self, engine => engine.extent_bytes())
    }

    /// Bytes of the extents that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        on_either!(self, engine => engine.free_bytes())
    }

    /// Memory that they take, and what reads them.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        on_either!(self, engine => engine.snapshot_memory().total())
    }

    /// The sizes of levels in force, and segments and entries of each.
    pub(crate) fn levels(&self) -> (LevelPlan, Vec<(u64, u64)>) {
        on_either!(self, engine => (engine.plan(), engine.levels()))
    }
}
