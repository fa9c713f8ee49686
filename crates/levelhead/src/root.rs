//! The root of a store inside the runtime, behind the store's lock: how it is created and opened.

use std::cell::Cell;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;

use block::BlockDevice;
use engine::{Engine, Lack, LogSync, MediumError, OpenError};
use files::{Discards, FileDevice, FileError, FileOptions, Locks, RoomOf, Waits};
use runtime::{Handle, Nanos};
use volume::Volume;

use crate::device::Device;
use crate::directory::capacity::most_capacity;
use crate::directory::growth;
use crate::directory::identity::{Identity, check_settled};
use crate::directory::making::Making;
use crate::directory::state::DirectoryState;
use crate::error::Error;
use crate::error::place::Place;
use crate::file_engine::{FileEngine, Files, Member};
use crate::options::{LEAST_CAPACITY, Options, USUAL_CAPACITY};
use crate::reading::Reading;
use crate::set_up::{ranges, setup, volume_setup};
use crate::{directory, drive};

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

/// How a new store is marked once it is created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    /// Complete.
    Whole,
    /// Incomplete: a copy that does not have all pairs yet, and must not be taken for a complete
    /// one.
    Unfinished,
}

impl Root {
    /// Opens the store in `directories`, or creates one if they have none.
    pub(crate) async fn open(
        handle: Handle,
        directories: Vec<PathBuf>,
        options: Options,
    ) -> Result<Self, Error> {
        let said = directory::read_all(&directories);
        match said.map_err(|error| directory::with_a_way_out(&directories, error))? {
            Some(identity) => {
                check_settled(&options, &identity)?;
                Box::pin(Self::reopen(handle, directories, options, identity)).await
            }
            None if options.create_if_missing && !options.read_only => {
                Self::create(handle, directories, options, Is::Whole).await
            }
            None => {
                let first = directories[0].display();
                Err(Error::Missing(format!(
                    "there is no store in {first}, or none that is whole: no LEVELHEAD there says so; create_if_missing makes one"
                )))
            }
        }
    }

    /// Creates a store. If another process creates one in the same directories first, opens that
    /// one.
    pub(crate) async fn create(
        handle: Handle,
        directories: Vec<PathBuf>,
        options: Options,
        is: Is,
    ) -> Result<Self, Error> {
        let wanted = match options.capacity_bytes {
            0 => USUAL_CAPACITY,
            given => given,
        };
        let capacity = capacity_of(&directories, wanted)?;
        directories.iter().try_for_each(|directory| directory::make(directory))?;
        // Keeps other processes from creating a store in the same places.
        let mut making = patiently(&handle, || Making::begin(&directories)).await?;
        if let Some(identity) = directory::read_all(&directories)? {
            drop(making);
            if is == Is::Unfinished {
                return Err(directory::holds_one(&directories[0]));
            }
            return Box::pin(Self::reopen(handle, directories, options, identity)).await;
        }
        let made = Self::make(handle, directories.clone(), options, capacity, &mut making);
        let mut made = Box::pin(made).await?;
        match is {
            Is::Whole => directory::finish(&directories)?,
            Is::Unfinished => made.making = Some(making),
        }
        Ok(made)
    }

    async fn make(
        handle: Handle,
        directories: Vec<PathBuf>,
        options: Options,
        capacity: u64,
        making: &mut Making,
    ) -> Result<Self, Error> {
        let id = handle.rng("store identity").next_u64() as u32;
        let identity = Identity {
            inline_up_to: options.inline_up_to,
            page_bytes: options.page_bytes,
            directories: directory::known_as(&directories),
            ..Identity::new(id, directories.len() as u16, capacity)
        };
        let is_on_drives = growth::is_on_drives(&directories);
        let identity = if is_on_drives { identity.growing_to(0) } else { identity };
        let files: Vec<PathBuf> = directories.iter().map(|d| directory::data_file(d)).collect();
        for (directory, file) in directories.iter().zip(&files) {
            directory::check_is_free(directory, file)?;
        }
        // If some directories are marked as incomplete and none as complete, later openings do not
        // treat this as a store that lost its other directories, and know that the files beside the
        // mark are of no store.
        directory::write_all(&directories, &Identity { is_being_made: true, ..identity.clone() })?;
        // Left over from a creation that was interrupted.
        for file in files.iter().filter(|file| file.exists() && !drive::is_drive(file)) {
            let removed = std::fs::remove_file(file);
            removed.map_err(|error| {
                Error::system(format_args!("{}: {error}", file.display()), error.kind())
            })?;
        }
        making.leave_drives();
        let device =
            FileDevice::create(&handle, &files, identity.capacity_bytes, file_options()).await;
        let device = device.map_err(|error| Error::of_file(&error))?;
        preallocate(&device, &options, &identity).await?;
        let device = Device::new(device);
        directory::check_drives(&directories, &identity)?;
        let place = Place { files: files.into(), page_bytes: u64::from(identity.page_bytes) };
        let mut members = ranges(&device, &identity, &place);
        let files = if members.len() == 1 {
            Files::One(members.swap_remove(0))
        } else {
            let volume = Volume::create(volume_setup(&handle, members, &options, &identity));
            Files::Many(volume.map_err(|error| Error::system(error, ErrorKind::Other))?)
        };
        let volume = files.volume().cloned();
        let failed = |error: OpenError| refused(&error, &place, &device);
        let engine = Engine::create(setup(&handle, files, &options, &identity));
        let engine = engine.map(FileEngine).map_err(failed)?;
        // The store exists once its first checkpoint is durable; only then may it be marked as
        // complete.
        engine.begun().await.map_err(|error| failed(error.into()))?;
        Self::of(&handle, engine, volume, device, place, Vec::new(), &options).await
    }

