//! The drive: commands in, statuses out.
//!
//! A command waits for a queue slot, crosses the host link with its data, occupies a firmware core
//! for as long as it costs, goes through the engine, and crosses the link back. Cost of a command
//! in simulation: two timers, and what the engine and the flash add.

use std::fmt;
use std::rc::Rc;

use firmware::{Link, Reserve};
use flash::{Flash, FlashStats, NandArray};
use pages::{
    Condition, Cpu, Durability, EngineStats, LogSync, MemoryUse, OpenError, StoreId, Surroundings,
    Value, WriteOptions,
};
use runtime::{Cores, Handle, Nanos, Semaphore};

use crate::index::{Index, IndexOptions, IndexSetup};
use crate::iterators::IteratorTable;
use crate::power::RecoverError;
use crate::raw_flash::RawFlash;
use crate::{DeviceProfile, Planted, Status};

/// How long keys may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyFormat {
    /// 1 to 255 bytes, as in SNIA's KV API.
    #[default]
    Snia,
    /// 1 to 16 bytes, as fits in an NVMe command.
    Nvme,
}

impl KeyFormat {
    fn max_bytes(self) -> usize {
        match self {
            Self::Snia => pages::MAX_KEY_BYTES,
            Self::Nvme => 16,
        }
    }
}

/// What a drive is set up for, besides its hardware.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// The index, and its options.
    pub engine: IndexOptions,
    /// How long keys may be.
    pub key_format: KeyFormat,
    /// Key length that the index is sized for, in bytes.
    pub expected_key_bytes: u32,
    /// Value length that the index is sized for, in bytes.
    pub expected_value_bytes: u32,
    /// Iterators that may be open at a time.
    pub iterators: u32,
    /// Whether deleting a missing key is an error (NVMe feature "key value configuration").
    pub delete_must_exist: bool,
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
}

impl DriveOptions {
    /// `engine` with the sizes of the paper's workload and the defaults of the command set.
    pub fn new(engine: impl Into<IndexOptions>) -> Self {
        Self {
            engine: engine.into(),
            key_format: KeyFormat::Snia,
            expected_key_bytes: 32,
            expected_value_bytes: 1024,
            iterators: 16,
            delete_must_exist: false,
            planted: Planted::default(),
        }
    }
}

/// When a Store goes ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoreMode {
    /// Whether the key exists or not.
    #[default]
    Upsert,
    /// Only if the key exists.
    MustExist,
    /// Only if it does not.
    MustNotExist,
}

/// How a Store is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOptions {
    /// When it goes ahead.
    pub mode: StoreMode,
    /// When it is acknowledged, if not as the design has it; without meaning in a drive with
    /// capacitors.
    pub sync: Option<LogSync>,
}

