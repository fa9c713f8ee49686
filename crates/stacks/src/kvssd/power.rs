//! Power cuts, and recovery.
//!
//! Contract: at a power cut the drive's capacitors last long enough to write the dump, and no
//! longer. Operations in the flash end as `drives::nand::power_cut` decides. Every acknowledged
//! command is in the dump or durable; an unacknowledged one may be either.
//!
//! A dump that is missing although the drive had run is detected at the next power-up: a superblock
//! that is free according to the older dump contains pages.
//!
//! A drive whose design has a log has no capacitors: nothing is dumped, and acknowledged writes are
//! already on flash.

use std::fmt;

use drives::firmware::DumpError;
use drives::nand::{CutReport, Flash, NandArray};
use engine::{Durability, MediumError, OpenError};
use runtime::{Handle, Rng};

use super::drive::{Index, KvDrive};
use super::profile::DeviceProfile;
use super::setup::{DriveOptions, Parts, SetupError};

/// A drive without power: its cells, and the operations hit by the cut.
pub struct PoweredOff {
    /// The cells, including the dump.
    pub array: NandArray,
    /// Flash operations that were in flight.
    pub cut: CutReport,
    /// Bytes of the dump.
    pub dump_bytes: usize,
}

/// Why a drive could not be powered up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoverError {
    /// The design does not fit on the drive.
    Setup(SetupError),
    /// The reserved region holds no complete dump.
    NoDump,
    /// Pages of the newest dump are damaged; the previous dump is out of date.
    DamagedDump,
    /// The newest dump does not have this firmware's format.
    BadDump,
    /// The drive ran after its newest dump and lost the contents of its memory.
    LostMemory,
    /// The manifest or the log is damaged; for drives without capacitors.
    Journal(OpenError),
    /// The flash failed.
    Medium(MediumError),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setup(error) => return error.fmt(f),
            Self::Journal(error) => return error.fmt(f),
            Self::Medium(error) => return error.fmt(f),
            Self::NoDump => "the reserved region holds no whole dump of the drive's memory",
            Self::DamagedDump => {
                "the newest dump of the drive's memory is damaged: acknowledged writes are lost"
            }
            Self::BadDump => "the dump of the drive's memory has an unknown form",
            Self::LostMemory => {
                "the drive ran after its newest dump was made: the capacitors failed, and \
                 acknowledged writes are lost"
            }
        })
    }
}

impl std::error::Error for RecoverError {}

impl From<SetupError> for RecoverError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<DumpError> for RecoverError {
    fn from(error: DumpError) -> Self {
        match error {
            DumpError::Missing => Self::NoDump,
            DumpError::Damaged => Self::DamagedDump,
        }
    }
}

impl From<OpenError> for RecoverError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::BadDump => Self::BadDump,
            OpenError::LostMemory => Self::LostMemory,
            OpenError::Medium(error) => Self::Medium(error),
            OpenError::NoManifest
            | OpenError::ForeignJournal
            | OpenError::JournalMedium(_)
            | OpenError::DamagedJournal(_)
            | OpenError::Damaged(..) => Self::Journal(error),
            OpenError::DoesNotFit { .. }
            | OpenError::CachesDoNotFit { .. }
            | OpenError::TooFewExtents { .. }
            | OpenError::SingleUnit
            | OpenError::NoJournalApart
            | OpenError::NoAccelerator => Self::Setup(error.into()),
        }
    }
}

impl KvDrive {
    /// Powers up a drive after a power cut, and returns it when it takes commands. Before that, cut
    /// the power of `flash` alone: the existing dump remains valid.
    ///
    /// # Errors
    /// Returns [`RecoverError`] if the dump is missing or damaged.
    pub async fn recover(
        handle: &Handle,
        profile: &DeviceProfile,
        options: DriveOptions,
        flash: Flash,
    ) -> Result<Self, RecoverError> {
        let parts = Parts::new(handle.clone(), profile, &options, flash)?;
        let (engine, epoch) = recover_index(&parts, profile, &options).await?;
        Ok(Self::assemble(parts, profile, options, engine, epoch))
    }

    /// Cuts the power now. The caller must then drop the drive's runtime: none of its tasks may
    /// continue.
    pub fn power_cut(&self, rng: &mut Rng) -> PoweredOff {
        let inner = self.inner();
        let has_capacitors = inner.options.engine.durability() == Durability::Capacitors;
        let dump = if has_capacitors { inner.engine.dump() } else { Vec::new() };
        let (mut array, cut) = inner.flash.power_cut(rng);
        assert_eq!(dump.is_empty(), !has_capacitors, "memory survives a cut, or it does not");
        if has_capacitors {
            inner.reserve.write(&mut array, inner.epoch, &dump);
        }
        PoweredOff { array, cut, dump_bytes: dump.len() }
    }
}

/// Loads the newest dump and makes room for the next, or opens the store of a drive without
/// capacitors. Returns the index, and the epoch of the next dump or a number that is as new.
async fn recover_index(
    parts: &Parts,
    profile: &DeviceProfile,
    options: &DriveOptions,
) -> Result<(Index, u64), RecoverError> {
    if options.engine.durability() == Durability::Log {
        let engine = Index::open(&options.engine, parts.setup(profile, options), None).await?;
        let epoch = u64::from(engine.epoch()) + 1;
        return Ok((engine, epoch));
    }
    let dump = parts.reserve.find(&parts.flash, true).await?.ok_or(RecoverError::NoDump)?;
    parts.reserve.erase(&parts.flash, dump.epoch + 1).await;
    let setup = parts.setup(profile, options);
    let engine = Index::recover(&options.engine, setup, &dump.bytes)?;
    engine.resume().await?;
    // No step may come between this and the drive taking commands: from here on its state differs
    // from the dump, and a power cut needs a new one.
    engine.start();
    Ok((engine, dump.epoch + 1))
}
