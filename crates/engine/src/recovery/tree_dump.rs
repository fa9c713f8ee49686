//! The image of capacitor-backed memory that is written to the reserved region at a power cut.
//!
//! The energy of the capacitors is enough to write only this image. It contains memtables, level
//! lists with their filters, pinned segments, extent counters and compaction cursors; together with
//! the durable pages it is a complete store. All other volatile state (work under way) is not
//! included. The drive adds epoch and checksum (`drives::firmware`).

use std::rc::Rc;

use super::dump::{read_extents, read_memtables, write_extents, write_memtables};
use crate::compaction::leveled::Tables;
use crate::engine::Inner;
use crate::format::codec::{Reader, Writer};
use crate::format::page::StoreId;
use crate::manifest::level_codec::{Home, write_segment};
use crate::manifest::table_codec::{read_tree, write_tree};
use crate::medium::{Medium, Shape};
use crate::memtable::Memtables;
use crate::planted::Fault;
use crate::sizing::{LevelPlan, PlannedMemory};
use crate::space::extents::Extents;
use crate::version::open_table::Table;
use crate::version::table::TableMeta;
use crate::version::tree::Tree;
use crate::version::{LevelEdit, Version};
use crate::wal::Flushed;

const VERSION: u32 = 6;
/// The previous version of the format. It does not record the number of extents: that number is the
/// current one and cannot grow.
const OF_ONE_SIZE: u32 = 5;

/// The state that a dump restores.
pub(crate) struct Restored {
    pub id: StoreId,
    pub sequence: u64,
    pub flushed: Flushed,
    pub memtables: Memtables,
    pub plan: LevelPlan,
    pub version: Version,
    /// The tables, if levels are made of tables; `version` is empty then.
    pub tables: Option<Tree<Rc<TableMeta>>>,
    pub extents: Extents,
    pub cursors: Vec<Box<[u8]>>,
}

impl<M: Medium> Inner<M> {
    /// Returns the image of the current state.
    pub(crate) fn dump(&self) -> Vec<u8> {
        self.image(&self.front.memtables.borrow())
    }

    /// Returns the image without memtables, which are in the log: the checkpoint with which a
    /// manifest begins.
    pub(crate) fn checkpoint(&self) -> Vec<u8> {
        self.image(&Memtables::default())
    }

    /// Returns the context in which the segments of an image are restored.
    pub(crate) fn home(&self) -> Home<'_> {
        Home {
            shape: self.store.shape,
            format: self.store.format,
            inlining: self.inlining,
            is_leveled: self.options.is_leveled(),
            pool: &self.pool,
        }
    }

    fn image(&self, memtables: &Memtables) -> Vec<u8> {
        let with_frozen = !self.store.planted.has(Fault::DumpWithoutFrozen);
        let tables = self.tables.as_ref().map(Tables::tree);
        let image = Image {
            id: self.store.id.get(),
            sequence: self.front.sequence.get(),
            flushed: self.flushed.get(),
            plan: &self.plan.borrow(),
            version: &self.version.borrow(),
            tables: tables.as_deref(),
            extents: &self.store.extents_after_a_cut(),
            cursors: &self.cursors.borrow(),
        };
        image.encode(memtables, with_frozen)
    }
}

/// The contents of a dump, except memtables.
pub(crate) struct Image<'a> {
    pub id: StoreId,
    pub sequence: u64,
    pub flushed: Flushed,
    pub plan: &'a LevelPlan,
    pub version: &'a Version,
    pub tables: Option<&'a Tree<Rc<Table>>>,
    pub extents: &'a Extents,
    pub cursors: &'a [Box<[u8]>],
}

impl Image<'_> {
    /// Encodes the dump.
    pub(crate) fn encode(&self, memtables: &Memtables, with_frozen: bool) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(VERSION);
        out.u32(self.id.0);
        out.u64(self.sequence);
        out.u64(self.flushed.sequence);
        out.u64(self.flushed.log_from);
        write_memtables(&mut out, memtables, with_frozen);
        write_plan(&mut out, self.plan);
        match self.tables {
            Some(tables) => write_tree(&mut out, tables),
            None => write_levels(&mut out, self.version),
        }
        let Shape { extents, grows_to, .. } = self.extents.shape();
        out.u32(extents);
        out.u32(grows_to);
        write_extents(&mut out, self.extents);
        for cursor in self.cursors {
            out.string(cursor);
        }
        out.finish()
    }
}

