//! An LSM-tree or a hash table on a medium, with the methods that commands need of either.

use engine::sizing::LevelPlan;
use engine::{
    Accelerator, Cpu, Durability, Engine, EngineError, EngineStats, HashEngine, HashOptions,
    HashSetup, HashStats, LogSync, Medium, MemoryUse, NotAtRest, OpenError, Options, Planted,
    Setup, StoreId, Surroundings, WriteOptions,
};
use runtime::{Handle, Nanos, Runtime};

/// The kind of an index, with its options.
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
    /// Returns the options of the LSM-tree, if the index is one.
    pub fn lsm_mut(&mut self) -> Option<&mut Options> {
        match self {
            Self::Lsm(options) => Some(options),
            Self::Hash(_) => None,
        }
    }

    /// Returns the maximum size of a dump in bytes, for an index with `index` bytes of memory and
    /// objects of at most `longest` bytes.
    ///
    /// A memtable may exceed its limit by two objects. A write takes less than twice the bytes of
    /// its object in a dump, including the hash table's records of moved objects. Bucket pages take
    /// little more than their memory. Flushed data that exceed the index's memory stay in memory as
    /// segments, which are dumped completely.
    pub fn dump_bytes(&self, index: u64, longest: u64, payload_bytes: u32) -> u64 {
        let (frozen, bytes, index, flushed) = match self {
            Self::Lsm(options) => {
                let (frozen, bytes) = (options.frozen_memtables, options.memtable_bytes);
                // Caches are not dumped.
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
    /// Returns the acknowledgement of writes that do not specify it. If memory survives a power
    /// cut, it is as if each group were durable at once.
    pub fn log_sync(&self) -> LogSync {
        let (durability, sync) = self.journal();
        if durability == Durability::Log { sync } else { LogSync::Group }
    }

    /// Returns the mechanism by which writes survive a power cut.
    pub fn durability(&self) -> Durability {
        self.journal().0
    }

    /// Whether log and manifest may be on a medium of their own.
    pub fn takes_journal_apart(&self) -> bool {
        self.durability() == Durability::Log
    }

    /// Returns durability and acknowledgement. A hash table needs memory that survives.
    fn journal(&self) -> (Durability, LogSync) {
        match self {
            Self::Lsm(options) => (options.durability, options.log_sync),
            Self::Hash(_) => (Durability::Capacitors, LogSync::Group),
        }
    }

    /// Returns the options of an LSM-tree with another journal. A hash table is unchanged.
    #[must_use]
    pub fn with_journal(mut self, durability: Durability, log_sync: LogSync) -> Self {
        if let Self::Lsm(options) = &mut self {
            (options.durability, options.log_sync) = (durability, log_sync);
        }
        self
    }
}

/// The setup of an index besides its options.
pub struct IndexSetup<M> {
    /// Clock, tasks and random numbers.
    pub handle: Handle,
    /// The medium of its pages.
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
        Setup { handle, medium, options, surroundings, cpu, accelerator, planted, id }
    }

    fn hash(self, options: HashOptions) -> HashSetup<M> {
        let Self { handle, medium, surroundings, cpu, accelerator: _, planted, id } = self;
        HashSetup { handle, medium, options, surroundings, cpu, planted, id }
    }
}

/// An index on a medium. Every method is that of its engine. Clones are handles to the same index.
pub enum Index<M: Medium> {
    /// An LSM-tree.
    Lsm(Engine<M>),
    /// A hash table.
    Hash(HashEngine<M>),
}

/// Calls a method of the engine, whichever it is. Frequent commands use the macro directly, because
/// each call in between costs simulation time.
macro_rules! either {
    ($index:expr, $engine:ident => $call:expr) => {
        match $index {
            $crate::design::Index::Lsm($engine) => $call,
            $crate::design::Index::Hash($engine) => $call,
        }
    };
}
pub(crate) use either;

impl<M: Medium> Clone for Index<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Lsm(engine) => Self::Lsm(engine.clone()),
            Self::Hash(engine) => Self::Hash(engine.clone()),
        }
    }
}

/// Returns an error if a separate journal is given to an index that does not support it.
fn refuse_journal<M>(options: &IndexOptions, journal: Option<&M>) -> Result<(), OpenError> {
    let is_refused = journal.is_some() && !options.takes_journal_apart();
    if is_refused { Err(OpenError::NoJournalApart) } else { Ok(()) }
}

