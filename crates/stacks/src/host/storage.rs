//! A drive, a host, and the layout of the host's store on the drive's sets.

use std::fmt;
use std::rc::Rc;

use block::nvme::SetId;
use block::{BLOCK_BYTES, BlockDevice};
use drives::ssd::SsdProfile;
use engine::{Medium, Shape, StoreId};
use runtime::{Cores, Handle, Nanos};
use volume::layout::Stripes;
use volume::windows::WindowOptions;
use volume::{BlockRange, Layout, MAX_MEMBERS, RangeOptions, Reuse, Volume, VolumeError};

use super::arrangement::Arrangement;
use super::journal::{JournalPlace, Media};
use super::profile::HostProfile;
use super::windows::WindowPolicy;

/// The sets of a drive by their use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sets {
    /// All sets, shared by journal and data.
    All,
    /// The sets of the data, if the journal has its own set: kv-sets.
    Data,
    /// The journal's own set: the meta-set.
    Journal,
}

impl fmt::Display for Sets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "the drive's sets",
            Self::Data => "the sets that the journal leaves to the data",
            Self::Journal => "the journal's set, the drive's last one",
        })
    }
}

/// Why a store cannot be placed on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// Layout plain is for data on one set.
    ManySets {
        /// Sets of the drive, or partitions of them.
        sets: u32,
        /// Whether the journal has one of them.
        journal: JournalPlace,
    },
    /// A journal with its own set leaves no set for the data.
    OneSet,
    /// A set has no room for one extent, or more pages than page numbers exist.
    SetSize {
        /// Bytes of a set, or of one of its partitions.
        bytes: u64,
    },
    /// A set cannot be divided into this many partitions.
    Partitions,
    /// Windows apply to whole sets, not to partitions.
    WindowsOfPartitions,
    /// The drive has no windows.
    NoWindows,
    /// Windows require a volume, on whose members they are kept.
    WindowsWithoutVolume,
    /// There is no `plm_cache`.
    NoPlmCache,
    /// Reads of a busy set cannot be rebuilt.
    NoRedundancy,
    /// Writes of the log would wait for windows.
    LogInWindows,
    /// Hedged reads require redundancy.
    HedgedWithoutRedundancy,
    /// Hedged reads and windows exclude each other.
    HedgedInWindows,
    /// These sets cannot form such a volume.
    Volume(Sets, VolumeError),
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManySets { sets, journal } => {
                let plain = match journal {
                    JournalPlace::Beside => "layout plain is for one",
                    JournalPlace::OwnSet => "layout plain is for one beside the journal's",
                };
                write!(
                    f,
                    "the drive is cut into {sets} sets, and {plain}: take striped, parity or mirrored"
                )
            }
            Self::OneSet => f.write_str(
                "the drive has one set, and a journal on a set of its own leaves the data none: take journal \
                 beside, or a drive of several sets",
            ),
            Self::SetSize { bytes } => write!(
                f,
                "a set of {bytes} bytes has room for no extent, or for 2^32 pages and more: change \
                 extent_bytes or page_bytes of the host"
            ),
            Self::Partitions => write!(
                f,
                "a set is cut into 1 to {MAX_PARTITIONS} partitions, and a drive into {MAX_PARTITIONS} in all"
            ),
            Self::WindowsOfPartitions => f.write_str(
                "a window is a whole set's: with windows, sets are not cut into partitions",
            ),
            Self::NoWindows => f.write_str(
                "the drive has no predictable-latency windows: take a vigil drive, or windows rails, which the \
                 host keeps alone",
            ),
            Self::WindowsWithoutVolume => f.write_str(
                "windows are kept on the sets of a volume: take layout striped, parity or mirrored",
            ),
            Self::NoPlmCache => f.write_str(
                "plm_cache holds what waits for windows: take windows constant, dynamic or rails",
            ),
            Self::HedgedWithoutRedundancy => f.write_str(
                "a hedged read is rebuilt from other sets: take layout parity or mirrored",
            ),
            Self::HedgedInWindows => f.write_str(
                "windows say where a read goes, a hedged one would go to busy sets too: take windows off",
            ),
            Self::NoRedundancy => f.write_str(
                "with windows, reads of the set that is outside its own are rebuilt: take layout parity or mirrored",
            ),
            Self::LogInWindows => f.write_str(
                "with windows, what is written beside the data waits for a slot of seconds: take journal own-set",
            ),
            Self::Volume(sets, error) => write!(f, "{sets}: {error}"),
        }
    }
}

