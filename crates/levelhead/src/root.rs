//! A store within the runtime, made or opened: what its lock is around.

use std::cell::Cell;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;

use block::BlockDevice;
use engine::Engine;
use files::{Discards, FileDevice, FileError, FileOptions, Locks, RoomOf, Waits};
use pages::{Lack, LogSync, MediumError, OpenError};
use runtime::{Handle, Nanos};
use ssd::SsdProfile;
use volume::Volume;

use crate::device::{self, Device};
use crate::directory::{self, Identity, Making, growth};
use crate::drive;
use crate::error::{Error, Place};
use crate::file_engine::{FileEngine, Files, Member};
use crate::options::{LEAST_CAPACITY, Options, USUAL_CAPACITY, check_settled};
use crate::reading::Reading;
use crate::set_up::{ranges, setup, volume_setup};
use crate::statistics::DirectoryState;

/// A store in its runtime. What is asked for of it is cloned: a future may not hold on to it.
pub(crate) struct Root {
    pub engine: FileEngine,
    pub reading: Rc<Reading>,
    pub place: Place,
    pub default_sync: LogSync,
    /// What the engine is on, if that is several files.
    pub volume: Option<Volume<Member>>,
    pub device: Device,
    /// Directories that were lost when it was opened.
    pub lost: Vec<PathBuf>,
    /// Whether it was opened to be read only.
    pub is_read_only: bool,
    /// As long as it does not say that it is whole.
    pub making: Option<Making>,
    /// Why it has no windows, though they were asked for; until somebody is told.
    pub no_windows: Cell<Option<String>>,
}

/// What a store says of itself once it is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    /// All of it is there.
    Whole,
    /// It is a copy that has not all pairs yet: nobody is to take it for one that has.
    Unfinished,
}

impl Root {
    /// Makes a store in `directories`, which have none, or opens the one that they have.
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

    /// Makes a store, unless somebody else does meanwhile: then it is the one to open.
    pub(crate) async fn create(
        handle: Handle,
        directories: Vec<PathBuf>,
        options: Options,
        is: Is,
    ) -> Result<Self, Error> {
        let profile = device::profile(options.simulated_drive.as_deref(), directories.len())?;
        let most = profile.as_ref().map_or(u64::MAX, device::capacity_beside);
        let wanted = match options.capacity_bytes {
            0 => USUAL_CAPACITY,
            given => given,
        };
        let capacity = capacity_of(&directories, wanted.min(most))?;
        directories.iter().try_for_each(|directory| directory::make(directory))?;
        // Keeps others from making a store in the same places.
        let mut making = patiently(&handle, || Making::begin(&directories)).await?;
        if let Some(identity) = directory::read_all(&directories)? {
            drop(making);
            if is == Is::Unfinished {
                return Err(directory::holds_one(&directories[0]));
            }
            return Box::pin(Self::reopen(handle, directories, options, identity)).await;
        }
        let (places, profile) = (directories.clone(), profile.as_ref());
        let made = Self::make(handle, places, options, capacity, profile, &mut making);
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
        profile: Option<&SsdProfile>,
        making: &mut Making,
    ) -> Result<Self, Error> {
        let id = handle.rng("store identity").next_u64() as u32;
        let identity = Identity {
            inline_up_to: options.inline_up_to,
            page_bytes: options.page_bytes,
            directories: directory::known_as(&directories),
            ..Identity::new(id, directories.len() as u16, capacity)
        };
        let is_on_drives = growth::is_on_drives(&directories, &options);
        let identity = if is_on_drives { identity.growing_to(0) } else { identity };
        let files: Vec<PathBuf> = directories.iter().map(|d| directory::data_file(d)).collect();
        for (directory, file) in directories.iter().zip(&files) {
            directory::check_is_free(directory, file)?;
        }
        // Where some of them say so and none that it is whole, nobody takes it for a store that lost the others, and what is
        // beside it is known to be nobody's.
        directory::write_all(&directories, &Identity { is_being_made: true, ..identity.clone() })?;
        // Left by somebody who was ended while it made a store.
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
        let device = Device::new(&handle, device, profile)?;
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
        // A store is there once its first checkpoint is, and may say so then.
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
        // Where there was nothing yet: ended while its first checkpoint is written, the store could not do without a directory.
        let begun = engine.begun().await;
        begun.map_err(|error| refused(&error.into(), &place, &device))?;
        // Had one been adopted by an opening that failed, it would not count as lost when another one is.
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

    /// Refuses an opening in which a write found no room that the store cannot do without: it would take no writes
    /// until it is opened again, room or not. The next write tells.
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

    /// From now on what does not fit on a disk is written once there is room, and callers are told meanwhile.
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

    /// Bytes of each of the store's files, at most.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let sets = self.device.sets();
        sets.first().map_or(0, |set| set.blocks * u64::from(block::BLOCK_BYTES))
    }

