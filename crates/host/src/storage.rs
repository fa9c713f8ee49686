//! A drive, a host, and how the host's store lies on the drive's sets.

use std::fmt;
use std::rc::Rc;

use block::nvme::SetId;
use block::{BLOCK_BYTES, BlockDevice};
use pages::{Medium, Shape, StoreId};
use runtime::{Cores, Handle, Nanos};
use ssd::SsdProfile;
use volume::layout::Stripes;
use volume::{BlockRange, Layout, RangeOptions, Volume, VolumeError};

use crate::profile::HostProfile;

/// How a store lies on the sets of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrangement {
    /// On the only set.
    Plain,
    /// Striped over all sets; nothing is redundant.
    Striped,
    /// Striped over all sets, with rotated parity: one set may be lost.
    Parity,
    /// The same on every set.
    Mirrored,
}

impl Arrangement {
    /// All of them, and what they are called.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Plain, "plain"),
        (Self::Striped, "striped"),
        (Self::Parity, "parity"),
        (Self::Mirrored, "mirrored"),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all of them are there").1
    }

    /// What is usual for a drive of so many sets.
    pub fn of_sets(sets: u32) -> Self {
        if sets == 1 { Self::Plain } else { Self::Striped }
    }
}

/// Why a store cannot lie on a drive like this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// "Plain" is for drives of one set.
    ManySets(u32),
    /// A set has no room for one extent, or more pages than there are numbers for.
    SetSize {
        /// Bytes of a set.
        bytes: u64,
    },
    /// The sets make no such volume.
    Volume(VolumeError),
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManySets(sets) => write!(
                f,
                "the drive is cut into {sets} sets, and layout plain is for one: take striped, parity or \
                 mirrored"
            ),
            Self::SetSize { bytes } => write!(
                f,
                "a set of {bytes} bytes has room for no extent, or for 2^32 pages and more: change \
                 extent_bytes or page_bytes of the host"
            ),
            Self::Volume(error) => write!(f, "the drive's sets: {error}"),
        }
    }
}

impl std::error::Error for StorageError {}

impl From<VolumeError> for StorageError {
    fn from(error: VolumeError) -> Self {
        Self::Volume(error)
    }
}

/// A drive, a host, and how the host's store lies on the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// The drive.
    pub drive: SsdProfile,
    /// The host.
    pub host: HostProfile,
    /// How the store lies on the drive's sets.
    pub arrangement: Arrangement,
}

impl Storage {
    /// The medium of a store, by arithmetic.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn shape(&self) -> Result<Shape, StorageError> {
        let files = &self.host.files;
        let member = Shape {
            payload_bytes: files.page_bytes,
            page_bytes: files.page_bytes,
            pages_per_extent: self.pages_per_extent(),
            extents: self.extents()?,
            append_unit: 1,
            parallelism: files.appends,
        };
        match self.layout() {
            None if self.drive.sets == 1 => Ok(member),
            None => Err(StorageError::ManySets(self.drive.sets)),
            Some(layout) => Ok(Stripes::new(layout, self.drive.sets as usize, member)?.shape()),
        }
    }

    /// How the sets make a volume; nothing where there is none.
    fn layout(&self) -> Option<Layout> {
        let chunk_pages = self.host.files.chunk_pages;
        match self.arrangement {
            Arrangement::Plain => None,
            Arrangement::Striped => Some(Layout::Striped { chunk_pages }),
            Arrangement::Parity => Some(Layout::Parity { chunk_pages }),
            Arrangement::Mirrored => Some(Layout::Mirrored),
        }
    }

    /// Whether the medium is a volume, and not the only set itself.
    pub fn is_volume(&self) -> bool {
        self.layout().is_some()
    }

    fn pages_per_extent(&self) -> u32 {
        let files = &self.host.files;
        (files.extent_bytes / u64::from(files.page_bytes)) as u32
    }

    /// Extents of a set.
    fn extents(&self) -> Result<u32, StorageError> {
        let bytes = self.drive.blocks_per_set() * u64::from(BLOCK_BYTES);
        let extents = bytes / self.host.files.extent_bytes;
        let pages = extents * u64::from(self.pages_per_extent());
        let sets = u64::from(self.drive.sets);
        let fits = extents > 0 && pages.saturating_mul(sets) < u64::from(u32::MAX);
        if fits { Ok(extents as u32) } else { Err(StorageError::SetSize { bytes }) }
    }

    /// The sets of `device`, each as a medium: what a volume is made of. One that is lost has the set of the
    /// same number of another device put in its place ([`Volume::replace`]).
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn members<D: BlockDevice + Clone>(
        &self,
        device: &D,
    ) -> Result<Vec<BlockRange<D>>, StorageError> {
        let files = &self.host.files;
        let extents = self.extents()?;
        let of_set = |number: u32| {
            let set = SetId::new(number as u16).expect("sets count from 1");
            let options = RangeOptions {
                set,
                first_block: 0,
                page_blocks: files.page_bytes / BLOCK_BYTES,
                pages_per_extent: self.pages_per_extent(),
                extents,
                parallelism: files.appends,
            };
            BlockRange::new(device.clone(), options).expect("the set was measured")
        };
        Ok((1..=self.drive.sets).map(of_set).collect())
    }

    /// The medium of layout plain, on a device of this profile.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn plain<D: BlockDevice + Clone>(&self, device: &D) -> Result<BlockRange<D>, StorageError> {
        self.shape()?;
        Ok(self.members(device)?.swap_remove(0))
    }

    /// The fresh volume of another layout, on a device of this profile.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn volume<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<Volume<BlockRange<D>>, StorageError> {
        let volume = Volume::create(self.volume_setup(handle, cores, device, id)?)?;
        assert_eq!(Some(volume.shape()), self.shape().ok(), "the arithmetic is the volume's");
        Ok(volume)
    }

    /// The volume that lies on a device of this profile, after a power cut or any other end. Then the store in
    /// it can be opened.
    ///
    /// # Errors
    /// [`StorageError`].
    pub async fn recover_volume<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<Volume<BlockRange<D>>, StorageError> {
        Ok(Volume::recover(self.volume_setup(handle, cores, device, id)?).await?)
    }

    /// What a volume on a device of this profile is made of: for those that want it otherwise than usual.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn volume_setup<D: BlockDevice + Clone>(
        &self,
        handle: &Handle,
        cores: &Rc<Cores>,
        device: &D,
        id: StoreId,
    ) -> Result<volume::Setup<BlockRange<D>>, StorageError> {
        let layout = self.layout().ok_or(StorageError::ManySets(self.drive.sets))?;
        Ok(volume::Setup {
            handle: handle.clone(),
            cores: Rc::clone(cores),
            members: self.members(device)?,
            options: volume::Options::new(layout, id.0),
            planted: volume::Planted::default(),
        })
    }

    /// The host's cores.
    pub fn cores(&self, handle: &Handle) -> Rc<Cores> {
        let processor = &self.host.processor;
        let quantum = Nanos::from_micros_f64(processor.quantum_us);
        Rc::new(Cores::new(handle.clone(), processor.cores, quantum))
    }
}