impl<M: Medium> Index<M> {
    /// Creates an index on an empty medium. Log and manifest are on the empty medium `journal`, if
    /// given: see [`Engine::create_with_journal`]. Background tasks start at once.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the index does not fit; [`OpenError::NoJournalApart`] if a journal
    /// is given without [`IndexOptions::takes_journal_apart`].
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

    /// Recovers the index from `dump` and the medium; see [`Engine::recover`].
    ///
    /// # Errors
    /// Returns [`OpenError`] if the index cannot be recovered.
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

    /// Returns all state of the index that is not on the medium, if it is at rest: see
    /// [`Engine::park`].
    ///
    /// # Errors
    /// Returns [`NotAtRest`] if it is not at rest.
    pub fn park(&self) -> Result<Vec<u8>, NotAtRest> {
        either!(self, engine => engine.park())
    }

    /// Restores an index in the state that [`Self::park`] returned.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the index cannot be restored.
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

    /// Opens the index on the medium from its log and manifest. `journal` has to be given if it was
    /// created with one.
    ///
    /// # Errors
    /// Returns an error as [`Self::create`] does, or if the index cannot be recovered.
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
            (IndexOptions::Hash(_), _) => {
                unreachable!("a drive with capacitors is recovered from its dump")
            }
        })
    }

    /// Returns the epoch of the manifest, which grows with each checkpoint and each recovery; 0
    /// without a manifest.
    pub fn epoch(&self) -> u32 {
        match self {
            Self::Lsm(engine) => engine.epoch(),
            Self::Hash(_) => 0,
        }
    }

    /// Makes the extents that were being filled available for further appends.
    ///
    /// # Errors
    /// Returns [`OpenError`] if an extent cannot be resumed.
    pub async fn resume(&self) -> Result<(), OpenError> {
        either!(self, engine => engine.resume().await)
    }

    /// Starts the background tasks of a recovered index.
    pub fn start(&self) {
        either!(self, engine => engine.start());
    }

    /// Returns the state that must survive a power cut in addition to durable pages.
    pub fn dump(&self) -> Vec<u8> {
        either!(self, engine => engine.dump())
    }

    /// Whether `key` has a value. `work` is processor time that is charged with the lookup.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the index cannot be read.
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        either!(self, engine => engine.exists(key, work).await)
    }

    /// Deletes `key`. Returns whether the condition in `options` held.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the tombstone cannot be written.
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

    /// Returns the maximum length of a value, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        either!(self, engine => engine.max_value_bytes())
    }

    /// Returns the counters.
    pub fn stats(&self) -> EngineStats {
        either!(self, engine => engine.stats())
    }

    /// Returns the memory in use.
    pub fn memory(&self) -> MemoryUse {
        either!(self, engine => engine.memory())
    }

    /// Describes the state of background work in one line, for the diagnosis of stalls.
    pub fn background(&self) -> String {
        either!(self, engine => engine.background())
    }

    /// Returns the maximum number of flash reads for a Get of a value of `value_len` bytes; `None`
    /// for a hash table, which has no bound.
    pub fn read_bound(&self, key_len: usize, value_len: u32) -> Option<u32> {
        match self {
            Self::Lsm(engine) => Some(engine.read_bound(key_len, value_len)),
            Self::Hash(_) => None,
        }
    }

    /// Starts tracking [`Self::read_bound`].
    pub fn watch_read_bound(&self) {
        if let Self::Lsm(engine) = self {
            engine.watch_read_bound();
        }
    }

    /// Returns the minimum and the maximum of [`Self::read_bound`] since tracking started.
    pub fn read_bounds(&self, key_len: usize, value_len: u32) -> Option<(u32, u32)> {
        self.lsm().map(|engine| engine.read_bounds(key_len, value_len))
    }

    /// Returns the current level sizes, and the segments and entries of each level from L1 on;
    /// `None` without levels.
    pub fn levels(&self) -> Option<(LevelPlan, Vec<(u64, u64)>)> {
        self.lsm().map(|engine| (engine.plan(), engine.levels()))
    }

    /// Returns the counters of the hash table, if the index is one.
    pub fn hash_stats(&self) -> Option<HashStats> {
        match self {
            Self::Lsm(_) => None,
            Self::Hash(engine) => Some(engine.hash_stats()),
        }
    }

    /// Returns the LSM-tree, if the index is one: only an LSM-tree has a key order.
    pub fn lsm(&self) -> Option<&Engine<M>> {
        match self {
            Self::Lsm(engine) => Some(engine),
            Self::Hash(_) => None,
        }
    }
}
