//! The root of a store inside the runtime, behind the store's lock. `open.rs` opens or creates it.

mod make;
pub(crate) mod open;
mod reopen;
mod windows;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use block::BlockDevice;
use engine::{Lack, LogSync, MediumError, OpenError};
use files::{Locks, Waits};
use runtime::Handle;
use volume::Volume;

use crate::device::Device;
use crate::directory;
use crate::directory::making::Making;
use crate::directory::state::DirectoryState;
use crate::error::Error;
use crate::error::place::Place;
use crate::file_engine::{FileEngine, Member};
use crate::options::Options;
use crate::reading::Reading;

/// A store inside its runtime. Callers clone the parts that they need, because a future cannot
/// borrow from it.
pub(crate) struct Root {
    pub engine: FileEngine,
    pub reading: Rc<Reading>,
    pub place: Place,
    pub default_sync: LogSync,
    /// The engine's volume, if the store is over several files.
    pub volume: Option<Volume<Member>>,
    pub device: Device,
    /// Directories that were lost when the store was opened.
    pub lost: Vec<PathBuf>,
    /// Whether the store was opened read-only.
    pub is_read_only: bool,
    /// Locks that are held while the store is marked as incomplete.
    pub making: Option<Making>,
    /// The reason why the requested windows are not kept, until it was reported.
    pub no_windows: Cell<Option<String>>,
}

impl Root {
    async fn of(
        handle: &Handle,
        engine: FileEngine,
        volume: Option<Volume<Member>>,
        device: Device,
        place: Place,
        lost: Vec<PathBuf>,
        options: &Options,
    ) -> Result<Self, Error> {
        let default_sync = options.durability.into();
        let (reading, no_windows) = (Rc::new(Reading::new(handle)), Cell::default());
        let (making, is_read_only) = (None, options.read_only);
        let root = Self {
            engine,
            reading,
            place,
            default_sync,
            volume,
            device,
            lost,
            is_read_only,
            making,
            no_windows,
        };
        if !is_read_only {
            root.wait_for_room(handle);
            root.check_room(handle).await?;
        }
        root.start_windows(options).await;
        Ok(root)
    }

    /// Refuses the opening if an essential write failed because the disk was full: the store would
    /// take no writes until it is reopened, even after space was freed. A test write finds out.
    async fn check_room(&self, handle: &Handle) -> Result<(), Error> {
        if !self.device.has_refused_for_room() {
            return Ok(());
        }
        let mut rng = handle.rng("a key that there is not");
        let unused = [rng.next_u64(), rng.next_u64()].map(u64::to_le_bytes);
        let written = self.engine.write_nothing(unused.as_flattened()).await;
        if written.is_ok() || self.engine.is_healthy() {
            return Ok(());
        }
        Err(refused(&OpenError::Medium(MediumError::ReadOnly), &self.place, &self.device))
    }

    /// From now on, writes for which the disk has no space wait for it, and callers get an error
    /// meanwhile.
    fn wait_for_room(&self, handle: &Handle) {
        self.device.wait_for_room(true);
        let (device, engine) = (self.device.clone(), self.engine.clone());
        drop(handle.spawn("room on the disk", async move {
            let mut waits = Waits::default();
            loop {
                waits = device.waits_other_than(waits).await;
                engine.tell_of_lack(Lack { journal: waits.journal, others: waits.others });
            }
        }));
    }

    /// Returns the maximum size of each of the store's files, in bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let sets = self.device.sets();
        sets.first().map_or(0, |set| set.blocks * u64::from(block::BLOCK_BYTES))
    }

    /// Returns the directories and their states.
    pub(crate) fn directories(&self) -> Vec<(PathBuf, DirectoryState)> {
        let (failed, behind) = match &self.volume {
            Some(volume) => (volume.failed_members(), volume.members_behind()),
            None => Default::default(),
        };
        let state = |member: usize| {
            if failed.contains(&member) {
                DirectoryState::Lost
            } else if behind.contains(&member) {
                DirectoryState::Behind
            } else {
                DirectoryState::Whole
            }
        };
        let files = self.place.files.iter().enumerate();
        files.map(|(member, file)| (directory::of_file(file), state(member))).collect()
    }

    /// Returns and clears the troubles since the last call.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let of_files = self.device.troubles();
        of_files.iter().map(ToString::to_string).chain(self.no_windows.take()).collect()
    }
}

/// Converts the error of opening the engine. If a write found the disk full, that is the cause of
/// the later failures.
fn refused(error: &OpenError, place: &Place, device: &Device) -> Error {
    let no_room = OpenError::Medium(MediumError::NoSpace);
    let cause = match error {
        OpenError::Medium(MediumError::ReadOnly | MediumError::Io(_))
            if device.has_refused_for_room() =>
        {
            &no_room
        }
        other => other,
    };
    Error::of_opening(cause, place, &device.troubles())
}

/// The data of an open store that threads outside the runtime may use.
pub(crate) struct Outside {
    pub place: Place,
    pub default_sync: LogSync,
    /// Whether callers may read values directly from the device. Not with a volume, which knows the
    /// windows of its members and rebuilds the pages that a member lacks.
    pub reads_values: bool,
    /// Whether the store was opened read-only.
    pub is_read_only: bool,
    /// The locks on its files.
    pub locks: Locks,
}

impl Outside {
    pub(crate) fn of(root: &Root) -> Self {
        let reads_values = root.volume.is_none();
        let (default_sync, is_read_only) = (root.default_sync, root.is_read_only);
        let (place, locks) = (root.place.clone(), root.device.locks());
        Self { place, default_sync, reads_values, is_read_only, locks }
    }
}