impl From<StoreMode> for StoreOptions {
    fn from(mode: StoreMode) -> Self {
        Self { mode, sync: None }
    }
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrieved {
    /// The value, in full; the host sees the first bytes that its buffer holds.
    pub value: Value,
    /// Flash reads it took.
    pub flash_reads: u32,
}

/// A key-value drive. Clones are handles to the same drive.
#[derive(Clone)]
pub struct KvDrive {
    inner: Rc<Inner>,
}

pub(crate) struct Inner {
    pub handle: Handle,
    pub engine: Index,
    pub flash: Flash,
    pub reserve: Reserve,
    /// Epoch of the next dump.
    pub epoch: u64,
    pub iterators: IteratorTable,
    pub options: DriveOptions,
    cores: Rc<Cores>,
    pub slots: Semaphore,
    link: Link,
    pub command: Nanos,
    /// What a command takes in the controller besides, occupying nobody.
    pipeline: Nanos,
    max_key_bytes: usize,
}

/// Why a design cannot be set up on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// The dumps of the drive's memory would leave it almost no superblocks.
    TooSmall {
        /// Superblocks of the drive.
        superblocks: u32,
        /// Those that dumps take.
        reserved: u32,
    },
    /// The engine does not fit.
    Engine(OpenError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { superblocks, reserved } => write!(
                f,
                "the drive is too small for its memory: when power fails, memtables and index are \
                 written to flash that is kept free for them, {reserved} superblocks (an erase block \
                 of every die), and at least {MIN_SUPERBLOCKS} more are needed, but there are \
                 {superblocks}; give it more flash (blocks_per_plane), less memory (index_bytes) or \
                 smaller memtables (memtable_bytes)"
            ),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<OpenError> for SetupError {
    fn from(error: OpenError) -> Self {
        Self::Engine(error)
    }
}

/// Superblocks that clients never fill: those that flush, compaction and garbage collection leave free
/// for each other, and what memtables take (docs/decisions/0010).
const SPARE_SUPERBLOCKS: u32 = 6;

/// Superblocks that an engine needs at least.
const MIN_SUPERBLOCKS: u32 = 8;

/// Everything that is made before the engine.
pub(crate) struct Parts {
    pub handle: Handle,
    pub flash: Flash,
    pub reserve: Reserve,
    pub medium: RawFlash,
    pub cores: Rc<Cores>,
}

impl Parts {
    pub(crate) fn new(
        handle: Handle,
        profile: &DeviceProfile,
        options: &DriveOptions,
        flash: Flash,
    ) -> Result<Self, SetupError> {
        let geometry = &profile.flash.geometry;
        let reserve = Reserve::new(geometry, superblocks_for_dump(profile, &options.engine));
        let (superblocks, reserved) = (geometry.blocks_per_die(), reserve.superblocks());
        if reserved + MIN_SUPERBLOCKS > superblocks {
            return Err(SetupError::TooSmall { superblocks, reserved });
        }
        let medium = RawFlash::new(flash.clone(), reserve.superblocks());
        let controller = &profile.controller;
        let quantum = Nanos::from_micros_f64(controller.quantum_us);
        let cores = Rc::new(Cores::new(handle.clone(), controller.cores, quantum));
        Ok(Self { handle, flash, reserve, medium, cores })
    }

    pub(crate) fn setup(&self, profile: &DeviceProfile, options: &DriveOptions) -> IndexSetup {
        IndexSetup {
            handle: self.handle.clone(),
            medium: self.medium.clone(),
            surroundings: Surroundings {
                index_dram_bytes: profile.dram.index_bytes,
                iterator_dram_bytes: profile.dram.iterator_bytes,
                expected_key_bytes: options.expected_key_bytes,
                expected_value_bytes: options.expected_value_bytes,
            },
            cpu: Cpu { cores: Rc::clone(&self.cores), costs: profile.controller.costs.clone() },
            accelerator: profile.accelerator.clone(),
            planted: options.planted,
            id: StoreId(self.handle.rng("store identity").next_u64()),
        }
    }
}

/// Superblocks for one dump. Each superblock has its counters in it, and a bit for each page.
fn superblocks_for_dump(profile: &DeviceProfile, index: &IndexOptions) -> u32 {
    if index.durability() == Durability::Log {
        return 0;
    }
    let geometry = &profile.flash.geometry;
    let pages = u64::from(geometry.dies()) * u64::from(geometry.pages_per_die_block());
    let extents = u64::from(geometry.blocks_per_die()) * (48 + pages.div_ceil(8));
    let object = u64::from(profile.max_value_bytes()) + pages::MAX_KEY_BYTES as u64 + 32;
    let bytes = index.dump_bytes(profile.dram.index_bytes, object) + extents;
    Reserve::superblocks_for(geometry, bytes)
}

impl DeviceProfile {
    /// Flash that an index has for pairs and for itself, in bytes: all but what is kept free for
    /// saving memory when power fails, and for background work.
    pub fn usable_bytes(&self, index: &IndexOptions) -> u64 {
        let geometry = &self.flash.geometry;
        let reserved = 2 * superblocks_for_dump(self, index) + SPARE_SUPERBLOCKS;
        let usable = geometry.blocks_per_die().saturating_sub(reserved);
        geometry.capacity_bytes() / u64::from(geometry.blocks_per_die()) * u64::from(usable)
    }

    /// The longest value that a drive takes, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        pages::max_value_bytes(&crate::raw_flash::shape(&self.flash.geometry, 0))
    }
}

impl KvDrive {
    /// A drive fresh from the factory, ready for commands.
    ///
    /// # Errors
    /// [`SetupError`]: the design does not fit on the drive.
    pub fn format(
        handle: &Handle,
        profile: &DeviceProfile,
        options: DriveOptions,
    ) -> Result<Self, SetupError> {
        let array = NandArray::new(&profile.flash.geometry);
        let flash = Flash::new(handle.clone(), &profile.flash, array);
        let parts = Parts::new(handle.clone(), profile, &options, flash)?;
        let engine = Index::create(&options.engine, parts.setup(profile, &options))?;
        Ok(Self::assemble(parts, profile, options, engine, 1))
    }