    async fn reopen(
        handle: Handle,
        directories: Vec<PathBuf>,
        options: Options,
        identity: Identity,
    ) -> Result<Self, Error> {
        let found = Box::pin(find(&handle, &directories, &options, identity)).await;
        let Found { mut device, identity, place, lost } =
            found.map_err(|error| directory::with_a_way_out(&directories, error))?;
        if options.read_only {
            device = device.read_only();
        } else {
            directory::keep_names(&directories)?;
            directory::say_whole(&directories)?;
            growth::say_capacity(&directories, identity.capacity_bytes)?;
        }
        let mut members = ranges(&device, &identity, &place);
        let files = if members.len() == 1 {
            Files::One(members.swap_remove(0))
        } else {
            let setup = volume_setup(&handle, members, &options, &identity);
            let volume = Box::pin(Volume::recover(setup)).await;
            Files::Many(volume.map_err(|error| {
                directory::with_a_way_out(&directories, Error::of_volume(&error, &place))
            })?)
        };
        let volume = files.volume().cloned();
        let engine = Box::pin(Engine::open(setup(&handle, files, &options, &identity))).await;
        let engine = engine.map(FileEngine).map_err(|error| match (&error, &volume) {
            (OpenError::Medium(MediumError::Gone), Some(volume)) => {
                too_many_away(volume, &directories)
            }
            _ => refused(&error, &place, &device),
        })?;
        // Waits for the first checkpoint if the store had none yet. If the process ended while it
        // is being written, the store could not be opened with a directory missing.
        let begun = engine.begun().await;
        begun.map_err(|error| refused(&error.into(), &place, &device))?;
        // Adopts drives only after a successful opening: a drive that a failed opening had adopted
        // would not count as lost when another member is.
        if !options.read_only {
            directory::adopt_drives(&directories, &identity)?;
        }
        if let Some(volume) = &volume {
            volume.note_tenures().await;
            volume.begin_filling();
        }
        if lost.is_empty() && !options.read_only {
            directory::note_names(&directories, &identity);
        }
        Self::of(&handle, engine, volume, device, place, lost, &options).await
    }

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

/// The opened files of an existing store.
struct Found {
    device: Device,
    identity: Identity,
    place: Place,
    /// Directories that are lost or read-only.
    lost: Vec<PathBuf>,
}

/// Opens the files of an existing store, and restores missing ones as far as the options ask for
/// it.
async fn find(
    handle: &Handle,
    directories: &[PathBuf],
    options: &Options,
    identity: Identity,
) -> Result<Found, Error> {
    if !options.degraded {
        directory::check_names(directories)?;
    }
    directory::check_files(directories)?;
    if directory::may_complete(directories, options) {
        // Nothing is restored while another process has the store open.
        let held = patiently(handle, || directory::hold(directories)).await?;
        directory::complete(directories, &identity, options)?;
        drop(held);
    }
    let mut lost = directory::lost(directories);
    let grown = growth::wanted(directories, options, &identity)?;
    let read_only = if options.read_only { Vec::new() } else { directory::read_only(directories) };
    // One read-only member is tolerated: the store runs without it, and it keeps its earlier
    // contents. Two are not, nor one together with a lost member.
    let bears_read_only =
        directories.len() > 1 && lost.is_empty() && grown.is_none() && read_only.len() == 1;
    let file_options = FileOptions {
        read_only: options.read_only,
        least_bytes: grown.unwrap_or(0),
        bears_read_only,
        ..file_options()
    };
    let files: Vec<PathBuf> = directories.iter().map(|d| directory::data_file(d)).collect();
    let device = open_files(handle, &files, file_options).await?;
    lost.extend(read_only);
    // The previous user of the files may have made them larger in between.
    let known = directory::read_all(directories)?.unwrap_or(identity);
    let capacity_bytes = known.capacity_bytes.max(grown.unwrap_or(0));
    let identity = Identity { capacity_bytes, ..known };
    preallocate(&device, options, &identity).await?;
    let device = Device::new(device);
    let place = Place { files: files.into(), page_bytes: u64::from(identity.page_bytes) };
    check_size(&device, &identity, &place)?;
    Ok(Found { device, identity, place, lost })
}

/// Returns the error for a volume that lacks too many members, with the reason for each directory.
fn too_many_away(volume: &Volume<Member>, directories: &[PathBuf]) -> Error {
    let each = |members: Vec<usize>, what: &'static str| {
        members.into_iter().map(move |member| format!("{} {what}", directories[member].display()))
    };
    let (away, unread) = (volume.failed_members(), volume.unread_members());
    let is_other = |member: &usize| !away.contains(member) && !unread.contains(member);
    let behind = volume.members_behind().into_iter().filter(is_other).collect();
    let has_unread = !unread.is_empty();
    let all: Vec<String> = each(away, "is gone")
        .chain(each(unread, "could not be read in part"))
        .chain(each(behind, "lacks what was written without it"))
        .collect();
    let again = if has_unread { "see to what cannot be read, " } else { "" };
    Error::Missing(format!(
        "{}: {again}bring back what is away and open the store with all of its directories; `levelhead repair` saves what the others have",
        all.join(", ")
    ))
}

