//! Random draws of keys, with approximately equal probability.
//!
//! A draw takes an entry of a memtable or level, every entry with equal probability, and accepts it
//! if it is its key's current entry: exactly one of all entries of a key is. Other entries (older
//! ones, deletions, entries out of bounds) make the draw fail. In a level the segment is drawn
//! first: because segments are about equally full, their entries are about equally likely.
//!
//! Cost of a draw: in a memtable, stepping over some hundred keys; in a level that is not in
//! memory, one page read, and then the cost of a Get that reads no value.

use std::ops::Range;
use std::rc::Rc;

use runtime::{IoClass, Nanos, PageImage, Rng};

use super::locate::Located;
use crate::effort::Effort;
use crate::engine::{Engine, Inner};
use crate::error::EngineError;
use crate::format::entry::Mapping;
use crate::format::meta_segment::MetaSegment;
use crate::format::object::Sequence;
use crate::medium::Medium;
use crate::operations::Reads;
use crate::version::level::Level;
use crate::version::location::{IndexPage, Location};

/// The part of a level's list that may have keys within bounds, and its estimated number of
/// entries.
struct Part {
    segments: Range<usize>,
    entries: u64,
}

impl Part {
    fn of(level: &Level, from: &[u8], to: Option<&[u8]>) -> Self {
        let start = level.covering(from, None, &mut Effort::default()).unwrap_or(0);
        let end = to.map_or(level.len(), |to| level.first_at_or_after(to)).max(start);
        let all = level.len().max(1) as u64;
        let entries = level.totals().entries * (end - start) as u64 / all;
        // The estimate is at least 1 per segment, so that every segment has a chance.
        Self { segments: start..end, entries: entries.max((end - start) as u64) }
    }
}

impl<M: Medium> Engine<M> {
    /// Draws a key that has a value from the range `from` (inclusive) to `to` (exclusive). Returns
    /// `None` if the draw failed.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if a page is damaged.
    pub async fn draw(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Option<Box<[u8]>>, EngineError> {
        self.inner.draw(from, to, rng).await
    }
}

impl<M: Medium> Inner<M> {
    async fn draw(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Option<Box<[u8]>>, EngineError> {
        let _guard = self.store.epochs.enter();
        let is_within = |key: &[u8]| key >= from && to.is_none_or(|to| key < to);
        let memtables: Vec<_> = self.front.memtables.borrow().newest_first().cloned().collect();
        let lens: Vec<u64> = memtables.iter().map(|one| one.borrow().len() as u64).collect();
        let version = Rc::clone(&self.version.borrow());
        let parts = version.levels().iter().map(|level| Part::of(level, from, to));
        let parts: Vec<Part> = parts.collect();
        let of_levels = parts.iter().map(|part| part.entries);
        let all: u64 = lens.iter().copied().chain(of_levels).sum();
        if all == 0 {
            return Ok(None);
        }
        let mut drawn = rng.below(all);
        for (place, memtable) in memtables.iter().enumerate() {
            if drawn < lens[place] {
                let is_newest = |key: &[u8]| {
                    let mut newer = memtables[..place].iter();
                    newer.all(|newer| newer.borrow().at(key, Sequence::MAX).is_none())
                };
                let memtable = memtable.borrow();
                let found = memtable
                    .drawn(rng)
                    .filter(|(key, entry)| entry.is_some() && is_within(key) && is_newest(key));
                return Ok(found.map(|(key, _)| key[..].into()));
            }
            drawn -= lens[place];
        }
        for (level, part) in version.levels().iter().zip(parts) {
            if drawn >= part.entries {
                drawn -= part.entries;
                continue;
            }
            let count = (part.segments.end - part.segments.start) as u64;
            let at = part.segments.start + rng.below(count) as usize;
            let Some(page) = self.drawn_page(level, at, rng).await? else { return Ok(None) };
            let segment = MetaSegment::new(page.bytes(), self.store.format);
            let segment = segment.expect("checked when it was read");
            let entry = rng.below(segment.len() as u64) as usize;
            let (key, mapping) = (segment.key(entry), segment.mapping(entry));
            let counts = is_within(key) && self.is_newest(key, &mapping).await?;
            return Ok(counts.then(|| key.into()));
        }
        unreachable!("what was drawn is of one of them")
    }

    /// Reads the segment at index `at` of a level's list; of a group or table, a random segment.
    async fn drawn_page(
        &self,
        level: &Level,
        at: usize,
        rng: &mut Rng,
    ) -> Result<Option<PageImage>, EngineError> {
        let page = match &level.segment(at).location {
            Location::Pinned(image) | Location::Cached(_, image) => return Ok(Some(image.clone())),
            Location::Stored(page) => *page,
            Location::Group(group) => group.page(rng.below(u64::from(group.segments)) as u16),
            Location::Columns(_) => {
                let segments = self.load(level, at..at + 1).await?;
                let drawn = rng.below(segments.len().max(1) as u64) as usize;
                return Ok(segments.into_iter().nth(drawn));
            }
        };
        self.read_index(IndexPage::segment(page), IoClass::ClientRead).await.map(Some)
    }

    /// Whether a level's entry of a key is the key's current entry.
    async fn is_newest(&self, key: &[u8], mapping: &Mapping) -> Result<bool, EngineError> {
        let located = self.locate(key, Nanos::ZERO, &mut Reads::default()).await?;
        Ok(match (mapping, located) {
            (Mapping::At(drawn), Located::At(newest)) => *drawn == newest,
            // If the same value was written twice, either entry counts as current.
            (Mapping::Value(drawn), Located::Known(Some(newest))) => *drawn == newest,
            _ => false,
        })
    }
}
