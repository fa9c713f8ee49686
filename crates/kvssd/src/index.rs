//! The index of a drive: an LSM-tree or a hash table, with what commands need of either.

use engine::{Accelerator, Engine, EngineIterator, Options, Setup, sizing::LevelPlan};
use hashkv::{HashEngine, HashOptions, HashSetup, HashStats};
use pages::{
    Cpu, Durability, EngineError, EngineStats, LogSync, MemoryUse, OpenError, StoreId,
    Surroundings, WriteOptions,
};
use runtime::{Handle, Nanos};

use crate::{Planted, RawFlash, Status};

/// Which index a drive has, and its options.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexOptions {
    /// An LSM-tree.
    Lsm(Options),
    /// A hash table.
    Hash(HashOptions),
}

impl From<Options> for IndexOptions {
    fn from(options: Options) -> Self {
        Self::Lsm(options)
    }
}

impl From<HashOptions> for IndexOptions {
    fn from(options: HashOptions) -> Self {
        Self::Hash(options)
    }
}

impl IndexOptions {
    /// The options of the LSM-tree, if it is one.
    pub fn lsm_mut(&mut self) -> Option<&mut Options> {
        match self {
            Self::Lsm(options) => Some(options),
            Self::Hash(_) => None,
        }
    }

    /// Most bytes of a dump, where the index has `index` bytes of memory and an object is `longest`
    /// bytes at most. A memtable may hold two objects more than its limit; a write is dumped in less
    /// than twice the bytes of its object, with what the hash table notes about moved ones. Bucket pages
    /// take little more than their memory. What is flushed beyond the index's memory waits there in
    /// segments instead, which are in the dump whole.
    pub(crate) fn dump_bytes(&self, index: u64, longest: u64, payload_bytes: u32) -> u64 {
        let (frozen, bytes, index, flushed) = match self {
            Self::Lsm(options) => {
                let (frozen, bytes) = (options.frozen_memtables, options.memtable_bytes);
                // Caches are not saved.
                let index = index.saturating_sub(options.cache_bytes());
                let index = engine::dumped_bytes_of_lists(index, options.prefix_bytes);
                (frozen, bytes, index, engine::dumped_bytes_of_flush(options, payload_bytes))
            }
            Self::Hash(options) => (options.frozen_buffers, options.buffer_bytes, index * 5 / 4, 0),
        };
        index + (frozen as u64 + 1) * flushed.max(2 * (bytes + longest))
    }
}

impl IndexOptions {
    /// How writes are acknowledged that do not say it: where memory survives, as if their group were
    /// durable at once.
    pub fn log_sync(&self) -> LogSync {
        let (durability, sync) = self.journal();
        if durability == Durability::Log { sync } else { LogSync::Group }
    }

    /// What makes writes outlive a power cut.
    pub fn durability(&self) -> Durability {
        self.journal().0
    }

    fn journal(&self) -> (Durability, LogSync) {
        match self {
            Self::Lsm(options) => (options.durability, options.log_sync),
            Self::Hash(options) => (options.durability, options.log_sync),
        }
    }

    /// The same with another journal.
    #[must_use]
    pub fn with_journal(mut self, durability: Durability, log_sync: LogSync) -> Self {
        match &mut self {
            Self::Lsm(options) => (options.durability, options.log_sync) = (durability, log_sync),
            Self::Hash(options) => (options.durability, options.log_sync) = (durability, log_sync),
        }
        self
    }
}

/// What an index is opened with, besides its options.
pub(crate) struct IndexSetup {
    pub handle: Handle,
    pub medium: RawFlash,
    pub surroundings: Surroundings,
    pub cpu: Cpu,
    pub accelerator: Option<Accelerator>,
    pub planted: Planted,
    pub id: StoreId,
}

impl IndexSetup {
    fn lsm(self, options: Options) -> Setup<RawFlash> {
        let Self { handle, medium, surroundings, cpu, accelerator, planted, id } = self;
        let planted = planted.of_lsm();
        Setup { handle, medium, options, surroundings, cpu, accelerator, planted, id }
    }

    fn hash(self, options: HashOptions) -> HashSetup<RawFlash> {
        let Self { handle, medium, surroundings, cpu, accelerator: _, planted, id } = self;
        let planted = planted.of_hash();
        HashSetup { handle, medium, options, surroundings, cpu, planted, id }
    }
}

/// The index of a drive. Every method is that of the engine in it.
#[derive(Clone)]
pub enum Index {
    /// An LSM-tree.
    Lsm(Engine<RawFlash>),
    /// A hash table.
    Hash(HashEngine<RawFlash>),
}

