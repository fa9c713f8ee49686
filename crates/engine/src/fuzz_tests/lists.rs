//! Sequences of fields: edits, dumps, filters.

use std::ops::Range;
use std::rc::Rc;

use runtime::{PageImage, Rng};
use testkit::fuzz::{Answer, unsealed};

use super::fuzz;
use crate::effort::Effort;
use crate::format::columns::ColumnPages;
use crate::format::entry::IndexEntry;
use crate::format::inlining::Inlining;
use crate::format::meta_segment::MetaSegmentBuilder;
use crate::manifest::changes::{Changes, Counts, ExtentChange};
use crate::manifest::edit::Edit;
use crate::manifest::edit_codec;
use crate::manifest::level_codec::Home;
use crate::medium::{ExtentId, PageNo, Stream};
use crate::read::filter::{Filter, key_hash};
use crate::recovery::tree_dump;
use crate::sizing::{LevelPlan, PlannedMemory};
use crate::space::extents::Extents;
use crate::specimens::{SHAPE, extents, keys, memtables, pointers, walk_extents};
use crate::version::level::{NamedSegment, Segment};
use crate::version::location::{Columns, Group, Location};
use crate::version::pool::Pool;
use crate::version::tree::TreeEdit;
use crate::version::{LevelEdit, Version};
use crate::wal::Flushed;

const LEVELS: usize = 3;

fn home(pool: &Rc<Pool>) -> Home<'_> {
    let inlining = Inlining::new(0, SHAPE.payload_bytes);
    Home { shape: SHAPE, format: pointers(), inlining, is_leveled: false, pool }
}

#[test]
fn fuzz_filter() {
    let encoding = |rng: &mut Rng| {
        let hashes: Vec<u64> = keys(rng, 40).iter().map(|key| key_hash(key)).collect();
        let filter = Filter::of_bytes(&hashes, 80).expect("80 bytes are enough");
        filter.bytes().to_vec()
    };
    fuzz("fuzz_filter", &unsealed, &encoding, &|bytes| {
        let Some(filter) = Filter::from_bytes(bytes) else { return Answer::Refused };
        for hash in [0, 1, u64::MAX, key_hash(bytes)] {
            let _ = filter.may_have(hash);
        }
        assert_eq!(Filter::from_bytes(filter.bytes()), Some(filter));
        Answer::Taken
    });
}

/// Returns segments that begin with these keys, in pages or in memory.
fn segments(keys: &[Vec<u8>], pool: &Rc<Pool>, rng: &mut Rng) -> Vec<NamedSegment> {
    let is_pinned = rng.chance(0.3);
    let named = |key: &Vec<u8>| {
        let page = PageNo(rng.below(700) as u32);
        let (location, entries, filter) = if is_pinned {
            let mut builder = MetaSegmentBuilder::new(pointers(), SHAPE.payload_bytes);
            let pointer = pointers().pointer(page, 0, 1, 1);
            assert!(builder.push(&IndexEntry { key, pointer, tail: &[] }));
            (Location::Pinned(PageImage::new(&builder.finish())), 1, None)
        } else if rng.chance(0.5) {
            // At the start of an extent, so that the extent has room for it.
            let first = PageNo(page.0 - page.0 % SHAPE.pages_per_extent);
            let mut part = || 1 + rng.below(9) as u8;
            let pages = ColumnPages { filter: part(), keys: part(), addresses: part() };
            let group = Group { first, segments: u16::from(part()) };
            let location = match part() % 2 {
                0 => Location::Columns(Columns { first, pages }),
                _ => Location::Group(group),
            };
            (location, 20, None)
        } else {
            let filter = Filter::of_bytes(&[key_hash(key)], rng.below(20) as usize);
            (Location::Stored(page), 20, filter)
        };
        let segment = Segment::new(location, entries, pool);
        NamedSegment { first_key: key[..].into(), segment, filter }
    };
    keys.iter().map(named).collect()
}

/// Runs the operations of a search in each level.
fn walk_version(version: &Version) {
    version.assert_consistent();
    let _ = version.range_pointers();
    let effort = &mut Effort::default();
    for (n, level) in version.levels().iter().enumerate() {
        let _ = (level.totals(), level.overlapping(b"k", Some(b"l")));
        for index in 0..level.len() {
            assert_eq!(level.covering(level.first_key(index), None, effort), Some(index));
            let below = version.below(n, index).filter(|_| n + 1 < version.levels().len());
            if let Some(below) = below {
                let _ = version.level(n + 1).covering(level.first_key(index), Some(below), effort);
            }
            let _ = level.filter(index).map(|filter| filter.may_have(7));
        }
    }
}

/// Returns a version with levels of several lengths and locations.
fn base(pool: &Rc<Pool>) -> Version {
    let rng = &mut Rng::new(1);
    let level = |level: usize, rng: &mut Rng| {
        let keys: Vec<Vec<u8>> = (0..12).map(|i| format!("k{i:02}500000").into_bytes()).collect();
        LevelEdit { level, range: 0..0, new: segments(&keys, pool, rng) }
    };
    let edits = (0..LEVELS).map(|n| level(n, rng)).collect();
    Version::new(LEVELS, 4, true).edited(edits)
}