/// Allocates all space of the files, if the options ask for it.
async fn preallocate(
    device: &FileDevice,
    options: &Options,
    identity: &Identity,
) -> Result<(), Error> {
    if !options.preallocate || options.read_only {
        return Ok(());
    }
    let given = device.preallocate(identity.capacity_bytes).await;
    given.map_err(|error| Error::of_file(&error))
}

pub(crate) fn file_options() -> FileOptions {
    FileOptions {
        discards: Discards::Ignore,
        room: RoomOf::Written,
        bears_missing: true,
        ..FileOptions::default()
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

/// How long to wait for files or locks that another process holds.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Calls `begin` again while it returns [`Error::InUse`], for up to [`PATIENCE`].
async fn patiently<T>(handle: &Handle, begin: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let begun = handle.now();
    loop {
        match begin() {
            Err(Error::InUse(_)) if handle.now() - begun < PATIENCE => {
                handle.sleep(Nanos::from_millis(10)).await;
            }
            got => return got,
        }
    }
}

/// Opens the files of a store. A process that was just killed may hold them a little longer, until
/// the kernel has completed its I/O.
pub(crate) async fn open_files(
    handle: &Handle,
    files: &[PathBuf],
    options: FileOptions,
) -> Result<FileDevice, Error> {
    let begun = handle.now();
    loop {
        match FileDevice::open(handle, files, options).await {
            Err(FileError::InUse(_)) if handle.now() - begun < PATIENCE => {
                handle.sleep(Nanos::from_millis(10)).await;
            }
            Err(FileError::Missing(path)) => return Err(Error::lost(path, "it is not there")),
            Err(FileError::TooSmall(path)) => {
                return Err(Error::lost(path, "it is shorter than a page"));
            }
            opened => return opened.map_err(|error| Error::of_file(&error)),
        }
    }
}

/// Returns the capacity of each member of a new store, in bytes of pages: the requested size,
/// limited by the size of drives. It is never below the minimum capacity.
fn capacity_of(directories: &[PathBuf], wanted: u64) -> Result<u64, Error> {
    let mut capacity = wanted;
    for path in directories.iter().filter(|path| drive::is_drive(path)) {
        let bytes = drive::bytes(path)?;
        capacity = capacity.min(bytes.saturating_sub(drive::FIRST_BYTE));
        if capacity < LEAST_CAPACITY {
            let least = LEAST_CAPACITY + drive::FIRST_BYTE;
            return Err(Error::Invalid(format!(
                "{} has {bytes} bytes, a store takes {least} at least",
                path.display()
            )));
        }
    }
    let most = most_capacity(directories.len());
    if capacity > most {
        return Err(Error::Invalid(format!(
            "capacity_bytes is {capacity}, must be {most} at most over {} directories: a store has less than 2^32 pages of 4 KiB",
            directories.len()
        )));
    }
    Ok(capacity)
}

/// Checks that no file is shorter than the store's capacity, before anything is read from it. Such
/// a file was truncated or is another one.
fn check_size(device: &Device, identity: &Identity, place: &Place) -> Result<(), Error> {
    for (shape, path) in device.sets().iter().zip(place.files.iter()) {
        let wanted = drive::first_byte(path) + identity.capacity_bytes;
        if shape.blocks < wanted / u64::from(block::BLOCK_BYTES) {
            let found = shape.blocks * u64::from(block::BLOCK_BYTES);
            return Err(Error::too_short(path, found, identity.capacity_bytes));
        }
    }
    Ok(())
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
