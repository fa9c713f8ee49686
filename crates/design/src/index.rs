//! An LSM-tree or a hash table on some medium, with what commands need of either.

use engine::{Accelerator, Engine, Options, Setup, sizing::LevelPlan};
use hashkv::{HashEngine, HashOptions, HashSetup, HashStats};
use pages::{
    Cpu, Durability, EngineError, EngineStats, LogSync, Medium, MemoryUse, NotAtRest, OpenError,
    StoreId, Surroundings, WriteOptions,
};
use runtime::{Handle, Nanos, Runtime};

use crate::Planted;

/// Which index there is, and its options.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a design is loaded once")]
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
    pub fn dump_bytes(&self, index: u64, longest: u64, payload_bytes: u32) -> u64 {
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

    /// Whether log and manifest may have a medium of their own.
    pub fn takes_journal_apart(&self) -> bool {
        match self {
            Self::Lsm(options) => options.durability == Durability::Log,
            Self::Hash(_) => false,
        }
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
pub struct IndexSetup<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// Where pages go.
    pub medium: M,
    /// Memory and expected sizes.
    pub surroundings: Surroundings,
    /// The processor.
    pub cpu: Cpu,
    /// A merge accelerator, if there is one.
    pub accelerator: Option<Accelerator>,
    /// Deliberate bugs, for tests of the tests.
    pub planted: Planted,
    /// The identity of a new store.
    pub id: StoreId,
}

impl<M> IndexSetup<M> {
    fn lsm(self, options: Options) -> Setup<M> {
        let Self { handle, medium, surroundings, cpu, accelerator, planted, id } = self;
        let planted = planted.of_lsm();
        Setup { handle, medium, options, surroundings, cpu, accelerator, planted, id }
    }

    fn hash(self, options: HashOptions) -> HashSetup<M> {
        let Self { handle, medium, surroundings, cpu, accelerator: _, planted, id } = self;
        let planted = planted.of_hash();
        HashSetup { handle, medium, options, surroundings, cpu, planted, id }
    }
}

/// An index on a medium. Every method is that of the engine in it. Clones are handles to the same.
pub enum Index<M: Medium> {
    /// An LSM-tree.
    Lsm(Engine<M>),
    /// A hash table.
    Hash(HashEngine<M>),
}

/// Calls a method of whichever engine there is. Commands that come often do it themselves: each step
/// between them and the engine costs a simulation something.
#[macro_export]
macro_rules! either {
    ($index:expr, $engine:ident => $call:expr) => {
        match $index {
            $crate::Index::Lsm($engine) => $call,
            $crate::Index::Hash($engine) => $call,
        }
    };
}

impl<M: Medium> Clone for Index<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Lsm(engine) => Self::Lsm(engine.clone()),
            Self::Hash(engine) => Self::Hash(engine.clone()),
        }
    }
}

/// A journal apart is for those that take one.
fn refuse_journal<M>(options: &IndexOptions, journal: Option<&M>) -> Result<(), OpenError> {
    let is_refused = journal.is_some() && !options.takes_journal_apart();
    if is_refused { Err(OpenError::NoJournalApart) } else { Ok(()) }
}

impl<M: Medium> Index<M> {
    /// A fresh index on an empty medium, with log and manifest on the empty medium `journal` if there is one: see
    /// [`Engine::create_with_journal`]. Background tasks start at once.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::NoJournalApart`] unless [`IndexOptions::takes_journal_apart`].
    pub fn create(
        options: &IndexOptions,
        setup: IndexSetup<M>,
        journal: Option<M>,
    ) -> Result<Self, OpenError> {
        refuse_journal(options, journal.as_ref())?;
        Ok(match (options.clone(), journal) {
            (IndexOptions::Lsm(options), None) => Self::Lsm(Engine::create(setup.lsm(options))?),
            (IndexOptions::Lsm(options), Some(journal)) => {
                Self::Lsm(Engine::create_with_journal(setup.lsm(options), journal)?)
            }
            (IndexOptions::Hash(options), _) => {
                Self::Hash(HashEngine::create(setup.hash(options))?)
            }
        })
    }