    /// The directories, and how each of them is.
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

    /// What the files have had to complain of since this was last asked.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let of_files = self.device.troubles();
        of_files.iter().map(ToString::to_string).chain(self.no_windows.take()).collect()
    }
}

/// The files of a store that is there, open.
struct Found {
    device: Device,
    identity: Identity,
    place: Place,
    /// Directories that are lost, or take no writes.
    lost: Vec<PathBuf>,
}

/// Opens the files of a store that is there, and makes anew what is missing as far as that is asked for.
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
        // Nothing is made for a store that somebody has.
        let held = patiently(handle, || directory::hold(directories)).await?;
        directory::complete(directories, &identity, options)?;
        drop(held);
    }
    let mut lost = directory::lost(directories);
    let grown = growth::wanted(directories, options, &identity)?;
    let read_only = if options.read_only { Vec::new() } else { directory::read_only(directories) };
    // It goes on without one, which has what it was given before; two would have to be told apart from one that is away.
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
    // Who had the files until now may have made them larger.
    let known = directory::read_all(directories)?.unwrap_or(identity);
    let capacity_bytes = known.capacity_bytes.max(grown.unwrap_or(0));
    let identity = Identity { capacity_bytes, ..known };
    preallocate(&device, options, &identity).await?;
    let profile = device::profile(options.simulated_drive.as_deref(), directories.len())?;
    let device = Device::new(handle, device, profile.as_ref())?;
    let place = Place { files: files.into(), page_bytes: u64::from(identity.page_bytes) };
    check_size(&device, &identity, &place)?;
    Ok(Found { device, identity, place, lost })
}

/// Of which directories a store lacks too much.
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

/// Gives files all of their room, if that is asked for.
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

/// Why the engine does not open. Where a write found no room, that is the cause of what failed behind it.
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

/// How long it is tried to get what another one has.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Tries for a while to get what others have.
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

/// Opens the files of a store. A process that has just been killed may have them a little
/// longer, until the kernel is done with its I/O.
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

/// Bytes of pages on each member of a new store: what is asked for, as far as drives have room. A store is at least as large as
/// it may be asked for.
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
    let most = growth::most_capacity(directories.len());
    if capacity > most {
        return Err(Error::Invalid(format!(
            "capacity_bytes is {capacity}, must be {most} at most over {} directories: a store has less than 2^32 pages of 4 KiB",
            directories.len()
        )));
    }
    Ok(capacity)
}

/// A file that was cut short, or was taken for another one's, is told before anything is read of it.
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

/// What a thread outside may know of a store that was opened.
pub(crate) struct Outside {
    pub place: Place,
    pub default_sync: LogSync,
    /// Whether callers may read values by themselves, as far as the device lets them: not past a volume, which knows in which
    /// windows its members are, and rebuilds what one of them does not have.
    pub reads_values: bool,
    /// Whether it takes no writes.
    pub is_read_only: bool,
    /// Others are kept from its files by these.
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
