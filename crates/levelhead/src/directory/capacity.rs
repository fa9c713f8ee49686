//! The sizes of a store's files: their limits and those of growth.

use block::BLOCK_BYTES;

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
/// distinct values, because `repair/infer_identity.rs` must guess it. Pointers to values are sized
/// for this limit; up to 512 GiB they take five bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::identity::Identity;

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
