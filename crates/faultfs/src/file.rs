//! A file: its current contents, its durable contents, and the changes between.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use runtime::Rng;

/// The usual unit of loss, in bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// The smallest unit of loss, in bytes: a sector is kept or lost as a whole.
const SECTOR_BYTES: usize = 512;

/// The contents of a block; `None` for zeros.
type Content = Option<Arc<[u8]>>;

/// Identifies a write in progress.
pub(crate) type Ticket = u64;

/// A change of a block since the last sync.
#[derive(Clone)]
struct Change {
    to: Content,
    by: Ticket,
}

/// The file.
#[derive(Clone, Default)]
pub(crate) struct File {
    now: BTreeMap<u64, Arc<[u8]>>,
    /// Blocks that are allocated but not written. A power cut releases them.
    given: BTreeSet<u64>,
    size: u64,
    durable: BTreeMap<u64, Arc<[u8]>>,
    durable_size: u64,
    /// The changes of each block, oldest first.
    changes: BTreeMap<u64, Vec<Change>>,
    sizes: Vec<u64>,
    under_way: BTreeSet<Ticket>,
    last: Ticket,
}

/// The effect of a power cut on unsynced changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mood {
    /// Drops all changes.
    Loses,
    /// Keeps all changes.
    Keeps,
    /// Each block independently gets one of its states since the last sync.
    Mixes,
    /// Each sector independently gets one of its states since the last sync.
    Tears,
}

impl Mood {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        match rng.below(6) {
            0 => Self::Loses,
            1 => Self::Keeps,
            2 => Self::Tears,
            _ => Self::Mixes,
        }
    }
}

fn blocks_of(offset: u64, bytes: u64) -> Range<u64> {
    offset / BLOCK_BYTES..(offset + bytes).div_ceil(BLOCK_BYTES)
}

fn put(blocks: &mut BTreeMap<u64, Arc<[u8]>>, block: u64, content: Content) {
    match content {
        Some(bytes) => drop(blocks.insert(block, bytes)),
        None => drop(blocks.remove(&block)),
    }
}

impl File {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of allocated blocks.
    pub(crate) fn blocks_in_use(&self) -> u64 {
        (self.now.len() + self.given.len()) as u64
    }

    /// Returns the number of blocks in a range that are not allocated.
    pub(crate) fn blocks_without_room(&self, offset: u64, bytes: u64) -> u64 {
        let range = blocks_of(offset, bytes);
        let has = self.now.range(range.clone()).count() + self.given.range(range.clone()).count();
        range.end - range.start - has as u64
    }

