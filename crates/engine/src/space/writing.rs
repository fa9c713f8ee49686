//! Writes groups of pages and returns their numbers, with a bounded number of appends in flight.

use runtime::IoClass;

use super::PageStore;
use super::handing_out::{Group, HandingOut};
use super::priority::with_waste;
use super::promise::Promise;
use super::units::Unit;
use crate::error::EngineError;
use crate::flush::packing;
use crate::format::data_page;
use crate::format::data_page::Outgoing;
use crate::format::pointer::Pointer;
use crate::manifest::changes::Changes;
use crate::medium::{Medium, MediumError, PageNo, Stream};

/// The number of objects processed in one step: about ten microseconds.
pub(crate) const STEP: usize = 256;

/// The data pages of a batch of objects, and the place of each object in them.
pub struct Layout {
    groups: Vec<Group>,
    /// For each object: its group and the piece that it begins in.
    places: Vec<(usize, u32)>,
}

impl Layout {
    /// Returns the number of objects.
    pub fn objects(&self) -> usize {
        self.places.len()
    }

    /// Returns the group of an object and the piece that it begins in.
    pub fn place(&self, object: usize) -> (usize, u32) {
        self.places[object]
    }
}

/// Objects that were written and that no index refers to yet.
pub struct Written {
    /// The pointer to each object.
    pub pointers: Vec<Pointer>,
    firsts: Vec<PageNo>,
    lengths: Vec<usize>,
}

impl Written {
    /// Returns the first page and the number of pages of each group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (PageNo, u32)> {
        self.firsts.iter().copied().zip(self.lengths.iter().map(|length| *length as u32))
    }
}

/// Pages written for a single reader; no index refers to them. They become garbage when this is
/// dropped. A power cut before that turns them into holes.
pub struct Temporary<'a, M: Medium> {
    store: &'a PageStore<M>,
    pages: Vec<PageNo>,
}

impl<M: Medium> Temporary<'_, M> {
    /// Returns the page numbers, in the order in which the pages were passed.
    pub fn pages(&self) -> &[PageNo] {
        &self.pages
    }
}

impl<M: Medium> Drop for Temporary<'_, M> {
    fn drop(&mut self) {
        self.store.forget_pages(self.pages.iter().copied());
    }
}

impl<M: Medium> PageStore<M> {
    /// Counts written objects as referred to by the index. Other tasks may run between two steps.
    pub async fn publish_objects(&self, changes: &mut Changes, written: &Written) {
        self.publish_groups(changes, written);
        for step in written.pointers.chunks(STEP) {
            for pointer in step {
                let counts = &mut self.change_of(changes, self.format.locate(*pointer).0).counts;
                counts.published += 1;
                counts.entered += 1;
            }
            self.handle.give_way().await;
        }
    }

    fn publish_groups(&self, changes: &mut Changes, written: &Written) {
        for (first, length) in written.groups() {
            let place = first.0 % self.shape.pages_per_extent;
            self.change_of(changes, first).place(place, length);
        }
    }

    /// Publishes written objects without entering them in the index. [`Self::enter_object`] enters
    /// them one by one.
    pub fn publish_unentered(&self, changes: &mut Changes, written: &Written) {
        self.publish_groups(changes, written);
        for pointer in &written.pointers {
            self.change_of(changes, self.format.locate(*pointer).0).counts.published += 1;
        }
    }

    /// Counts a published object as referred to by the index.
    pub fn enter_object(&self, changes: &mut Changes, object: Pointer) {
        self.change_of(changes, self.format.locate(object).0).counts.entered += 1;
    }

    /// Marks written pages as garbage: nothing will ever refer to them.
    pub fn forget_pages(&self, pages: impl IntoIterator<Item = PageNo>) {
        let mut changes = Changes::default();
        for page in pages {
            self.publish_page(&mut changes, page);
            self.mark_page_dead(&mut changes, page);
        }
        self.apply(&changes);
        self.work.notify_all();
    }

    /// Returns the number of pages to promise for `layout`.
    pub fn pages_of(&self, layout: &Layout) -> u32 {
        let lengths = layout.groups.iter().map(|group| group.len() as u32);
        let longest = lengths.clone().max().unwrap_or(1);
        let shape = &self.shape;
        with_waste(lengths.sum(), longest, shape.append_unit, shape.pages_per_extent)
    }

    /// Writes objects as laid out. They are unpublished until an edit refers to them.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write_objects(
        &self,
        layout: Layout,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Written, EngineError> {
        let lengths: Vec<usize> = layout.groups.iter().map(Vec::len).collect();
        let firsts = self.write_groups(layout.groups, promise, class, urgency).await?;
        let extents = self.extents.borrow();
        let pointers = layout.places.iter().map(|(group, piece)| {
            let (first, pages) = (firsts[*group], lengths[*group] as u32);
            self.format.pointer(first, *piece, extents.generation(first), pages)
        });
        Ok(Written { pointers: pointers.collect(), firsts, lengths })
    }

