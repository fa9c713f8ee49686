//! Writing pages: groups of pages in, their numbers out, a bounded number of appends under way.

use runtime::IoClass;

use crate::error::EngineError;
use crate::format::data_page::{self, Outgoing};
use crate::format::packing;
use crate::format::pointer::Pointer;
use crate::medium::{Medium, MediumError, PageNo, Stream};
use crate::store::PageStore;
use crate::store::changes::Changes;
use crate::store::handing_out::HandingOut;
use crate::store::promise::Promise;
use crate::store::space::with_waste;
use crate::store::units::Unit;

/// Pages, unsealed, that must follow one another on the medium.
pub type Group = Vec<Vec<u8>>;

/// Objects that are looked at in one step, where there are many: some ten microseconds.
pub(super) const STEP: usize = 256;

/// The data pages of a batch of objects, and which object lies where.
pub struct Layout {
    groups: Vec<Group>,
    /// By object: its group and the piece it begins in.
    places: Vec<(usize, u32)>,
}

impl Layout {
    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.places.len()
    }

    /// The group of an object and the piece it begins in.
    pub fn place(&self, object: usize) -> (usize, u32) {
        self.places[object]
    }
}

/// Objects that are durable, but that no index refers to yet.
pub struct Written {
    /// By object.
    pub pointers: Vec<Pointer>,
    firsts: Vec<PageNo>,
    lengths: Vec<usize>,
}

impl Written {
    /// The first page of each group, and how many there are.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (PageNo, u32)> {
        self.firsts.iter().copied().zip(self.lengths.iter().map(|length| *length as u32))
    }
}

/// Pages that no index refers to, written for a single reader. They are garbage as soon as this is
/// dropped; a power cut before that makes holes of them.
pub struct Temporary<'a, M: Medium> {
    store: &'a PageStore<M>,
    pages: Vec<PageNo>,
}

impl<M: Medium> Temporary<'_, M> {
    /// Where they are, in the order in which they were given.
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
    /// Objects that were written get entries in the index. Others may go first between two steps of it.
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

    /// Objects that were written get entries in the index one by one: [`Self::enter_object`].
    pub fn publish_unentered(&self, changes: &mut Changes, written: &Written) {
        self.publish_groups(changes, written);
        for pointer in &written.pointers {
            self.change_of(changes, self.format.locate(*pointer).0).counts.published += 1;
        }
    }

    /// An object that was published gets its entry in the index.
    pub fn enter_object(&self, changes: &mut Changes, object: Pointer) {
        self.change_of(changes, self.format.locate(object).0).counts.entered += 1;
    }

    /// Nothing will ever refer to these pages, which were written: they are garbage.
    pub fn forget_pages(&self, pages: impl IntoIterator<Item = PageNo>) {
        let mut changes = Changes::default();
        for page in pages {
            self.publish_page(&mut changes, page);
            self.mark_page_dead(&mut changes, page);
        }
        self.apply(&changes);
        self.work.notify_all();
    }

    /// Pages to be promised for `layout`.
    pub fn pages_of(&self, layout: &Layout) -> u32 {
        let lengths = layout.groups.iter().map(|group| group.len() as u32);
        let longest = lengths.clone().max().unwrap_or(1);
        let shape = &self.shape;
        with_waste(lengths.sum(), longest, shape.append_unit, shape.pages_per_extent)
    }

    /// Writes objects as they were laid out. They are unpublished until an edit refers
    /// to them.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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

    /// Writes pages of an index, unsealed, one by one. Nothing refers to them yet.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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
    /// [`EngineError::Medium`].
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

    /// Appends pages that follow one another.
    pub(super) fn append_run(
        &self,
        run: Unit,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.medium.append_run(run.first, run.pages, class)
    }

    /// Writes `groups` in order and returns the number of each group's first page. When it
    /// returns they are durable, but nothing refers to them yet.
    ///
    /// `urgency` is asked before each append how wide the window may be (`store/pacing.rs`).
    ///
    /// A group in the stream of the index is handed out at one go, because others write there too; each of them may
    /// come to the end of an extent.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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

    /// The same, but all groups are handed out at one go: together they come to the end of one extent at
    /// most, if they are no more than fit in one.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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

/// Packs objects into pages: small ones share, large ones have pages of their own.
pub fn lay_out(objects: &[Outgoing<'_>], payload_bytes: u32) -> Layout {
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
