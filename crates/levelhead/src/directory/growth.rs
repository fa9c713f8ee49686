//! How a store's files become larger: each of them first, and then what the directories say of them.
//!
//! A file that is longer than its directory says is as good as one that is not. So the largest size that any directory says is the store's, whatever
//! came in between, and those that say less follow when it is opened the next time.

use std::path::{Path, PathBuf};

use block::BLOCK_BYTES;

use super::names::in_words;
use super::{Identity, data_file, lost, read, write};
use crate::drive::is_drive;
use crate::error::Error;
use crate::options::Options;

/// Pages have numbers of 32 bits.
const MOST_PAGES: u64 = u32::MAX as u64;
/// Bytes that the file of a new store may grow to, at least.
const LEAST_GROWTH: u64 = 512 << 30;
/// How many times as large as it was made it may become, at least.
const TIMES: u64 = 16;

/// Bytes of pages that each file of a store over so many directories may have. Pages are of 4 KiB, and some of them are parity.
pub(crate) fn most_capacity(members: usize) -> u64 {
    let of_data = members.saturating_sub(1).max(1) as u64;
    MOST_PAGES / of_data * u64::from(BLOCK_BYTES)
}

/// Bytes of data on so many files of `bytes` each: what one of several has is parity.
pub(crate) fn of_data(members: usize, bytes: u64) -> u64 {
    bytes.saturating_mul(members.saturating_sub(1).max(1) as u64)
}

/// Bytes that a file may grow to which is made with `capacity_bytes`: few different ones, as [`crate::surmise`] has to guess it. Pointers to values are cut for
/// so many; up to 512 GiB they have five bytes.
pub(super) fn grows_to(members: usize, capacity_bytes: u64, extent_bytes: u64) -> u64 {
    let wanted = TIMES.saturating_mul(capacity_bytes).checked_next_power_of_two();
    let wanted = wanted.unwrap_or(u64::MAX).max(LEAST_GROWTH);
    wanted.min(most_capacity(members)) / extent_bytes * extent_bytes
}

/// What files of `bytes` may have been made to grow to, the likeliest first.
pub(crate) fn growths(members: usize, bytes: u64, extent_bytes: u64) -> Vec<u64> {
    let mut all = vec![grows_to(members, bytes, extent_bytes), 0];
    for times in [2, 4, 8, 16] {
        let other = grows_to(members, bytes / times, extent_bytes);
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Whether a store's files have the size of drives, which do not grow.
pub(crate) fn is_on_drives(directories: &[PathBuf], options: &Options) -> bool {
    options.simulated_drive.is_some() || directories.iter().any(|path| is_drive(path))
}

/// The size, in bytes, that the options ask for each of a store's files, if they have to become larger for it. Those of drives are as large as
/// they are.
///
/// # Errors
/// [`Error::Invalid`]: the store cannot become so large, or not all of its directories are there.
pub(crate) fn wanted(
    directories: &[PathBuf],
    options: &Options,
    identity: &Identity,
) -> Result<Option<u64>, Error> {
    let (asked, has) = (options.capacity_bytes, identity.capacity_bytes);
    if options.read_only
        || is_on_drives(directories, options)
        || asked / identity.extent_bytes <= has / identity.extent_bytes
    {
        return Ok(None);
    }
    let most = identity.grows_to_bytes.max(has);
    if asked > most {
        let whose = if identity.grows_to_bytes == 0 { " (an earlier version made it)" } else { "" };
        return Err(Error::Invalid(format!(
            "capacity_bytes is {asked}, and the store, which has {has}, can grow to {most} at most{whose}: copy it into a larger one \
             (Store::checkpoint, levelhead backup)"
        )));
    }
    let lost = lost(directories);
    if !lost.is_empty() {
        return Err(Error::Invalid(format!(
            "capacity_bytes is {asked}, the store has {has}, and it grows only with all of its directories: {} is lost; leave capacity_bytes as \
             it is until the store is whole again",
            in_words(&lost)
        )));
    }
    for path in directories.iter().map(|directory| data_file(directory)) {
        check_length(&path, has)?;
    }
    Ok(Some(asked / identity.extent_bytes * identity.extent_bytes))
}

/// A file that was cut short is not made longer, which would look as if nothing were missing.
fn check_length(path: &Path, has: u64) -> Result<(), Error> {
    let found = path.metadata().map_err(|error| Error::of_path(path, "measured", &error))?;
    if found.len() < has {
        return Err(Error::too_short(path, found.len(), has));
    }
    Ok(())
}

/// Has all directories say that their files have `capacity_bytes`, which they have by now. Cost: nothing where they do already.
pub(crate) fn say_capacity(directories: &[PathBuf], capacity_bytes: u64) -> Result<(), Error> {
    for directory in directories {
        if let Some(said) = read(directory)?.filter(|said| said.capacity_bytes < capacity_bytes) {
            write(directory, &Identity { capacity_bytes, ..said })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_may_become_sixteen_times_as_large_and_512_gib_in_any_case() {
        for members in [1, 3, 9] {
            for shift in 26..43 {
                let made = Identity::new(1, members, 3 << (shift - 1));
                let (has, most) = (made.capacity_bytes, made.grows_to_bytes);
                let limit = most_capacity(members.into());
                assert!(
                    most >= (16 * has).max(512 << 30).min(limit - made.extent_bytes),
                    "{made:?}"
                );
                assert!(most <= limit && most.is_multiple_of(made.extent_bytes), "{made:?}");
            }
        }
    }

    #[test]
    fn what_a_file_was_made_to_grow_to_is_among_what_its_length_says() {
        for shift in 26..40 {
            let made = Identity::new(1, 1, 3 << (shift - 1));
            for times in 1..=16 {
                let (bytes, extent) = (times * made.capacity_bytes, made.extent_bytes);
                let found = growths(1, bytes, extent);
                assert!(found.contains(&made.grows_to_bytes), "{made:?} x {times}: {found:?}");
            }
        }
    }
}
