//! Flush: a frozen memtable becomes data pages and entries of L1.

use std::rc::Rc;

use runtime::IoClass;

use crate::Value;
use crate::compaction::Place;
use crate::data_page::{self, Outgoing};
use crate::engine::Inner;
use crate::extents::Purpose;
use crate::medium::{Medium, PageNo};
use crate::memtable::Memtable;
use crate::merge::{ListRun, SegmentRun, merge};
use crate::meta_segment;
use crate::packing;
use crate::pointer::Pointer;
use crate::version::LevelEdit;
use crate::writer::Group;

/// The data pages of a flush, and which object lies where.
struct Layout {
    groups: Vec<Group>,
    /// By object: its group and the piece it begins in.
    places: Vec<(usize, u32)>,
}

impl<M: Medium> Inner<M> {
    /// The task that flushes frozen memtables, oldest first, for ever.
    pub(crate) async fn flush_forever(self: Rc<Self>) {
        loop {
            let has_work = || self.is_healthy() && !self.memtables.borrow().frozen.is_empty();
            self.work.wait_until(has_work).await;
            let oldest = self.memtables.borrow().frozen.front().map(Rc::clone);
            self.flush(&oldest.expect("a memtable is frozen")).await;
        }
    }

    async fn flush(&self, memtable: &Memtable) {
        let objects: Vec<Outgoing<'_>> = memtable.iter().filter_map(outgoing).collect();
        self.cpu.cores.spend_in_background(self.cpu.costs.of_packing(objects.len())).await;
        let layout = lay_out(&objects, self.shape.payload_bytes);
        let lengths: Vec<usize> = layout.groups.iter().map(Vec::len).collect();
        let urgency = || self.fill_of_active_memtable();
        let firsts = self.write_groups(Purpose::Data, layout.groups, IoClass::Flush, urgency).await;
        let mut pointers = layout.places.iter().map(|(group, piece)| {
            let generation = self.extents.borrow().generation(firsts[*group]);
            self.format.pointer(firsts[*group], *piece, generation)
        });
        let entries = memtable
            .iter()
            .map(|(key, _, entry)| {
                let pointer = entry.as_ref().and_then(|_| pointers.next());
                (key.into(), pointer.unwrap_or(Pointer::TOMBSTONE))
            })
            .collect::<Vec<(Box<[u8]>, Pointer)>>();
        self.merge_into_first_level(entries).await;
        self.published(&firsts, lengths.into_iter());
        let mut stats = self.stats.borrow_mut();
        stats.flushes += 1;
        stats.flushed_objects += objects.len() as u64;
    }

    /// Merges the entries of a flush into L1 and publishes them together with the end of their
    /// memtable: a reader finds them in one or the other.
    async fn merge_into_first_level(&self, entries: Vec<(Box<[u8]>, Pointer)>) {
        let expected = self.flush_segments();
        self.claim(&[0], || self.first_level_has_room(expected)).await;
        let level = Rc::clone(&self.version.borrow().levels()[0]);
        let objects: Vec<PageNo> = entries
            .iter()
            .filter(|(_, pointer)| !pointer.is_tombstone())
            .map(|(_, pointer)| self.format.locate(*pointer).0)
            .collect();
        let Some(lower) = self.load(&level, 0..level.len()).await else {
            self.unclaim(&[0]);
            return;
        };
        let lower = SegmentRun::new(lower, self.format);
        let drops_tombstones = self.options.levels == 1;
        let payload = self.shape.payload_bytes;
        let merged = merge(ListRun::new(entries), lower, self.format, payload, drops_tombstones);
        self.cpu.cores.spend_in_background(self.cpu.costs.of_merge(merged.entries)).await;
        let place = Place { level: 0, urgency: &|| self.fill_of_active_memtable() };
        let (segments, dead) = (merged.segments, merged.dead);
        let new = self.place(segments, place, IoClass::CompactionWrite).await;
        {
            let mut extents = self.extents.borrow_mut();
            for page in objects {
                extents.publish(page);
            }
        }
        self.count_merge(merged.entries, &dead);
        self.bury(&dead);
        let range = 0..level.len();
        self.bury_segments(&level, range.clone());
        self.publish(vec![LevelEdit { level: 0, range, new }]);
        self.memtables.borrow_mut().frozen.pop_front();
        self.flushes.set(self.flushes.get() + 1);
        self.unclaim(&[0]);
        self.room.notify_all();
    }

    /// Segments that a flush adds to L1, roughly.
    pub(crate) fn flush_segments(&self) -> usize {
        let pair = self.surroundings.expected_key_bytes + self.surroundings.expected_value_bytes;
        let objects = self.options.memtable_bytes / u64::from(pair.max(1)) + 1;
        let key_bytes = self.surroundings.expected_key_bytes;
        let entries =
            meta_segment::entries_per_page(self.shape.payload_bytes, self.format.bytes, key_bytes);
        objects.div_ceil(u64::from(entries)) as usize
    }

    fn first_level_has_room(&self, segments: usize) -> bool {
        let len = self.version.borrow().level(0).len();
        len == 0 || len + segments <= self.capacity(0)
    }

    fn fill_of_active_memtable(&self) -> f64 {
        let memtables = self.memtables.borrow();
        if memtables.frozen.len() < self.options.frozen_memtables {
            return 0.0;
        }
        memtables.active.bytes() as f64 / self.options.memtable_bytes as f64
    }
}

fn outgoing<'a>(
    (key, sequence, entry): (&'a [u8], u64, &'a Option<Value>),
) -> Option<Outgoing<'a>> {
    entry.as_ref().map(|value| Outgoing { key, sequence, value })
}

/// Packs objects into pages: small ones share, large ones have pages of their own.
fn lay_out(objects: &[Outgoing<'_>], payload_bytes: u32) -> Layout {
    let is_small = |object: &Outgoing<'_>| {
        data_page::fits_in_a_page(payload_bytes, object.key.len(), object.value.len())
    };
    let mut places = vec![(0, 0); objects.len()];
    let mut groups = Vec::new();
    let small: Vec<usize> = (0..objects.len()).filter(|i| is_small(&objects[*i])).collect();
    let lengths: Vec<usize> = small.iter().map(|i| objects[*i].full_len()).collect();
    let room = payload_bytes as usize - data_page::packed_len(0, 0);
    let overhead = data_page::packed_len(1, 0) - data_page::packed_len(0, 0);
    for page in packing::pack(&lengths, room, overhead) {
        let members: Vec<usize> = page.into_iter().map(|i| small[i]).collect();
        let together: Vec<Outgoing<'_>> = members.iter().map(|i| objects[*i]).collect();
        let (bytes, pieces) = data_page::build(&together);
        for (member, piece) in members.into_iter().zip(pieces) {
            places[member] = (groups.len(), piece);
        }
        groups.push(vec![bytes]);
    }
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| !is_small(object)) {
        places[index] = (groups.len(), 0);
        groups.push(data_page::build_large(object, payload_bytes));
    }
    Layout { groups, places }
}
