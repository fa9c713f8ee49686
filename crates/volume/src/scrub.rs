//! Scrub: reads a stripe from all members and compares its parity with its pages. `md` calls this a
//! check, ZFS a scrub. It writes nothing.
//!
//! Pages that were not written in this life of an extent, or were torn by a power cut, need not
//! agree with anything. So the caller supplies the state of each page. The pages at one place of a
//! stripe's chunks are compared if the caller uses at least one of them.

use engine::{ExtentId, Medium, MediumError, PageNo};
use runtime::{IoClass, PageImage};

use crate::extents::bit;
use crate::layout::{Layout, Spot};
use crate::parity;
use crate::volume::{Condition, Inner, Volume};

/// The state of a data page, as its owner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// No reference to it exists.
    Unused,
    /// It has the bytes that were written.
    Whole,
    /// It has other bytes.
    Damaged,
}

/// A page of a member that does not agree with the rest of its stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The member.
    pub member: usize,
    /// Its page number on the member.
    pub place: PageNo,
    /// Its page number in the volume; `None` for parity that does not match although all its pages
    /// are whole.
    pub page: Option<PageNo>,
}

/// The result of checking a stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Checked {
    /// The stripe does not exist, has no parity, or its extent was released meanwhile.
    Nothing,
    /// The stripe could not be checked: it was being written, or a member lacks some of it.
    Not,
    /// The stripe was checked; with the pages that do not agree.
    Done(Vec<Mismatch>),
}

type Read = Result<PageImage, MediumError>;

impl<M: Medium> Volume<M> {
    /// Stripes per extent.
    pub fn rows(&self) -> u32 {
        self.inner.stripes.rows()
    }

    /// Reads a stripe from all members and compares its parity with its pages. `see` returns the
    /// state of a data page. Layouts without parity have nothing to check.
    pub async fn check_stripe(
        &self,
        extent: ExtentId,
        row: u32,
        see: impl Fn(PageNo, &PageImage) -> Seen,
    ) -> Checked {
        let inner = &*self.inner;
        let life = inner.extents.borrow().get(extent).life;
        if let Some(answer) = inner.cannot_check(extent, row) {
            return answer;
        }
        let (place, pages) = (inner.stripes.place(extent, row, 0), inner.stripes.chunk_pages());
        let read =
            |medium: &crate::windows::Gate<M>| medium.read_run(place, pages, IoClass::GcRead);
        let reads: Vec<_> = inner.takers().into_iter().map(|taker| taker.submit(read)).collect();
        let mut chunks = Vec::with_capacity(reads.len());
        for (_, read) in reads {
            chunks.push(read.await);
        }
        // The stripe may have been written or released while it was read.
        let answer = inner.cannot_check(extent, row);
        if inner.extents.borrow().get(extent).life != life || answer.is_some() {
            return answer.unwrap_or(Checked::Nothing);
        }
        let at = |offset| Spot { extent, row, column: 0, offset };
        let found = (0..pages).flat_map(|offset| {
            let column: Vec<&Read> = chunks.iter().map(|chunk| &chunk[offset as usize]).collect();
            inner.mismatches(at(offset), &column, &see)
        });
        Checked::Done(found.collect())
    }
}

impl<M: Medium> Inner<M> {
    /// Returns the reason why a stripe cannot be checked, if any.
    fn cannot_check(&self, extent: ExtentId, row: u32) -> Option<Checked> {
        let extents = self.extents.borrow();
        let of = extents.get(extent);
        let has_parity = matches!(self.stripes.layout(), Layout::Parity { .. });
        if !has_parity || !of.is_live || row >= of.rows {
            return Some(Checked::Nothing);
        }
        let mut members = 0..self.stripes.members();
        let is_there = |member| {
            of.has(member, row)
                && of.deferred & bit(member) == 0
                && self.condition(member) == Condition::Serving
        };
        let is_whole = !of.under_way.contains(&row) && members.all(is_there);
        (!is_whole).then_some(Checked::Not)
    }

    /// Returns the pages that do not agree, at one place of all chunks. `read` has one page per
    /// member, in their order.
    fn mismatches(
        &self,
        at: Spot,
        read: &[&Read],
        see: &impl Fn(PageNo, &PageImage) -> Seen,
    ) -> Vec<Mismatch> {
        let place = self.stripes.place(at.extent, at.row, at.offset);
        let (mut is_of_use, mut damaged) = (false, Vec::new());
        for column in 0..self.stripes.columns() {
            let spot = Spot { column, ..at };
            let (member, page) = (self.stripes.home(spot), self.page_of(spot));
            match read[member].as_ref().map_or(Seen::Damaged, |image| see(page, image)) {
                Seen::Unused => {}
                Seen::Whole => is_of_use = true,
                Seen::Damaged => damaged.push(Mismatch { member, place, page: Some(page) }),
            }
        }
        if !is_of_use || !damaged.is_empty() {
            return if is_of_use { damaged } else { Vec::new() };
        }
        let member = self.stripes.parity_member(at.extent, at.row).expect("it has parity");
        let images: Option<Vec<&[u8]>> =
            read.iter().map(|read| Some(read.as_ref().ok()?.bytes())).collect();
        let agrees = images.is_some_and(|images| parity::is_same(&parity::of(images), &[]));
        if agrees { Vec::new() } else { vec![Mismatch { member, place, page: None }] }
    }
}
