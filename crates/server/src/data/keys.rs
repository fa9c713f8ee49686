//! Keys of the store: the first byte is the kind of the record, and related records are adjacent
//! and in order.
//!
//! Keys of the store have at most 255 bytes, so names of users are shorter.

use crate::fault::Fault;

/// Maximum length of a user key and of a hash field, in bytes: 255 less the first byte and a time
/// or collection id of 8 bytes.
pub(crate) const MAX_KEY_BYTES: usize = 246;
/// Maximum length of a member of a sorted set, in bytes: its key in [`Space::Score`] also has the
/// score.
pub(crate) const MAX_MEMBER_BYTES: usize = 238;

/// The kind of record, and the first byte of its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Space {
    /// Records of the server itself.
    Server = 0x01,
    /// Strings, by user key.
    String = 0x10,
    /// Heads of hashes and sorted sets, by user key.
    Head = 0x11,
    /// Fields of hashes, by collection and field.
    Field = 0x20,
    /// Scores, by collection and member.
    Member = 0x30,
    /// Members, by collection, score and member.
    Score = 0x31,
    /// Notes of keys with an expiry, by time and user key.
    Expiry = 0x40,
    /// Notes of dropped collections whose parts are not swept yet, by collection.
    Dropped = 0x41,
}

/// The id of a collection; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CollectionId(pub u64);

/// The number of user keys, after a clean stop.
pub(crate) const COUNT: [u8; 2] = [Space::Server as u8, b'c'];
/// The end of the collection ids that may have been assigned.
pub(crate) const NUMBERS: [u8; 2] = [Space::Server as u8, b'n'];
/// The version of this layout.
pub(crate) const VERSION: [u8; 2] = [Space::Server as u8, b'v'];

fn joined(space: Space, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(space as u8);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// Whether a user key is short enough to exist.
pub(crate) fn fits(key: &[u8]) -> bool {
    key.len() <= MAX_KEY_BYTES
}

/// Returns an error if a user key is too long to be written.
pub(crate) fn check(key: &[u8]) -> Result<(), Fault> {
    if fits(key) {
        return Ok(());
    }
    Err(Fault::error(format!("key has {} bytes, at most {MAX_KEY_BYTES} are possible", key.len())))
}

/// Returns an error if a field of a hash is too long.
pub(crate) fn check_field(field: &[u8]) -> Result<(), Fault> {
    if field.len() <= MAX_KEY_BYTES {
        return Ok(());
    }
    let length = field.len();
    Err(Fault::error(format!("field has {length} bytes, at most {MAX_KEY_BYTES} are possible")))
}

/// Returns an error if a member of a sorted set is too long.
pub(crate) fn check_member(member: &[u8]) -> Result<(), Fault> {
    if member.len() <= MAX_MEMBER_BYTES {
        return Ok(());
    }
    let length = member.len();
    Err(Fault::error(format!("member has {length} bytes, at most {MAX_MEMBER_BYTES} are possible")))
}

pub(crate) fn string(key: &[u8]) -> Vec<u8> {
    joined(Space::String, &[key])
}

pub(crate) fn head(key: &[u8]) -> Vec<u8> {
    joined(Space::Head, &[key])
}

pub(crate) fn field(id: CollectionId, field: &[u8]) -> Vec<u8> {
    joined(Space::Field, &[&id.0.to_be_bytes(), field])
}

pub(crate) fn member(id: CollectionId, member: &[u8]) -> Vec<u8> {
    joined(Space::Member, &[&id.0.to_be_bytes(), member])
}

pub(crate) fn score(id: CollectionId, score: f64, member: &[u8]) -> Vec<u8> {
    joined(Space::Score, &[&id.0.to_be_bytes(), &ordered(score).to_be_bytes(), member])
}

/// Returns the key at which members with at least this score begin; `number` is [`ordered`] of the
/// score.
pub(crate) fn scores_from(id: CollectionId, number: u64) -> Vec<u8> {
    joined(Space::Score, &[&id.0.to_be_bytes(), &number.to_be_bytes()])
}

pub(crate) fn expiry(at_ms: u64, key: &[u8]) -> Vec<u8> {
    joined(Space::Expiry, &[&at_ms.to_be_bytes(), key])
}

pub(crate) fn dropped(id: CollectionId) -> Vec<u8> {
    joined(Space::Dropped, &[&id.0.to_be_bytes()])
}

/// Returns the range of the parts of a collection; the end is exclusive.
pub(crate) fn parts(space: Space, id: CollectionId) -> (Vec<u8>, Vec<u8>) {
    let next = id.0.checked_add(1).expect("numbers of collections do not run out");
    (joined(space, &[&id.0.to_be_bytes()]), joined(space, &[&next.to_be_bytes()]))
}

/// Returns the range of a space; the end is exclusive.
pub(crate) fn all(space: Space) -> (Vec<u8>, Vec<u8>) {
    (vec![space as u8], vec![space as u8 + 1])
}

/// Returns the part of a key after the collection id.
pub(crate) fn behind_id(key: &[u8]) -> Option<&[u8]> {
    key.get(9..)
}

/// Splits a key of [`Space::Score`] into score and member.
pub(crate) fn split_score(key: &[u8]) -> Option<(f64, &[u8])> {
    let (bits, member) = key.get(9..)?.split_first_chunk::<8>()?;
    Some((unordered(u64::from_be_bytes(*bits)), member))
}

/// Splits a key of [`Space::Expiry`] into time in milliseconds and user key.
pub(crate) fn split_expiry(key: &[u8]) -> Option<(u64, &[u8])> {
    let (at, key) = key.get(1..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*at), key))
}

/// Returns the collection of a key of [`Space::Dropped`].
pub(crate) fn split_dropped(key: &[u8]) -> Option<CollectionId> {
    let (id, _) = key.get(1..)?.split_first_chunk::<8>()?;
    Some(CollectionId(u64::from_be_bytes(*id)))
}

/// Maps scores to integers in the same order: sets the sign bit of positive scores and inverts all
/// bits of negative ones. Both zeros map to the same integer.
pub(crate) fn ordered(score: f64) -> u64 {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

pub(crate) fn unordered(number: u64) -> f64 {
    f64::from_bits(if number >> 63 == 1 { number & !(1 << 63) } else { !number })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "what comes back is the same to the bit")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scores_keep_their_order(a in prop::num::f64::ANY, b in prop::num::f64::ANY) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(a.partial_cmp(&b), Some(ordered(a).cmp(&ordered(b))));
            prop_assert_eq!(unordered(ordered(a)), a);
        }

        #[test]
        fn members_come_back(id: u64, number in -1e9..1e9, name in prop::collection::vec(any::<u8>(), 0..30)) {
            let key = score(CollectionId(id), number, &name);
            prop_assert_eq!(split_score(&key), Some((number, &name[..])));
            let key = expiry(id, &name);
            prop_assert_eq!(split_expiry(&key), Some((id, &name[..])));
            prop_assert_eq!(split_dropped(&dropped(CollectionId(id))), Some(CollectionId(id)));
        }
    }

    #[test]
    fn the_longest_names_fit() {
        let (name, most) = ([7; MAX_KEY_BYTES], 255);
        let id = CollectionId(1);
        assert!(string(&name).len() <= most && head(&name).len() <= most);
        assert_eq!((field(id, &name).len(), expiry(1, &name).len()), (most, most));
        assert_eq!(score(id, 1.0, &name[..MAX_MEMBER_BYTES]).len(), most);
        assert!(check(&name).is_ok() && check(&[7; MAX_KEY_BYTES + 1]).is_err());
    }
}