    /// Powers up a drive that lost power, and returns it when it takes commands. A power cut
    /// before that is one of `flash` alone: the dump that was there still holds.
    ///
    /// # Errors
    /// [`RecoverError`]: the dump is missing or damaged.
    pub async fn recover(
        handle: &Handle,
        profile: &DeviceProfile,
        options: DriveOptions,
        flash: Flash,
    ) -> Result<Self, RecoverError> {
        let parts = Parts::new(handle.clone(), profile, &options, flash)?;
        let (engine, epoch) = crate::power::recover(&parts, profile, &options).await?;
        Ok(Self::assemble(parts, profile, options, engine, epoch))
    }

    fn assemble(
        parts: Parts,
        profile: &DeviceProfile,
        options: DriveOptions,
        engine: Index,
        epoch: u64,
    ) -> Self {
        let Parts { handle, flash, reserve, medium: _, cores } = parts;
        let us = Nanos::from_micros_f64;
        let controller = &profile.controller;
        let inner = Inner {
            iterators: IteratorTable::new(options.iterators, epoch),
            engine,
            flash,
            reserve,
            epoch,
            cores,
            slots: Semaphore::new(controller.queue_depth),
            link: Link::new(&handle, &profile.host),
            command: us(controller.command_us),
            pipeline: us(controller.pipeline_us),
            max_key_bytes: options.key_format.max_bytes(),
            options,
            handle,
        };
        Self { inner: Rc::new(inner) }
    }

    /// Store: puts `value` under `key`. Acknowledged once it is in capacitor-backed memory, or, where
    /// there is a log, as `options` or the design have it.
    ///
    /// # Errors
    /// A [`Status`]; nothing has changed then, but for [`Status::WriteProtected`], which a drive gives
    /// whose log cannot be written: whether the value survives is unknown.
    pub async fn store(
        &self,
        key: &[u8],
        value: Value,
        options: impl Into<StoreOptions>,
    ) -> Result<(), Status> {
        let StoreOptions { mode, sync } = options.into();
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        let bytes = key.len() as u64 + u64::from(value.len());
        let arrived = inner.link.receive(bytes) + inner.link.latency() + inner.pipeline;
        inner.handle.sleep_until(arrived).await;
        let (condition, unmet) = match mode {
            StoreMode::Upsert => (Condition::Always, Status::KeyExists),
            StoreMode::MustExist => (Condition::MustExist, Status::KeyDoesNotExist),
            StoreMode::MustNotExist => (Condition::MustNotExist, Status::KeyExists),
        };
        let options = WriteOptions { condition, sync };
        let is_done = inner.engine.put(key, value, options, inner.command).await?;
        // Its time on the link is part of the fixed latency; what it takes from reads is not.
        inner.link.complete(0);
        if is_done { Ok(()) } else { Err(unmet) }
    }

