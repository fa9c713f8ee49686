//! Assignment of a flush's objects to data pages. A pure function of object sizes.
//!
//! Largest fit first, as `PinK` does with its piece-count buckets: each page is filled with the
//! largest object that still fits. Objects of one size, the usual case, keep their order.

use std::collections::BTreeMap;

/// Groups objects, given by their full lengths, into pages of `room` bytes. Each object needs
/// `overhead` bytes more than its length. Requires: each object fits in a page. Cost: `O(n log n)`.
pub(crate) fn pack(lengths: &[usize], room: usize, overhead: usize) -> Vec<Vec<usize>> {
    let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // Reversed, so that popping from the end keeps the input order.
    for (index, length) in lengths.iter().enumerate().rev() {
        by_length.entry(*length + overhead).or_default().push(index);
    }
    let mut pages = Vec::new();
    while !by_length.is_empty() {
        let mut left = room;
        let mut page = Vec::new();
        while let Some((&length, _)) = by_length.range(..=left).next_back() {
            let same = by_length.get_mut(&length).expect("the range found it");
            page.extend(same.pop());
            if same.is_empty() {
                by_length.remove(&length);
            }
            left -= length;
        }
        assert!(!page.is_empty(), "an object is larger than a page");
        pages.push(page);
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::pack;

    #[test]
    fn objects_of_one_size_keep_their_order() {
        assert_eq!(pack(&[10; 5], 25, 2), [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn the_largest_that_fits_goes_first() {
        assert_eq!(pack(&[3, 9, 6, 1], 10, 0), [vec![1, 3], vec![2, 0]]);
    }
}
