//! Opening a store, or creating it if there is none.

use std::path::PathBuf;

use runtime::Handle;

use super::Root;
use super::make::capacity_of;
use crate::device::open_files::patiently;
use crate::directory;
use crate::directory::identity::check_settled;
use crate::directory::making::Making;
use crate::error::Error;
use crate::options::{Options, USUAL_CAPACITY};

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
}
