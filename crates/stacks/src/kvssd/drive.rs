//! The drive: commands in, statuses out.
//!
//! A command waits for a queue slot, crosses the host link with its data, occupies a firmware core
//! for its cost, runs in the engine, and crosses the link back. A command costs the simulation two
//! timers, plus the costs of engine and flash.

use std::rc::Rc;

use drives::firmware::{Link, Reserve};
use drives::nand::{Flash, FlashStats, NandArray};
use engine::{Condition, EngineStats, LogSync, MemoryUse, Value, WriteOptions};
use runtime::{Cores, Handle, Nanos, Semaphore, Sleep};

use super::iterator_table::IteratorTable;
use super::profile::DeviceProfile;
use super::raw_flash::RawFlash;
use super::setup::{DriveOptions, Parts, SetupError};
use super::status::Status;
use crate::design::either;

/// The index of a drive.
pub type Index = crate::design::Index<RawFlash>;

/// The condition of a Store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoreMode {
    /// Always.
    #[default]
    Upsert,
    /// Only if the key exists.
    MustExist,
    /// Only if the key does not exist.
    MustNotExist,
}

/// Options of a Store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOptions {
    /// The condition.
    pub mode: StoreMode,
    /// Acknowledgement of the write, if different from the design's; ignored by a drive with
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
    /// The whole value; the host sees the first bytes, up to the size of its buffer.
    pub value: Value,
    /// Flash reads of the command.
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
    pub cores: Rc<Cores>,
    pub slots: Semaphore,
    pub link: Link,
    pub command: Nanos,
    /// Additional latency of a command in the controller, which occupies no resource.
    pipeline: Nanos,
    max_key_bytes: usize,
}

impl KvDrive {
    /// Creates a factory-fresh drive, ready for commands.
    ///
    /// # Errors
    /// Returns [`SetupError`] if the design does not fit on the drive.
    pub fn format(
        handle: &Handle,
        profile: &DeviceProfile,
        options: DriveOptions,
    ) -> Result<Self, SetupError> {
        let array = NandArray::new(&profile.flash.geometry);
        let flash = Flash::new(handle.clone(), &profile.flash, array);
        let parts = Parts::new(handle.clone(), profile, &options, flash)?;
        let engine = Index::create(&options.engine, parts.setup(profile, &options), None)?;
        Ok(Self::assemble(parts, profile, options, engine, 1))
    }

    pub(crate) fn assemble(
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
            link: Link::new(&handle, &profile.host, "host jitter"),
            command: us(controller.command_us),
            pipeline: us(controller.pipeline_us),
            max_key_bytes: options.key_format.max_bytes(),
            options,
            handle,
        };
        Self { inner: Rc::new(inner) }
    }

    /// Store: writes `value` under `key`. Acknowledged once it is in capacitor-backed memory, or,
    /// with a log, as `options` or the design specify.
    ///
    /// # Errors
    /// Returns a [`Status`]; nothing has changed, except after [`Status::WriteProtected`]: a drive
    /// whose log cannot be written returns it, and whether the value survives is unknown.
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
        let engine = &inner.engine;
        let is_done =
            either!(engine, engine => engine.put(key, value, options, inner.command).await?);
        // The completion's own link time is part of the fixed latency; the link time it takes from
        // reads is not.
        inner.link.complete(0);
        if is_done { Ok(()) } else { Err(unmet) }
    }

    /// Retrieve: reads the value of `key` into a host buffer of `buffer_bytes`; bytes beyond the
    /// buffer are not transferred.
    ///
    /// # Errors
    /// Returns a [`Status`].
    pub async fn retrieve(&self, key: &[u8], buffer_bytes: u32) -> Result<Retrieved, Status> {
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(key);
        let lookup = either!(&inner.engine, engine => engine.get(key, inner.command).await?);
        let Some(value) = lookup.value else {
            inner.complete(0).await;
            return Err(Status::KeyDoesNotExist);
        };
        inner.complete(u64::from(value.len().min(buffer_bytes))).await;
        Ok(Retrieved { value, flash_reads: lookup.flash_reads })
    }

    /// Retrieve, for a host with room for any value and for which an absent key is no error. A
    /// separate function because simulations mostly call this one: through [`Self::retrieve`] it
    /// would cost one more step.
    ///
    /// # Errors
    /// Returns a [`Status`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>, Status> {
        let inner = &*self.inner;
        inner.check_key(key)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(key);
        let lookup = either!(&inner.engine, engine => engine.get(key, inner.command).await?);
        let bytes = lookup.value.as_ref().map_or(0, |value| u64::from(value.len()));
        inner.complete(bytes).await;
        Ok(lookup.value)
    }

    /// Delete: removes `key`.
    ///
    /// # Errors
    /// Returns a [`Status`]; [`Status::KeyDoesNotExist`] only if the drive is configured to report
    /// it.
    pub async fn delete(&self, key: &[u8]) -> Result<(), Status> {
        self.delete_with(key, None).await
    }

    /// Same as [`Self::delete`], acknowledged as `sync` specifies, if present.
    ///
    /// # Errors
    /// Same as [`Self::delete`].
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
    /// Returns a [`Status`]; [`Status::KeyDoesNotExist`] if no value is stored.
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

    /// Returns the longest value that the drive accepts, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.engine.max_value_bytes()
    }

    /// Returns the engine's counters.
    pub fn engine_stats(&self) -> EngineStats {
        self.inner.engine.stats()
    }

    /// Returns the flash's counters.
    pub fn flash_stats(&self) -> FlashStats {
        self.inner.flash.stats()
    }

    /// Returns the memory in use.
    pub fn memory(&self) -> MemoryUse {
        self.inner.engine.memory()
    }

    /// Returns the index, for functions specific to it.
    pub fn engine(&self) -> &Index {
        &self.inner.engine
    }

    /// Returns the flash, for tests that damage it.
    pub fn flash(&self) -> &Flash {
        &self.inner.flash
    }

    /// Returns the firmware core time used so far.
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

    /// Books a command without data on the link. Its own link time, some tens of nanoseconds, is
    /// part of the fixed latency; the link time it takes from stores is not.
    pub(crate) fn receive(&self, key: &[u8]) {
        assert!(self.slots.in_use() > 0, "a command goes ahead without a queue slot");
        self.link.receive(key.len() as u64);
    }

    /// Charges the part of a command's cost that the engine does not charge.
    pub(crate) fn spend_command(&self) -> Sleep {
        self.cores.spend(self.command)
    }

    /// Sends data and completion to the host.
    pub(crate) fn complete(&self, data_bytes: u64) -> Sleep {
        assert!(self.slots.in_use() > 0, "a command gave its queue slot back before it ended");
        let arrived = self.link.complete(data_bytes) + self.pipeline;
        self.handle.sleep_until(arrived)
    }
}