    /// Allocates a range, extending the file if necessary.
    pub(crate) fn give(&mut self, offset: u64, bytes: u64) {
        let missing = blocks_of(offset, bytes).filter(|block| !self.now.contains_key(block));
        self.given.extend(missing);
        if offset + bytes > self.size {
            self.resize(offset + bytes);
        }
    }

    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let end = (offset + bytes as u64).min(self.size).max(offset);
        let mut read = vec![0; (end - offset) as usize];
        for (block, content) in self.now.range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)) {
            let start = block * BLOCK_BYTES;
            let (from, to) = (start.max(offset), (start + BLOCK_BYTES).min(end));
            if from < to {
                let source = &content[(from - start) as usize..(to - start) as usize];
                read[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        read
    }

    /// Changes a block. The change may reach the medium from now on. Syncs cover it only after
    /// [`Self::end`].
    fn change(&mut self, block: u64, to: Content, by: Ticket) {
        self.given.remove(&block);
        put(&mut self.now, block, to.clone());
        self.changes.entry(block).or_default().push(Change { to, by });
    }

    fn ticket(&mut self) -> Ticket {
        self.last += 1;
        self.under_way.insert(self.last);
        self.last
    }

    pub(crate) fn begin_write(&mut self, offset: u64, bytes: &[u8]) -> Ticket {
        let ticket = self.ticket();
        let end = offset + bytes.len() as u64;
        for block in blocks_of(offset, bytes.len() as u64) {
            let start = block * BLOCK_BYTES;
            let (from, to) = (start.max(offset), (start + BLOCK_BYTES).min(end));
            let mut content = self
                .now
                .get(&block)
                .map_or_else(|| vec![0; BLOCK_BYTES as usize], |old| old.to_vec());
            content[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            self.change(block, Some(content.into()), ticket);
        }
        if end > self.size {
            self.resize(end);
        }
        ticket
    }

    /// Makes a range read as zeros. Only whole blocks are zeroed; a store discards whole blocks
    /// only.
    pub(crate) fn begin_zeroing(&mut self, offset: u64, bytes: u64) -> Ticket {
        let ticket = self.ticket();
        let range = offset.div_ceil(BLOCK_BYTES)..(offset + bytes) / BLOCK_BYTES;
        let used: Vec<u64> = self.now.range(range.clone()).map(|(block, _)| *block).collect();
        self.given.retain(|block| !range.contains(block));
        for block in used {
            self.change(block, None, ticket);
        }
        ticket
    }

    /// Ends a write. A write with force is durable then.
    pub(crate) fn end(&mut self, ticket: Ticket, is_forced: bool) {
        self.under_way.remove(&ticket);
        if is_forced {
            let is_its = |changes: &Vec<Change>| changes.iter().any(|change| change.by == ticket);
            let blocks = self.changes.iter().filter(|(_, changes)| is_its(changes));
            for block in blocks.map(|(block, _)| *block).collect::<Vec<_>>() {
                self.settle(block, |change| change.by == ticket);
            }
            self.settle_size();
        }
    }

    /// Ends all writes in progress; the next sync covers them.
    pub(crate) fn end_all(&mut self) {
        self.under_way.clear();
    }

    /// Makes the last change that satisfies `is_durable` durable, and drops the changes before it.
    fn settle(&mut self, block: u64, is_durable: impl Fn(&Change) -> bool) {
        let Some(changes) = self.changes.get_mut(&block) else { return };
        let Some(last) = changes.iter().rposition(is_durable) else { return };
        let settled = changes.drain(..=last).next_back().expect("there is one");
        if changes.is_empty() {
            self.changes.remove(&block);
        }
        put(&mut self.durable, block, settled.to);
    }

    fn settle_size(&mut self) {
        self.durable_size = self.size;
        self.sizes.clear();
    }

    pub(crate) fn resize(&mut self, size: u64) {
        if size < self.size {
            // Blocks past the new end are dropped. Tests truncate files at block boundaries only.
            let ticket = self.begin_zeroing(size, self.size - size + BLOCK_BYTES);
            self.end(ticket, false);
        }
        self.size = size;
        self.sizes.push(size);
    }

    pub(crate) fn sync(&mut self) {
        let under_way = self.under_way.clone();
        for block in self.changes.keys().copied().collect::<Vec<_>>() {
            self.settle(block, |change| !under_way.contains(&change.by));
        }
        self.settle_size();
    }

    /// Returns the file after a power cut; all its contents are durable.
    pub(crate) fn after_cut(&self, mood: Mood, rng: &mut Rng) -> Self {
        let mut blocks = self.durable.clone();
        for (block, changes) in &self.changes {
            let before = self.durable.get(block).cloned();
            let left = match mood {
                Mood::Loses => before,
                Mood::Keeps => changes.last().and_then(|change| change.to.clone()),
                Mood::Mixes => one_of(&before, changes, rng),
                Mood::Tears => Some(torn(&before, changes, rng)),
            };
            put(&mut blocks, *block, left);
        }
        let sizes = self.sizes.len() as u64;
        let size = match mood {
            Mood::Loses => self.durable_size,
            Mood::Keeps => self.size,
            Mood::Mixes | Mood::Tears => match rng.below(sizes + 1) {
                0 => self.durable_size,
                n => self.sizes[n as usize - 1],
            },
        };
        blocks.split_off(&size.div_ceil(BLOCK_BYTES));
        let (now, durable) = (blocks.clone(), blocks);
        Self { now, size, durable, durable_size: size, ..Self::default() }
    }

    /// Returns the offset and contents of each non-zero block, for saving an image.
    pub(crate) fn used(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.now.iter().map(|(block, content)| (block * BLOCK_BYTES, &content[..]))
    }
}

fn one_of(before: &Content, changes: &[Change], rng: &mut Rng) -> Content {
    match rng.below(changes.len() as u64 + 1) {
        0 => before.clone(),
        n => changes[n as usize - 1].to.clone(),
    }
}

fn torn(before: &Content, changes: &[Change], rng: &mut Rng) -> Arc<[u8]> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    for (n, sector) in block.chunks_mut(SECTOR_BYTES).enumerate() {
        if let Some(content) = one_of(before, changes, rng) {
            let at = n * SECTOR_BYTES;
            sector.copy_from_slice(&content[at..at + SECTOR_BYTES]);
        }
    }
    block.into()
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