impl std::error::Error for StorageError {}

/// A drive, a host, and the layout of the host's store on the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// The drive.
    pub drive: SsdProfile,
    /// The host.
    pub host: HostProfile,
    /// Number of equal partitions of each set. With several, everything about sets applies to the
    /// partitions: a volume can use the partitions of one set as members, as md does with
    /// partitions of a drive.
    pub partitions: u32,
    /// The layout of the store's data on the drive's sets.
    pub arrangement: Arrangement,
    /// The place of its journal: with the data, or on a set of its own.
    pub journal: JournalPlace,
    /// The policy of windows on the sets of its data.
    pub windows: WindowPolicy,
    /// Size of `plm_cache` in bytes, parity included; [`WindowOptions::O_VIGIL`]'s if `None`.
    pub plm_cache_bytes: Option<u64>,
    /// Microseconds after which a client's read that has not completed is issued a second time,
    /// rebuilt from the other sets: a hedged read. Never if `None`.
    pub hedge_after_us: Option<u32>,
}

/// Layout of the journal's set if the data are on a volume: it is a volume too, because the media
/// of a store have one type. Its groups are filled up to whole pages, not to chunks.
const JOURNAL_LAYOUT: Layout = Layout::Striped { chunk_pages: 1 };

/// Maximum number of partitions of a drive: the maximum number of members of a volume.
pub const MAX_PARTITIONS: u32 = MAX_MEMBERS as u32;

/// Converts an error of the journal's volume.
fn of_journal(error: VolumeError) -> StorageError {
    StorageError::Volume(Sets::Journal, error)
}

impl Storage {
    /// Calculates the shape of the data's medium.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the data cannot be placed on the drive.
    pub fn shape(&self) -> Result<Shape, StorageError> {
        let (sets, member) = (self.data_sets()?, self.member_shape()?);
        match self.layout() {
            None if sets == 1 => Ok(member),
            None => Err(self.many_sets()),
            Some(layout) => {
                let stripes = Stripes::new(layout, sets as usize, member);
                Ok(stripes.map_err(|error| self.of_data(error))?.shape())
            }
        }
    }

    /// Returns the window options of the data's volume; `None` if it does not schedule by windows.
    pub fn window_options(&self) -> Option<WindowOptions> {
        let usual = self.windows.options()?;
        let cache_bytes = self.plm_cache_bytes.unwrap_or(usual.cache_bytes);
        Some(WindowOptions { cache_bytes, ..usual })
    }

    /// Checks the policy of windows and hedged reads.
    ///
    /// # Errors
    /// Returns [`StorageError`] if windows cannot be kept, or reads not hedged.
    pub fn check_windows(&self) -> Result<(), StorageError> {
        let is_scheduled = self.windows.options().is_some();
        let is_redundant = matches!(self.arrangement, Arrangement::Parity | Arrangement::Mirrored);
        if self.windows.needs_drive_windows() && self.drive.plm.is_none() {
            Err(StorageError::NoWindows)
        } else if self.windows != WindowPolicy::Off && self.partitions > 1 {
            Err(StorageError::WindowsOfPartitions)
        } else if self.windows != WindowPolicy::Off && !self.is_volume() {
            Err(StorageError::WindowsWithoutVolume)
        } else if self.plm_cache_bytes.is_some() && !is_scheduled {
            Err(StorageError::NoPlmCache)
        } else if self.hedge_after_us.is_some() && !is_redundant {
            Err(StorageError::HedgedWithoutRedundancy)
        } else if self.hedge_after_us.is_some() && self.windows != WindowPolicy::Off {
            Err(StorageError::HedgedInWindows)
        } else if is_scheduled && !is_redundant {
            Err(StorageError::NoRedundancy)
        } else if is_scheduled && self.journal == JournalPlace::Beside {
            Err(StorageError::LogInWindows)
        } else {
            Ok(())
        }
    }

    /// Calculates the shape of the journal's medium, if it has its own.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the journal cannot be placed on the drive.
    pub fn journal_shape(&self) -> Result<Option<Shape>, StorageError> {
        match self.journal {
            JournalPlace::Beside => return Ok(None),
            JournalPlace::OwnSet => {}
        }
        let member = self.member_shape()?;
        if !self.is_volume() {
            return Ok(Some(member));
        }
        let stripes = Stripes::new(JOURNAL_LAYOUT, 1, member).map_err(of_journal)?;
        Ok(Some(stripes.shape()))
    }

