//! Creation of a new store in directories that have none.

use std::io::ErrorKind;
use std::path::PathBuf;

use engine::{Engine, OpenError};
use files::FileDevice;
use runtime::Handle;
use volume::Volume;

use super::{Root, refused};
use crate::device::Device;
use crate::device::open_files::{file_options, preallocate};
use crate::directory::capacity::most_capacity;
use crate::directory::growth;
use crate::directory::identity::Identity;
use crate::directory::making::Making;
use crate::error::Error;
use crate::error::place::Place;
use crate::file_engine::{FileEngine, Files};
use crate::options::{LEAST_CAPACITY, Options};
use crate::set_up::{ranges, setup, volume_setup};
use crate::{directory, drive};

impl Root {
    /// Creates the store. It is still marked as incomplete.
    pub(super) async fn make(
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
}

/// Returns the capacity of each member of a new store, in bytes of pages: the requested size,
/// limited by the size of drives. It is never below the minimum capacity.
pub(super) fn capacity_of(directories: &[PathBuf], wanted: u64) -> Result<u64, Error> {
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