    /// Retrieve: reads the value of `key` into a host buffer of `buffer_bytes`; what does not fit
    /// is not transferred.
    ///
    /// # Errors
    /// A [`Status`].
    pub async fn retrieve(&self, key: &[u8], buffer_bytes: u32) -> Result<Retrieved, Status> {
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(key);
        let lookup = inner.engine.get(key, inner.command).await?;
        let Some(value) = lookup.value else {
            inner.complete(0).await;
            return Err(Status::KeyDoesNotExist);
        };
        inner.complete(u64::from(value.len().min(buffer_bytes))).await;
        Ok(Retrieved { value, flash_reads: lookup.flash_reads })
    }

    /// Delete: removes `key`.
    ///
    /// # Errors
    /// A [`Status`]; [`Status::KeyDoesNotExist`] only if the drive is set up to say so.
    pub async fn delete(&self, key: &[u8]) -> Result<(), Status> {
        self.delete_with(key, None).await
    }

    /// As [`Self::delete`], acknowledged as `sync` has it, if it says anything.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub async fn delete_with(&self, key: &[u8], sync: Option<LogSync>) -> Result<(), Status> {
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(key);
        let must_exist = inner.options.delete_must_exist;
        let condition = if must_exist { Condition::MustExist } else { Condition::Always };
        let options = WriteOptions { condition, sync };
        let is_done = inner.engine.delete(key, options, inner.command).await?;
        inner.complete(0).await;
        if is_done { Ok(()) } else { Err(Status::KeyDoesNotExist) }
    }

    /// Exist: succeeds if a value is stored under `key`; reads no value.
    ///
    /// # Errors
    /// A [`Status`]; [`Status::KeyDoesNotExist`] if there is none.
    pub async fn exist(&self, key: &[u8]) -> Result<(), Status> {
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(key);
        let exists = inner.engine.exists(key, inner.command).await?;
        inner.complete(0).await;
        if exists { Ok(()) } else { Err(Status::KeyDoesNotExist) }
    }

    /// Waits until no flush or compaction is due.
    pub async fn settle(&self) {
        self.inner.engine.settle().await;
    }

    /// The longest value the drive takes, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.engine.max_value_bytes()
    }

    /// The engine's counters.
    pub fn engine_stats(&self) -> EngineStats {
        self.inner.engine.stats()
    }

    /// The flash's counters.
    pub fn flash_stats(&self) -> FlashStats {
        self.inner.flash.stats()
    }

    /// Memory in use.
    pub fn memory(&self) -> MemoryUse {
        self.inner.engine.memory()
    }

    /// The index, for what is particular to it.
    pub fn engine(&self) -> &Index {
        &self.inner.engine
    }

    /// The flash, for tests that damage it.
    pub fn flash(&self) -> &Flash {
        &self.inner.flash
    }

    /// Firmware core time used so far.
    pub fn firmware_busy(&self) -> Nanos {
        self.inner.cores.busy()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl Inner {
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), Status> {
        let is_valid = (1..=self.max_key_bytes).contains(&key.len());
        if is_valid { Ok(()) } else { Err(Status::InvalidKeySize) }
    }

    /// A command without data comes over the link. Its own time there, some tens of nanoseconds,
    /// is part of the fixed latency; what it takes from stores is not.
    pub(crate) fn receive(&self, key: &[u8]) {
        assert!(self.slots.in_use() > 0, "a command goes ahead without a queue slot");
        self.link.receive(key.len() as u64);
    }

    /// Charges what a command costs that the engine does not charge for.
    pub(crate) async fn spend_command(&self) {
        self.cores.spend(self.command).await;
    }

    /// Sends data and completion to the host.
    pub(crate) async fn complete(&self, data_bytes: u64) {
        assert!(self.slots.in_use() > 0, "a command gave its queue slot back before it ended");
        let arrived = self.link.complete(data_bytes) + self.pipeline;
        self.handle.sleep_until(arrived).await;
    }
}
