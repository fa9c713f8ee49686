//! The image of a hash table that is written at a power cut: memtables, directory, bucket pages
//! that differ from the medium, and related state. Clean cached pages are not included. They are
//! read again when they are needed.

use std::collections::BTreeMap;

use super::Inner;
use crate::format::codec::{Reader, Writer};
use crate::format::page::StoreId;
use crate::format::pointer::{Pointer, PointerFormat};
use crate::medium::{Medium, PageNo, Shape};
use crate::memtable::Memtables;
use crate::planted::Fault;
use crate::recovery::dump::{read_extents, read_memtables, write_extents, write_memtables};
use crate::space::extents::Extents;

/// The version of the format. Dumps of LSM-trees have other versions.
const VERSION: u32 = 0x4841_0004;
const NOWHERE: u32 = u32::MAX;

/// The state that a dump restores.
pub(crate) struct Restored {
    pub id: StoreId,
    pub sequence: u64,
    pub memtables: Memtables,
    pub uprooted: BTreeMap<Box<[u8]>, Pointer>,
    pub longest_search: u32,
    pub keys: u64,
    pub directory: Vec<Option<PageNo>>,
    /// Dirty bucket pages by number.
    pub dirty: BTreeMap<u32, Box<[u8]>>,
    pub extents: Extents,
}

impl Restored {
    /// Whether the extents' counts of live index pages agree with the directory.
    pub(crate) fn counts_its_pages(&self) -> bool {
        self.extents.count_index_pages(self.directory.iter().flatten().copied())
    }
}

impl<M: Medium> Inner<M> {
    /// Returns the image of the current state. A page that is being written counts as dirty,
    /// because it may not be on the medium yet.
    pub(crate) fn dump(&self) -> Vec<u8> {
        self.image(&self.front.memtables.borrow(), &self.uprooted.borrow())
    }

    fn image(&self, memtables: &Memtables, uprooted: &BTreeMap<Box<[u8]>, Pointer>) -> Vec<u8> {
        let with_frozen = !self.store.planted.has(crate::planted::Fault::DumpWithoutFrozen);
        let forgets = self.planted.has(Fault::HashForgetsDirtyPages);
        let (cache, writing) = (self.cache.borrow(), self.writing.borrow());
        let is_wanted = |page| !forgets && (cache.is_dirty(page) || writing.contains(page));
        let dirty = cache.iter().filter(|(page, _)| is_wanted(*page));
        let image = Image {
            id: self.store.id.get(),
            sequence: self.front.sequence.get(),
            uprooted,
            longest_search: self.longest_search.get(),
            keys: self.keys.get(),
            directory: &self.directory.borrow(),
            dirty: dirty.collect(),
            extents: &self.store.extents_after_a_cut(),
        };
        image.encode(memtables, with_frozen, self.store.format)
    }
}

/// The contents of a dump, without memtables.
pub(crate) struct Image<'a> {
    pub id: StoreId,
    pub sequence: u64,
    pub uprooted: &'a BTreeMap<Box<[u8]>, Pointer>,
    pub longest_search: u32,
    pub keys: u64,
    pub directory: &'a [Option<PageNo>],
    /// Dirty bucket pages by number.
    pub dirty: Vec<(u32, &'a [u8])>,
    pub extents: &'a Extents,
}

impl Image<'_> {
    /// Returns the bytes of the dump.
    pub(crate) fn encode(
        &self,
        memtables: &Memtables,
        with_frozen: bool,
        format: PointerFormat,
    ) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(VERSION);
        out.u32(self.id.0);
        out.u64(self.sequence);
        write_memtables(&mut out, memtables, with_frozen);
        out.u32(self.uprooted.len() as u32);
        for (key, pointer) in self.uprooted {
            out.string(key);
            let mut stored = Vec::new();
            format.encode(*pointer, &mut stored);
            out.string(&stored);
        }
        out.u32(self.longest_search);
        out.u64(self.keys);
        for at in self.directory {
            out.u32(at.map_or(NOWHERE, |page| page.0));
        }
        out.u32(self.dirty.len() as u32);
        for (page, slots) in &self.dirty {
            out.u32(*page);
            out.string(slots);
        }
        write_extents(&mut out, self.extents);
        out.finish()
    }
}

/// Reads an image; `None` if it is malformed.
pub(crate) fn restore(
    bytes: &[u8],
    shape: Shape,
    format: PointerFormat,
    pages: u32,
) -> Option<Restored> {
    let input = &mut Reader::new(bytes);
    (input.u32()? == VERSION).then_some(())?;
    let id = StoreId(input.u32()?);
    let sequence = input.counter()?;
    let memtables = read_memtables(input, sequence, shape)?;
    let mut uprooted = BTreeMap::new();
    for _ in 0..input.u32()? {
        let key = input.string()?.into();
        let stored = input.string()?;
        (stored.len() == format.bytes).then_some(())?;
        let pointer = format.decode(stored);
        (!pointer.is_tombstone()).then_some(())?;
        uprooted.insert(key, pointer);
    }
    let (longest_search, keys) = (input.u32()?, input.u64()?);
    let directory = (0..pages)
        .map(|_| input.u32().map(|at| (at != NOWHERE).then_some(PageNo(at))))
        .collect::<Option<Vec<_>>>()?;
    let exists = |page: &PageNo| shape.extent_of(*page).0 < shape.extents;
    directory.iter().flatten().all(exists).then_some(())?;
    let mut dirty = BTreeMap::new();
    for _ in 0..input.u32()? {
        let page = input.u32().filter(|page| *page < pages)?;
        dirty.insert(page, input.string()?.into());
    }
    let extents = read_extents(input, shape, shape.extents)?;
    input.is_at_end().then_some(Restored {
        id,
        sequence,
        memtables,
        uprooted,
        longest_search,
        keys,
        directory,
        dirty,
        extents,
    })
}
