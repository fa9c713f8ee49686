//! Opening an existing store.

use std::path::PathBuf;

use block::BlockDevice;
use engine::{Engine, MediumError, OpenError};
use files::FileOptions;
use runtime::Handle;
use volume::Volume;

use super::{Root, refused};
use crate::device::Device;
use crate::device::open_files::{file_options, open_files, patiently, preallocate};
use crate::directory::growth;
use crate::directory::identity::Identity;
use crate::error::Error;
use crate::error::place::Place;
use crate::file_engine::{FileEngine, Files, Member};
use crate::options::Options;
use crate::set_up::{ranges, setup, volume_setup};
use crate::{directory, drive};

impl Root {
    /// Opens the store that `identity` describes.
    pub(super) async fn reopen(
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