    /// Writes unsealed index pages one by one. Nothing refers to them yet.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write_segments(
        &self,
        pages: Vec<Vec<u8>>,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Vec<PageNo>, EngineError> {
        let groups = pages.into_iter().map(|page| vec![page]).collect();
        self.write_groups(groups, promise, class, urgency).await
    }

    /// Writes pages for a single reader.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write_temporary(
        &self,
        pages: Vec<Vec<u8>>,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Temporary<'_, M>, EngineError> {
        let groups = pages.into_iter().map(|page| vec![page]).collect();
        let pages = self.write_groups(groups, promise, class, urgency).await?;
        Ok(Temporary { store: self, pages })
    }

    /// Appends consecutive pages.
    pub(crate) fn append_run(
        &self,
        run: Unit,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.medium.append_run(run.first, run.pages, class)
    }

    /// Writes `groups` in order and returns the number of each group's first page. The pages are
    /// then durable, unless edits sync them, and nothing refers to them yet.
    ///
    /// `urgency` is evaluated before each append and sets the width of the window
    /// (`pacing`).
    ///
    /// A group of index pages is handed out without an await, because other tasks write to the same
    /// stream. Each group may reach the end of an extent.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write_groups(
        &self,
        groups: Vec<Group>,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Vec<PageNo>, EngineError> {
        let stream = promise.stream();
        let turn = match stream {
            Stream::Objects => Some(self.handing_out.acquire(1).await),
            _ => None,
        };
        let mut out =
            HandingOut::new(self, promise, groups.len(), |unit: Unit| self.append_run(unit, class));
        for group in groups {
            if stream == Stream::Index && group.len() > 1 {
                out.wait_for_window_between_groups(&urgency).await?;
                if out.is_between() {
                    self.handle.give_way().await;
                }
                out.hand_out(group)?;
                continue;
            }
            out.keep_together(&group);
            for (index, bytes) in group.into_iter().enumerate() {
                if out.is_between() {
                    out.wait_for_window(&urgency).await?;
                    self.handle.give_way().await;
                }
                out.push(bytes, index == 0)?;
            }
        }
        out.hand_out_rest();
        drop(turn);
        out.finish(stream).await
    }

    /// As [`Self::write_groups`], but hands out all groups without an await. If they fit in one
    /// extent, together they reach the end of at most one extent.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write_at_one_go(
        &self,
        groups: Vec<Group>,
        promise: Promise<'_>,
        class: IoClass,
    ) -> Result<Vec<PageNo>, EngineError> {
        let stream = promise.stream();
        assert!(stream == Stream::Index, "whoever writes {stream:?} takes turns");
        let mut out =
            HandingOut::new(self, promise, groups.len(), |unit: Unit| self.append_run(unit, class));
        for group in groups {
            out.hand_out(group)?;
        }
        out.hand_out_rest();
        out.finish(stream).await
    }
}

/// Packs objects into pages: small objects share pages, large objects have pages of their own.
pub(crate) fn lay_out(objects: &[Outgoing<'_>], payload_bytes: u32) -> Layout {
    let is_small = |object: &Outgoing<'_>| {
        data_page::fits_in_a_page(payload_bytes, object.key.len(), object.value.len())
    };
    let mut places = vec![(0, 0); objects.len()];
    let mut groups = Vec::new();
    let small: Vec<usize> = (0..objects.len()).filter(|i| is_small(&objects[*i])).collect();
    let lengths: Vec<usize> = small.iter().map(|i| objects[*i].full_len()).collect();
    let room = payload_bytes as usize - data_page::packed_len(0, 0);
    let overhead = data_page::packed_len(1, 0) - data_page::packed_len(0, 0);
    let mut packed = 0;
    for page in packing::pack(&lengths, room, overhead) {
        packed += page.len();
        let members: Vec<usize> = page.into_iter().map(|i| small[i]).collect();
        let together: Vec<Outgoing<'_>> = members.iter().map(|i| objects[*i]).collect();
        let (bytes, pieces) = data_page::build(&together);
        for (member, piece) in members.into_iter().zip(pieces) {
            places[member] = (groups.len(), piece);
        }
        groups.push(vec![bytes]);
    }
    assert_eq!(packed, small.len(), "packing lost an object or took one twice");
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| !is_small(object)) {
        places[index] = (groups.len(), 0);
        groups.push(data_page::build_large(object, payload_bytes));
    }
    Layout { groups, places }
}