#[expect(clippy::single_range_in_vec_init, reason = "one range of places")]
fn edit(pool: &Rc<Pool>, rng: &mut Rng) -> Edit {
    let at = rng.below(12) as usize;
    let range: Range<usize> = at..at + rng.below(2) as usize;
    let new: Vec<Vec<u8>> = (0..rng.below(4))
        .map(|i| format!("k{:02}{:06}", at, 500_000 + i).into_bytes())
        .skip(usize::from(range.is_empty()))
        .collect();
    // If the existing segment stays, the new ones follow it.
    let range = if range.is_empty() { at + 1..at + 1 } else { range };
    let mut changes = Changes::default();
    for _ in 0..rng.below(4) {
        let from = rng.below(30) as u32;
        let published = rng.below(5) as u32;
        let entered = rng.below(u64::from(published) + 1) as u32;
        let change = ExtentChange {
            stream: Stream::Objects,
            generation: rng.below(4),
            age: rng.below(40),
            placed: vec![from..from + rng.below(3) as u32],
            counts: Counts { published, entered, dead: rng.below(u64::from(entered) + 1) as u32 },
        };
        changes.extents.insert(ExtentId(rng.below(24) as u32), change);
    }
    Edit {
        levels: vec![LevelEdit {
            level: rng.below(3) as usize,
            range,
            new: segments(&new, pool, rng),
        }],
        tables: TreeEdit::default(),
        changes,
        flushed: rng.chance(0.5).then(|| Flushed { sequence: rng.below(99), log_from: 4 }),
        retired: rng.chance(0.3).then(|| ExtentId(rng.below(24) as u32)),
    }
}

#[test]
fn fuzz_edit() {
    let pool = Rc::new(Pool::default());
    let base = base(&pool);
    let encoding = |rng: &mut Rng| edit_codec::encode(&edit(&pool, rng), false);
    fuzz("fuzz_edit", &unsealed, &encoding, &|bytes| {
        let Some(edit) = edit_codec::decode(bytes, &home(&pool)) else { return Answer::Refused };
        let again = edit_codec::encode(&edit, false);
        let twice = edit_codec::decode(&again, &home(&pool)).expect("it was just encoded");
        assert_eq!(edit_codec::encode(&twice, false), again);
        let mut extents = Extents::new(SHAPE);
        let is_replayed = extents.replay(&edit.changes, &home(&pool).format).is_some()
            && edit.retired.is_none_or(|id| extents.replay_retired(id).is_some());
        if is_replayed {
            walk_extents(&extents.settled());
        }
        let next = base.replay(edit.levels);
        next.iter().for_each(walk_version);
        Answer::from(is_replayed && next.is_some())
    });
}

#[test]
fn fuzz_lsm_dump() {
    let pool = Rc::new(Pool::default());
    let encoding = |rng: &mut Rng| {
        let levels: Vec<LevelEdit> = (0..LEVELS)
            .map(|level| LevelEdit { level, range: 0..0, new: segments(&keys(rng, 9), &pool, rng) })
            .collect();
        let image = tree_dump::Image {
            id: crate::format::page::StoreId(7),
            sequence: 100,
            flushed: Flushed { sequence: 40, log_from: 3 },
            plan: &plan(),
            version: &Version::new(LEVELS, 4, true).edited(levels),
            tables: None,
            extents: &extents(rng),
            cursors: &[b"a".as_slice().into(), b"".as_slice().into(), b"k".as_slice().into()],
        };
        image.encode(&memtables(rng), true)
    };
    let empty = Version::new(LEVELS, 4, true);
    fuzz("fuzz_lsm_dump", &unsealed, &encoding, &|bytes| {
        let restored = tree_dump::restore(bytes, &empty, &home(&pool));
        let Some(restored) = restored else { return Answer::Refused };
        walk_version(&restored.version);
        walk_extents(&restored.extents);
        let tree_dump::Restored {
            id,
            sequence,
            flushed,
            memtables,
            plan,
            version,
            tables: _,
            extents,
            cursors,
        } = &restored;
        let image = tree_dump::Image {
            id: *id,
            sequence: *sequence,
            flushed: *flushed,
            plan,
            version,
            tables: None,
            extents,
            cursors,
        };
        let again = image.encode(memtables, true);
        let twice = tree_dump::restore(&again, &empty, &home(&pool)).expect("it was just encoded");
        assert_eq!((twice.sequence, twice.flushed, &twice.cursors), (*sequence, *flushed, cursors));
        let _ = plan.memory.total();
        Answer::Taken
    });
}

fn plan() -> LevelPlan {
    LevelPlan {
        capacities: vec![4, 16, 64],
        pinned: 2,
        factor: 4.0,
        last_factor: 4.0,
        memory: PlannedMemory::default(),
    }
}
