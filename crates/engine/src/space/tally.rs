//! Counts of extents by state.

use super::extent::{Extent, State};
use crate::medium::Stream;

/// The number of extents in each state, kept up to date so that no caller has to count.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Tally {
    pub free: usize,
    /// Extents that hold each stream, with or without live items.
    pub in_use: [usize; Stream::ALL.len()],
    /// Those of `in_use` that are being released.
    pub releasing: [usize; Stream::ALL.len()],
    /// Live items of each stream.
    pub items: [u64; Stream::ALL.len()],
}

impl Tally {
    pub(super) fn of(extents: &[Extent]) -> Self {
        let mut tally = Self::default();
        for extent in extents {
            tally.enter(extent);
        }
        tally
    }

    pub(super) fn enter(&mut self, extent: &Extent) {
        self.counts_of(extent).for_each(|count| *count += 1);
        *self.items_of(extent) += u64::from(extent.live);
    }

    pub(super) fn leave(&mut self, extent: &Extent) {
        self.counts_of(extent).for_each(|count| *count -= 1);
        *self.items_of(extent) -= u64::from(extent.live);
    }

    /// Returns the counter for the items of an extent. Free extents of the index have no items.
    pub(super) fn items_of(&mut self, extent: &Extent) -> &mut u64 {
        &mut self.items[extent.stream as usize]
    }

    fn counts_of(&mut self, extent: &Extent) -> impl Iterator<Item = &mut usize> {
        let is_free = extent.state == State::Free;
        let is_releasing = extent.state == State::Releasing;
        let stream = extent.stream as usize;
        let counts = [
            (is_free, &mut self.free),
            (!is_free, &mut self.in_use[stream]),
            (is_releasing, &mut self.releasing[stream]),
        ];
        counts.into_iter().filter_map(|(counts, count)| counts.then_some(count))
    }
}
