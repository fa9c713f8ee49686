//! Growth of a store's files: first each file grows, then each directory records the new size.
//!
//! A file that is longer than its directory records is valid. So the largest size that any
//! directory records is the store's size, even after an interruption; the other directories are
//! updated at the next opening.

use std::path::{Path, PathBuf};

use block::BLOCK_BYTES;

use super::names::in_words;
use super::{Identity, data_file, lost, read, write};
use crate::drive::is_drive;
use crate::error::Error;
use crate::options::Options;

/// Page numbers have 32 bits.
const MOST_PAGES: u64 = u32::MAX as u64;
/// The minimum growth limit of a new store's files, in bytes.
const LEAST_GROWTH: u64 = 512 << 30;
/// The minimum growth limit, as a multiple of the size at creation.
const TIMES: u64 = 16;

/// Returns the maximum size of each file of a store over `members` directories, in bytes. It
/// assumes pages of 4 KiB, and subtracts parity.
pub(crate) fn most_capacity(members: usize) -> u64 {
    let of_data = members.saturating_sub(1).max(1) as u64;
    MOST_PAGES / of_data * u64::from(BLOCK_BYTES)
}

/// Returns the bytes of data on `members` files of `bytes` each; of several files, the equivalent
/// of one is parity.
pub(crate) fn of_data(members: usize, bytes: u64) -> u64 {
    bytes.saturating_mul(members.saturating_sub(1).max(1) as u64)
}

/// Returns the growth limit of a file that is created with `capacity_bytes`, in bytes. It has few
/// distinct values, because `repair/infer_identity.rs` must guess it. Pointers to values are sized for this
/// limit; up to 512 GiB they take five bytes.
pub(super) fn grows_to(members: usize, capacity_bytes: u64, extent_bytes: u64) -> u64 {
    let wanted = TIMES.saturating_mul(capacity_bytes).checked_next_power_of_two();
    let wanted = wanted.unwrap_or(u64::MAX).max(LEAST_GROWTH);
    wanted.min(most_capacity(members)) / extent_bytes * extent_bytes
}

/// Returns the possible growth limits of a store whose files have `bytes`, the most likely first.
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

/// Whether the size of a store's files is that of drives, which do not grow.
pub(crate) fn is_on_drives(directories: &[PathBuf]) -> bool {
    directories.iter().any(|path| is_drive(path))
}

/// Returns the size, in bytes, to which the options make each of a store's files grow, or `None` if
/// they need not grow. Files on drives do not grow.
///
/// # Errors
/// Returns [`Error::Invalid`] if the store cannot become so large, or if a directory is lost.
pub(crate) fn wanted(
    directories: &[PathBuf],
    options: &Options,
    identity: &Identity,
) -> Result<Option<u64>, Error> {
    let (asked, has) = (options.capacity_bytes, identity.capacity_bytes);
    if options.read_only
        || is_on_drives(directories)
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

/// Checks that a file was not truncated. Extending a truncated file would hide the loss.
fn check_length(path: &Path, has: u64) -> Result<(), Error> {
    let found = path.metadata().map_err(|error| Error::of_path(path, "measured", &error))?;
    if found.len() < has {
        return Err(Error::too_short(path, found.len(), has));
    }
    Ok(())
}

/// Records in all directories that their files have grown to `capacity_bytes`. Writes only to
/// directories that record less.
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