    /// Returns the shape of a set.
    fn member_shape(&self) -> Result<Shape, StorageError> {
        let files = &self.host.files;
        Ok(Shape {
            payload_bytes: files.page_bytes,
            page_bytes: files.page_bytes,
            pages_per_extent: self.pages_per_extent(),
            extents: self.extents()?,
            grows_to: 0,
            append_unit: 1,
            parallelism: files.appends,
        })
    }

    /// Returns the number of sets of the drive, or of partitions.
    ///
    /// # Errors
    /// Returns [`StorageError::Partitions`] if there are too many.
    fn sets(&self) -> Result<u32, StorageError> {
        let sets = self.drive.sets.checked_mul(self.partitions);
        let is_possible = |sets: &u32| self.partitions == 1 || (1..=MAX_PARTITIONS).contains(sets);
        sets.filter(is_possible).ok_or(StorageError::Partitions)
    }

    /// Returns the number of sets of the data, which are the first ones.
    ///
    /// # Errors
    /// Returns [`StorageError::OneSet`] if no set is left for the data,
    /// [`StorageError::Partitions`] if there are too many partitions.
    pub fn data_sets(&self) -> Result<u32, StorageError> {
        let left = self.sets()? - self.journal.sets();
        if left == 0 { Err(StorageError::OneSet) } else { Ok(left) }
    }

    fn many_sets(&self) -> StorageError {
        let sets = self.drive.sets * self.partitions;
        StorageError::ManySets { sets, journal: self.journal }
    }

    /// Converts an error of the data's volume.
    fn of_data(&self, error: VolumeError) -> StorageError {
        let sets = match self.journal {
            JournalPlace::Beside => Sets::All,
            JournalPlace::OwnSet => Sets::Data,
        };
        StorageError::Volume(sets, error)
    }

    /// Returns the layout of the data's volume; `None` for layout plain.
    fn layout(&self) -> Option<Layout> {
        let chunk_pages = self.host.files.chunk_pages;
        match self.arrangement {
            Arrangement::Plain => None,
            Arrangement::Striped => Some(Layout::Striped { chunk_pages }),
            Arrangement::Parity => Some(Layout::Parity { chunk_pages }),
            Arrangement::Mirrored => Some(Layout::Mirrored),
        }
    }

    /// Whether the media are volumes, not single sets.
    pub fn is_volume(&self) -> bool {
        self.layout().is_some()
    }

    fn pages_per_extent(&self) -> u32 {
        let files = &self.host.files;
        (files.extent_bytes / u64::from(files.page_bytes)) as u32
    }

    /// Returns the number of extents of a set.
    fn extents(&self) -> Result<u32, StorageError> {
        let sets = u64::from(self.data_sets()?);
        let blocks = self.drive.blocks_per_set() / u64::from(self.partitions);
        let bytes = blocks * u64::from(BLOCK_BYTES);
        let extents = bytes / self.host.files.extent_bytes;
        let pages = extents * u64::from(self.pages_per_extent());
        let fits = extents > 0 && pages.saturating_mul(sets) < u64::from(u32::MAX);
        if fits { Ok(extents as u32) } else { Err(StorageError::SetSize { bytes }) }
    }

    /// Returns the sets of `device` that hold the data, each as a medium: the members of their
    /// volume. The replacement of a lost member is the set with the same number of another device
    /// ([`Volume::replace`]).
    ///
    /// # Errors
    /// Returns [`StorageError`] if the data cannot be placed on the drive.
    pub fn members<D: BlockDevice + Clone>(
        &self,
        device: &D,
    ) -> Result<Vec<BlockRange<D>>, StorageError> {
        (1..=self.data_sets()?).map(|number| self.set(device, number)).collect()
    }

    /// Returns the journal's set as a medium, if the journal has its own.
    fn journal_set<D: BlockDevice + Clone>(
        &self,
        device: &D,
    ) -> Result<Option<BlockRange<D>>, StorageError> {
        match self.journal {
            JournalPlace::Beside => Ok(None),
            JournalPlace::OwnSet => Ok(Some(self.set(device, self.sets()?)?)),
        }
    }

