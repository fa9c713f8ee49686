//! Parity: the exclusive or of pages. A shorter page counts as padded with zeros.

/// Adds `page` to `parity`, which grows if necessary.
pub fn add(parity: &mut Vec<u8>, page: &[u8]) {
    if parity.len() < page.len() {
        parity.resize(page.len(), 0);
    }
    // Eight bytes at a time: the compiler vectorizes this loop.
    let (words, rest) = page.as_chunks::<8>();
    let (sums, last) = parity[..page.len()].as_chunks_mut::<8>();
    for (sum, word) in sums.iter_mut().zip(words) {
        *sum = (u64::from_le_bytes(*sum) ^ u64::from_le_bytes(*word)).to_le_bytes();
    }
    for (sum, byte) in last.iter_mut().zip(rest) {
        *sum ^= byte;
    }
}

/// Returns the parity of pages. The parity of all pages of a stripe but one is the missing page,
/// possibly with zeros appended.
pub fn of<'a>(pages: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut parity = Vec::new();
    for page in pages {
        add(&mut parity, page);
    }
    parity
}

/// Whether two pages are equal when the shorter one is padded with zeros.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let both = one.len().min(other.len());
    let is_zero = |byte: &u8| *byte == 0;
    one[..both] == other[..both] && one[both..].iter().chain(&other[both..]).all(is_zero)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shorter_pages_count_as_if_zeros_followed() {
        assert_eq!(of([]), [0; 0]);
        assert_eq!(of([&[1, 2][..], &[3]]), [2, 2]);
        let long = [7; 19];
        assert!(is_same(&[1, 0], &[1]) && is_same(&[], &[0]) && !is_same(&[1], &[1, 2]));
        assert_eq!(of([&long[..], &[7; 9], &[]])[..], [&[0; 9][..], &[7; 10]].concat());
    }

    proptest! {
        #[test]
        fn any_page_of_a_stripe_follows_from_the_others(
            pages in vec(vec(any::<u8>(), 0..50), 1..7),
            missing in any::<prop::sample::Index>(),
        ) {
            let parity = of(pages.iter().map(Vec::as_slice));
            let missing = missing.index(pages.len());
            let others = pages.iter().enumerate().filter(|(at, _)| *at != missing);
            let rebuilt = of(others.map(|(_, page)| page.as_slice()).chain([&parity[..]]));
            let page = &pages[missing];
            prop_assert_eq!(&rebuilt[..page.len()], &page[..]);
            prop_assert!(rebuilt[page.len()..].iter().all(|byte| *byte == 0));
        }
    }
}