    /// The index that `dump` and the medium hold; see [`Engine::recover`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn recover(
        options: &IndexOptions,
        setup: IndexSetup<M>,
        dump: &[u8],
    ) -> Result<Self, OpenError> {
        Ok(match options.clone() {
            IndexOptions::Lsm(options) => Self::Lsm(Engine::recover(setup.lsm(options), dump)?),
            IndexOptions::Hash(options) => {
                Self::Hash(HashEngine::recover(setup.hash(options), dump)?)
            }
        })
    }

    /// Everything of it that is not on the medium, if it is at rest: see [`Engine::park`].
    ///
    /// # Errors
    /// [`NotAtRest`].
    pub fn park(&self) -> Result<Vec<u8>, NotAtRest> {
        either!(self, engine => engine.park())
    }

    /// The index that was put down by [`Self::park`], as it was then.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn unpark(
        options: &IndexOptions,
        setup: IndexSetup<M>,
        bytes: &[u8],
        runtime: &Runtime,
    ) -> Result<Self, OpenError> {
        Ok(match options.clone() {
            IndexOptions::Lsm(options) => {
                Self::Lsm(Engine::unpark(setup.lsm(options), bytes, runtime)?)
            }
            IndexOptions::Hash(options) => {
                Self::Hash(HashEngine::unpark(setup.hash(options), bytes, runtime)?)
            }
        })
    }

    /// The index that the medium holds, by its log and manifest, which are on `journal` if it was made so.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn open(
        options: &IndexOptions,
        setup: IndexSetup<M>,
        journal: Option<M>,
    ) -> Result<Self, OpenError> {
        refuse_journal(options, journal.as_ref())?;
        Ok(match (options.clone(), journal) {
            (IndexOptions::Lsm(options), None) => {
                Self::Lsm(Engine::open(setup.lsm(options)).await?)
            }
            (IndexOptions::Lsm(options), Some(journal)) => {
                Self::Lsm(Engine::open_with_journal(setup.lsm(options), journal).await?)
            }
            (IndexOptions::Hash(options), _) => {
                Self::Hash(HashEngine::open(setup.hash(options)).await?)
            }
        })
    }

    /// The epoch of its manifest, which grows with each checkpoint and each recovery; 0 if there is none.
    pub fn epoch(&self) -> u32 {
        either!(self, engine => engine.epoch())
    }

    /// Makes the extents that were being filled ready to be filled further.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn resume(&self) -> Result<(), OpenError> {
        either!(self, engine => engine.resume().await)
    }

    /// Starts the background tasks of an index that was recovered.
    pub fn start(&self) {
        either!(self, engine => engine.start());
    }

    /// The state that must survive a power cut besides durable pages.
    pub fn dump(&self) -> Vec<u8> {
        either!(self, engine => engine.dump())
    }

    /// Whether `key` has a value. `work` is processor time to be charged with the look-up.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        either!(self, engine => engine.exists(key, work).await)
    }

    /// Removes `key`; whether the condition in `options` held.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn delete(
        &self,
        key: &[u8],
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        either!(self, engine => engine.delete(key, options, work).await)
    }

    /// Waits until no background work is due.
    pub async fn settle(&self) {
        either!(self, engine => engine.settle().await);
    }

    /// The longest value, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        either!(self, engine => engine.max_value_bytes())
    }

    /// Counters.
    pub fn stats(&self) -> EngineStats {
        either!(self, engine => engine.stats())
    }

    /// Memory in use.
    pub fn memory(&self) -> MemoryUse {
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

    /// Begins to watch [`Self::read_bound`].
    pub fn watch_read_bound(&self) {
        if let Self::Lsm(engine) = self {
            engine.watch_read_bound();
        }
    }

    /// The least and the most that [`Self::read_bound`] was since it is watched.
    pub fn read_bounds(&self, key_len: usize, value_len: u32) -> Option<(u32, u32)> {
        self.lsm().map(|engine| engine.read_bounds(key_len, value_len))
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
    pub fn lsm(&self) -> Option<&Engine<M>> {
        match self {
            Self::Lsm(engine) => Some(engine),
            Self::Hash(_) => None,
        }
    }
}