/// Decodes an image; `None` if its format differs. Extents that were being collected are closed
/// afterwards.
pub(crate) fn restore(bytes: &[u8], empty: &Version, home: &Home<'_>) -> Option<Restored> {
    let input = &mut Reader::new(bytes);
    let form = input.u32()?;
    [VERSION, OF_ONE_SIZE].contains(&form).then_some(())?;
    let id = StoreId(input.u32()?);
    let sequence = input.counter()?;
    let flushed = Flushed { sequence: input.counter()?, log_from: input.counter()? };
    let memtables = read_memtables(input, sequence, home.shape)?;
    let plan = read_plan(input, empty.levels().len())?;
    let levels = empty.levels().len();
    let (version, tables) = if home.is_leveled {
        (empty.clone(), Some(read_tree(input, levels + 1, &home.shape)?))
    } else {
        (read_levels(input, empty, home)?, None)
    };
    let Shape { extents, grows_to, .. } = home.shape;
    let (known, grew_to) =
        if form == OF_ONE_SIZE { (extents, 0) } else { (input.u32()?, input.u32()?) };
    // With another size limit, pointers would have another format.
    (grew_to == grows_to).then_some(())?;
    let extents = read_extents(input, home.shape, known)?;
    let cursors = version
        .levels()
        .iter()
        .map(|_| input.string().map(Into::into))
        .collect::<Option<Vec<_>>>()?;
    input.is_at_end().then_some(Restored {
        id,
        sequence,
        flushed,
        memtables,
        plan,
        version,
        tables,
        extents,
        cursors,
    })
}

fn write_plan(out: &mut Writer, plan: &LevelPlan) {
    for capacity in &plan.capacities {
        out.u64(*capacity);
    }
    out.u32(plan.pinned);
    out.u64(plan.factor.to_bits());
    out.u64(plan.last_factor.to_bits());
    let PlannedMemory { level_lists, prefixes, range_pointers, pinned, filters } = plan.memory;
    for bytes in [level_lists, prefixes, range_pointers, pinned, filters] {
        out.u64(bytes);
    }
}

fn read_plan(input: &mut Reader<'_>, levels: usize) -> Option<LevelPlan> {
    Some(LevelPlan {
        capacities: (0..levels).map(|_| input.u64()).collect::<Option<Vec<_>>>()?,
        pinned: input.u32()?,
        factor: f64::from_bits(input.u64()?),
        last_factor: f64::from_bits(input.u64()?),
        memory: PlannedMemory {
            level_lists: input.u64()?,
            prefixes: input.u64()?,
            range_pointers: input.u64()?,
            pinned: input.u64()?,
            filters: input.u64()?,
        },
    })
}

fn write_levels(out: &mut Writer, version: &Version) {
    out.u32(version.levels().len() as u32);
    for level in version.levels() {
        out.u32(level.len() as u32);
        for (index, (first_key, segment)) in level.iter().enumerate() {
            write_segment(out, first_key, segment, level.filter(index));
        }
    }
}

fn read_levels(input: &mut Reader<'_>, empty: &Version, home: &Home<'_>) -> Option<Version> {
    let levels = input.u32()? as usize;
    (levels == empty.levels().len()).then_some(())?;
    let mut edits = Vec::with_capacity(levels);
    for level in 0..levels {
        let mut new = Vec::new();
        for _ in 0..input.u32()? {
            new.push(home.read_segment(input)?);
        }
        edits.push(LevelEdit { level, range: 0..0, new });
    }
    empty.replay(edits)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use crate::medium::PageNo;

    use super::*;
    use crate::memory::checkpoint_bytes;
    use crate::read::filter::{Filter, key_hash};
    use crate::version::level::{NamedSegment, Segment};
    use crate::version::location::Location;

    #[test]
    fn what_the_levels_take_of_a_checkpoint_is_known_without_writing_it() {
        let named = |key: u32| NamedSegment {
            first_key: vec![key as u8; 1 + key as usize].into(),
            segment: Segment::new(Location::Stored(PageNo(key)), 1, &Rc::default()),
            filter: Filter::of_bytes(&[key_hash(b"a")], key as usize),
        };
        let edit = |level, keys: &[u32]| {
            let new = keys.iter().copied().map(named).collect();
            LevelEdit { level, range: 0..0, new }
        };
        let empty = Version::new(2, 4, true);
        let version = empty.edited(vec![edit(0, &[1, 9]), edit(1, &[0, 40, 254])]);
        let length = |version: &Version| {
            let mut out = Writer::default();
            write_levels(&mut out, version);
            out.finish().len() as u64
        };
        assert_eq!(length(&version) - length(&empty), checkpoint_bytes(&version));
    }
}
