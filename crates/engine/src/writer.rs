//! Writing pages: groups of pages in, their numbers out, a bounded number of appends under way.

use std::collections::VecDeque;

use runtime::{IoClass, PageImage};

use crate::data_page;
use crate::engine::Inner;
use crate::extents::Purpose;
use crate::medium::{Medium, PageNo};
use crate::pacing;
use crate::page;
use crate::planted::Fault;

/// Pages, unsealed, that must follow one another on the medium.
pub(crate) type Group = Vec<Vec<u8>>;

impl<M: Medium> Inner<M> {
    /// Writes `groups` in order and returns the number of each group's first page. When it
    /// returns they are durable, but nothing refers to them yet: publish them with
    /// [`Self::published`].
    ///
    /// `urgency` is asked before each append how wide the window may be; see [`pacing`].
    pub(crate) async fn write_groups(
        &self,
        purpose: Purpose,
        groups: Vec<Group>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Vec<PageNo> {
        let unit = self.shape.append_unit as usize;
        let mut firsts = Vec::with_capacity(groups.len());
        let mut fillers = Vec::new();
        let mut under_way = VecDeque::new();
        let mut open: Option<PageNo> = None;
        let mut sealed: Vec<PageImage> = Vec::with_capacity(unit);
        for group in groups {
            let left = open.map_or(0, |_| unit - sealed.len()) as u32;
            if group.len() as u32 > left + self.extents.borrow().room(purpose) {
                // The group does not fit in what is left of the extent: fill the unit, move on.
                if let Some(first) = open.take() {
                    under_way.push_back(self.append_filled(
                        first,
                        &mut sealed,
                        &mut fillers,
                        class,
                    ));
                }
                self.extents.borrow_mut().close(purpose);
            }
            for (index, bytes) in group.into_iter().enumerate() {
                let first = if let Some(first) = open {
                    first
                } else {
                    // Waiting happens only here: a unit that was handed out is submitted before
                    // anybody else may take the next one of its extent.
                    let window = pacing::window(urgency(), self.shape.parallelism);
                    while under_way.len() >= window {
                        under_way.pop_front().expect("the window is at least 1").await;
                    }
                    self.take_unit(purpose).await
                };
                open = Some(first);
                let number = PageNo(first.0 + sealed.len() as u32);
                if index == 0 {
                    firsts.push(number);
                }
                sealed.push(page::seal(bytes, number));
                if sealed.len() == unit {
                    under_way.push_back(self.append_filled(
                        first,
                        &mut sealed,
                        &mut fillers,
                        class,
                    ));
                    open = None;
                }
            }
        }
        if let Some(first) = open {
            under_way.push_back(self.append_filled(first, &mut sealed, &mut fillers, class));
        }
        if !self.planted.has(Fault::PublishBeforeDurable) {
            for append in under_way {
                append.await;
            }
        }
        // Until now a power cut would have made holes of them; durable, they are just empty.
        self.published(&fillers, fillers.iter().map(|_| 1));
        firsts
    }

    /// Submits a unit, filled up with empty pages, whose numbers go to `fillers`, if need be.
    fn append_filled(
        &self,
        first: PageNo,
        sealed: &mut Vec<PageImage>,
        fillers: &mut Vec<PageNo>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<M> {
        for place in sealed.len() as u32..self.shape.append_unit {
            let number = PageNo(first.0 + place);
            fillers.push(number);
            sealed.push(page::seal(data_page::filler(), number));
        }
        self.medium.append(first, std::mem::take(sealed), class)
    }

    /// The next append unit; waits for a free extent if there is none.
    async fn take_unit(&self, purpose: Purpose) -> PageNo {
        loop {
            let next = self.extents.borrow_mut().next_unit(purpose, |id| self.medium.wear(id));
            if let Some(first) = next {
                let pages = (0..self.shape.append_unit).map(|place| PageNo(first.0 + place));
                self.unpublished.borrow_mut().extend(pages);
                self.work.notify_all(); // free space has shrunk: garbage collection may be due
                return first;
            }
            self.work.notified().await;
        }
    }

    /// `pages` are in use, or will never be: after a power cut they are no holes.
    pub(crate) fn published(&self, firsts: &[PageNo], lengths: impl Iterator<Item = usize>) {
        let mut unpublished = self.unpublished.borrow_mut();
        for (first, length) in firsts.iter().zip(lengths) {
            for place in 0..length as u32 {
                unpublished.remove(&PageNo(first.0 + place));
            }
        }
    }
}