/// Calls a method of whichever engine there is. Commands that come often do it themselves: each step
/// between them and the engine costs a simulation something.
macro_rules! either {
    ($index:expr, $engine:ident => $call:expr) => {
        match $index {
            Index::Lsm($engine) => $call,
            Index::Hash($engine) => $call,
        }
    };
}
pub(crate) use either;

impl Index {
    pub(crate) fn create(options: &IndexOptions, setup: IndexSetup) -> Result<Self, OpenError> {
        Ok(match options.clone() {
            IndexOptions::Lsm(options) => Self::Lsm(Engine::create(setup.lsm(options))?),
            IndexOptions::Hash(options) => Self::Hash(HashEngine::create(setup.hash(options))?),
        })
    }

    pub(crate) fn recover(
        options: &IndexOptions,
        setup: IndexSetup,
        dump: &[u8],
    ) -> Result<Self, OpenError> {
        Ok(match options.clone() {
            IndexOptions::Lsm(options) => Self::Lsm(Engine::recover(setup.lsm(options), dump)?),
            IndexOptions::Hash(options) => {
                Self::Hash(HashEngine::recover(setup.hash(options), dump)?)
            }
        })
    }

    /// The index that the flash holds, for drives without capacitors.
    pub(crate) async fn open(options: &IndexOptions, setup: IndexSetup) -> Result<Self, OpenError> {
        match options.clone() {
            IndexOptions::Lsm(options) => Ok(Self::Lsm(Engine::open(setup.lsm(options)).await?)),
            IndexOptions::Hash(options) => {
                Ok(Self::Hash(HashEngine::open(setup.hash(options)).await?))
            }
        }
    }

    /// How many checkpoints of its manifest there have been; 0 where there is none.
    pub(crate) fn checkpoints(&self) -> u32 {
        either!(self, engine => engine.checkpoints())
    }

    pub(crate) async fn resume(&self) -> Result<(), OpenError> {
        either!(self, engine => engine.resume().await)
    }

    pub(crate) fn start(&self) {
        either!(self, engine => engine.start());
    }

    pub(crate) fn dump(&self) -> Vec<u8> {
        either!(self, engine => engine.dump())
    }

    pub(crate) async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        either!(self, engine => engine.exists(key, work).await)
    }

    pub(crate) async fn delete(
        &self,
        key: &[u8],
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        either!(self, engine => engine.delete(key, options, work).await)
    }

    /// An iterator on a snapshot of now; only an LSM-tree has an order of keys.
    pub(crate) fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<EngineIterator<RawFlash>, Status> {
        let engine = self.lsm().ok_or(Status::InvalidOpcode)?;
        Ok(engine.create_iterator(upper_bound)?)
    }

    pub(crate) async fn settle(&self) {
        either!(self, engine => engine.settle().await);
    }

    pub(crate) fn max_value_bytes(&self) -> u32 {
        either!(self, engine => engine.max_value_bytes())
    }

    pub(crate) fn stats(&self) -> EngineStats {
        either!(self, engine => engine.stats())
    }

    pub(crate) fn memory(&self) -> MemoryUse {
        either!(self, engine => engine.memory())
    }

    /// Where background work stands, in a line for a person who wonders why nothing moves.
    pub fn background(&self) -> String {
        either!(self, engine => engine.background())
    }

    /// The most flash reads that the Get of a value of `value_len` bytes can take; a hash table
    /// has no such bound.
    pub fn read_bound(&self, key_len: usize, value_len: u32) -> Option<u32> {
        match self {
            Self::Lsm(engine) => Some(engine.read_bound(key_len, value_len)),
            Self::Hash(_) => None,
        }
    }

    /// The level sizes in force and the segments and entries of each level, L1 first, if there are
    /// levels.
    pub fn levels(&self) -> Option<(LevelPlan, Vec<(u64, u64)>)> {
        self.lsm().map(|engine| (engine.plan(), engine.levels()))
    }

    /// Counters of the hash table, if it is one.
    pub fn hash_stats(&self) -> Option<HashStats> {
        match self {
            Self::Lsm(_) => None,
            Self::Hash(engine) => Some(engine.hash_stats()),
        }
    }

    /// The LSM-tree, if it is one: only it has an order of keys.
    pub fn lsm(&self) -> Option<&Engine<RawFlash>> {
        match self {
            Self::Lsm(engine) => Some(engine),
            Self::Hash(_) => None,
        }
    }
}