    fn set<D: BlockDevice + Clone>(
        &self,
        device: &D,
        number: u32,
    ) -> Result<BlockRange<D>, StorageError> {
        let files = &self.host.files;
        let extents = self.extents()?;
        let (set, partition) = ((number - 1) / self.partitions + 1, (number - 1) % self.partitions);
        let extent_blocks = files.extent_bytes / u64::from(BLOCK_BYTES);
        let options = RangeOptions {
            set: SetId::new(set as u16).expect("sets count from 1"),
            first_block: u64::from(partition) * u64::from(extents) * extent_blocks,
            page_blocks: files.page_bytes / BLOCK_BYTES,
            pages_per_extent: self.pages_per_extent(),
            extents,
            grows_to: 0,
            parallelism: files.appends,
            run_pages: 1,
            reuse: Reuse::LeastWorn,
            forces_journal: false,
        };
        Ok(BlockRange::new(device.clone(), options).expect("the set was measured"))
    }

    /// Returns the media of layout plain, on a device of this profile.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the store cannot be placed on the drive.
    pub fn plain<D: BlockDevice + Clone>(
        &self,
        device: &D,
    ) -> Result<Media<BlockRange<D>>, StorageError> {
        self.shape()?;
        let data = self.members(device)?.swap_remove(0);
        Ok(Media { data, journal: self.journal_set(device)? })
    }

    /// Creates the new volumes of the other layouts, on a device of this profile.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the store cannot be placed on the drive.
    pub fn volume<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<Media<Volume<BlockRange<D>>>, StorageError> {
        let setup = self.volume_setup(handle, cores, device, id)?;
        let data = Volume::create(setup.data).map_err(|error| self.of_data(error))?;
        let journal = setup.journal.map(Volume::create).transpose().map_err(of_journal)?;
        assert_eq!(Some(data.shape()), self.shape().ok(), "the arithmetic is the volume's");
        let shape = journal.as_ref().map(Volume::shape);
        assert_eq!(Some(shape), self.journal_shape().ok(), "the arithmetic is the journal's");
        Ok(Media { data, journal })
    }

    /// Recovers the volumes on a device of this profile, after a power cut or any other end. The
    /// store in them can be opened afterwards.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the volumes cannot be recovered.
    pub async fn recover_volume<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<Media<Volume<BlockRange<D>>>, StorageError> {
        let setup = self.volume_setup(handle, cores, device, id)?;
        self.recover_media(setup).await
    }

    /// Like [`Self::recover_volume`] for volumes with a setup of the caller.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the volumes cannot be recovered.
    pub async fn recover_media<M: Medium>(
        &self,
        setup: Media<volume::Setup<M>>,
    ) -> Result<Media<Volume<M>>, StorageError> {
        let data = Volume::recover(setup.data).await.map_err(|error| self.of_data(error))?;
        let journal = match setup.journal {
            Some(setup) => Some(Volume::recover(setup).await.map_err(of_journal)?),
            None => None,
        };
        Ok(Media { data, journal })
    }

    /// Returns the setup of volumes on a device of this profile, for callers that modify it.
    ///
    /// # Errors
    /// Returns [`StorageError`] if the store cannot be placed on the drive.
    pub fn volume_setup<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<Media<volume::Setup<BlockRange<D>>>, StorageError> {
        let layout = self.layout().ok_or_else(|| self.many_sets())?;
        let hedge_after = self.hedge_after_us.map(|us| Nanos::from_micros(us.into()));
        let setup = |members, layout, id| volume::Setup {
            handle: handle.clone(),
            cores: Rc::clone(cores),
            members,
            options: volume::Options { hedge_after, ..volume::Options::new(layout, id) },
            planted: volume::Planted::default(),
        };
        let journal = self.journal_set(device)?;
        Ok(Media {
            data: setup(self.members(device)?, layout, id.0.into()),
            // A different identity, so that a set of the data is never mistaken for the journal's.
            journal: journal.map(|set| setup(vec![set], JOURNAL_LAYOUT, !u64::from(id.0))),
        })
    }

    /// Returns the host's cores.
    pub fn cores(&self, handle: &Handle) -> Rc<Cores> {
        let processor = &self.host.processor;
        let quantum = Nanos::from_micros_f64(processor.quantum_us);
        Rc::new(Cores::new(handle.clone(), processor.cores, quantum))
    }
}
