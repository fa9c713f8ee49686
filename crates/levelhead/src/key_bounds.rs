//! Bounds of ranges of keys.

use std::ops::{Bound, RangeBounds};

/// The length of the longest key, in bytes.
pub(crate) const LONGEST: usize = 255;

/// Returns the first possible key after `key`. If `key` has the maximum length or more, returns a
/// bound after all keys that start with its first [`LONGEST`] bytes.
pub(crate) fn successor(key: &[u8]) -> Box<[u8]> {
    let begins = &key[..key.len().min(LONGEST)];
    [begins, &[0]].concat().into()
}

/// Converts `bounds` to an inclusive lower and an exclusive upper bound. Bounds may be longer than
/// keys: such a bound sorts after the key that is its prefix of [`LONGEST`] bytes.
pub(crate) fn half_open<'a>(bounds: &impl RangeBounds<&'a [u8]>) -> (Box<[u8]>, Option<Box<[u8]>>) {
    let from = match bounds.start_bound() {
        Bound::Included(key) if key.len() <= LONGEST => (*key).into(),
        Bound::Included(key) | Bound::Excluded(key) => successor(key),
        Bound::Unbounded => Box::default(),
    };
    let to = match bounds.end_bound() {
        Bound::Excluded(key) if key.len() <= LONGEST => Some((*key).into()),
        Bound::Excluded(key) | Bound::Included(key) => Some(successor(key)),
        Bound::Unbounded => None,
    };
    (from, to)
}

/// Returns the first key after all keys that start with `prefix`, or `None` if there is no such
/// key.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = prefix[..=last].to_owned();
    after[last] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_a_prefix_end_in_front_of_the_first_that_has_another() {
        for (prefix, after) in [
            (&b""[..], None),
            (b"day ", Some(&b"day!"[..])),
            (b"a\xff\xff", Some(b"b")),
            (b"\xff\xff", None),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), after, "{prefix:?}");
        }
    }

    #[test]
    fn bounds_longer_than_keys_lie_behind_the_keys_that_they_begin_with() {
        let (long, longest) = (&[7; 300][..], &[7; LONGEST][..]);
        let behind: Box<[u8]> = [longest, &[0]].concat().into();
        let of = |low: Bound<&[u8]>, high: Bound<&[u8]>| {
            let (from, to) = half_open(&(low, high));
            (from, to.expect("it has an end"))
        };
        assert_eq!(
            of(Bound::Included(long), Bound::Excluded(long)),
            (behind.clone(), behind.clone())
        );
        assert_eq!(
            of(Bound::Included(longest), Bound::Included(longest)),
            (longest.into(), behind)
        );
        let short = (Box::from(&b"a\0"[..]), Box::from(&b"b"[..]));
        assert_eq!(of(Bound::Excluded(b"a"), Bound::Excluded(b"b")), short);
        assert_eq!(half_open(&(..)), (Box::default(), None));
    }
}
