//! The source of reads in a volume with windows: implements `reqd`.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use engine::{Medium, PageNo};
use runtime::{IoClass, PageImage};

use super::route::{Others, Reader, Route, route};
use super::{InternalReads, State, Windows};
use crate::layout::{Layout, Spot};
use crate::planted::Fault;
use crate::reading::{Outcome, Plan, Turn};
use crate::volume::Inner;

impl<M: Medium> Inner<M> {
    /// Decides the source of pages of a chunk that `source` has.
    pub(crate) fn plan_in_windows(
        &self,
        windows: &Windows,
        source: Option<usize>,
        spot: Spot,
        pages: u32,
        turn: Turn,
    ) -> Plan {
        if let Some(images) = self.cached_pages(windows, spot, pages) {
            windows.count(|stats| stats.cached_reads += u64::from(pages));
            return Plan::Cached(images);
        }
        let source = self.quiet_source(spot).or(source);
        let state = |member: usize| self.taker(member).medium.state();
        let (reader, home) = (Reader::of(turn.class), source.map(state));
        let is_apart = windows.options.internal_reads == InternalReads::InSlots;
        if reader == Reader::Internal && home.is_some() {
            if is_apart {
                // The read waits at that member's gate for its slot.
                windows.count(|stats| stats.slot_reads += u64::from(pages));
                return Plan::Member(source.expect("it has a state"));
            }
            if home != Some(State::And) && turn.due.is_none() {
                let now = self.handle.now();
                let due = windows.book_read(pages, now);
                if due > now {
                    return Plan::Later(Turn { due: Some(due), ..turn });
                }
            }
        }
        let mut route = route(reader, home, self.others(spot, source));
        if self.planted.has(Fault::ReadBusyMembers) && route == Route::Others {
            route = Route::BusyHome;
        }
        windows.note_read(reader, route, home, pages);
        match (route, source) {
            (Route::Home | Route::BusyHome, Some(member)) => Plan::Member(member),
            (Route::Others | Route::BusyOthers, Some(member)) => Plan::Instead(member),
            (_, None) => Plan::Rebuilt,
        }
    }

    /// Rebuilds a page of `home` from the others. If one of them was just lost, or cannot read its
    /// part, the page is read from `home`.
    pub(crate) fn rebuild_or_read(
        self: &Rc<Self>,
        home: usize,
        page: PageNo,
        class: IoClass,
    ) -> Pin<Box<dyn Future<Output = Outcome>>> {
        let spot = self.stripes.spot(page);
        let (inner, rebuilt) = (Rc::clone(self), self.rebuild_for(home, spot, class));
        Box::pin(async move {
            let error = match rebuilt.await {
                Ok(image) => return Ok(image),
                Err(error) => error,
            };
            if !inner.serves(home, spot.extent, spot.row) {
                return Err(error);
            }
            if let Some(windows) = inner.windows() {
                windows.note_read(Reader::of(class), Route::BusyHome, None, 1);
            }
            inner.read_on(home, spot, class).await.map_err(|_| error)
        })
    }

    /// Returns a mirror that is in its deterministic window.
    fn quiet_source(&self, spot: Spot) -> Option<usize> {
        let is_mirrored = self.stripes.layout() == Layout::Mirrored;
        let is_quiet = |member: &usize| self.taker(*member).medium.state().is_quiet();
        if is_mirrored { self.sources(spot).find(is_quiet) } else { None }
    }

    fn cached_pages(&self, windows: &Windows, spot: Spot, pages: u32) -> Option<Vec<PageImage>> {
        let images = windows.images.borrow();
        let index = spot.column * self.stripes.chunk_pages() + spot.offset;
        let page = |index| images.get(spot.extent, spot.row, index).cloned();
        (index..index + pages).map(page).collect()
    }

    /// Returns the state of the redundancy of a page, without `home`.
    fn others(&self, spot: Spot, home: Option<usize>) -> Others {
        let home = home.unwrap_or_else(|| self.stripes.home(spot));
        let others = || (0..self.stripes.members()).filter(|member| *member != home);
        let serves = |member: &usize| self.serves(*member, spot.extent, spot.row);
        let joins = |member: usize| self.serves_rebuilds(member, spot.extent, spot.row);
        let is_quiet = |member: usize| self.taker(member).medium.state().is_quiet();
        let is_there = match self.stripes.layout() {
            Layout::Striped { .. } => false,
            Layout::Mirrored => others().any(|member| serves(&member)),
            Layout::Parity { .. } => others().all(joins),
        };
        match self.stripes.layout() {
            _ if !is_there => Others::Missing,
            Layout::Parity { .. } if others().all(is_quiet) => Others::Quiet,
            // A quiet mirror would have been chosen as the source.
            Layout::Striped { .. } | Layout::Parity { .. } | Layout::Mirrored => Others::Busy,
        }
    }

    /// Reads a page for an internal task at the time `turn.due`.
    pub(crate) async fn read_later(self: Rc<Self>, page: PageNo, turn: Turn) -> Outcome {
        self.wait_for(turn).await;
        self.read_in_turn(page, turn).await
    }

    async fn wait_for(&self, turn: Turn) {
        if let Some(due) = turn.due {
            self.handle.sleep_until(due).await;
        }
    }

    /// Reads pages of a chunk for an internal task at the time `turn.due`.
    pub(crate) async fn read_chunk_later(
        self: Rc<Self>,
        first: PageNo,
        pages: u32,
        turn: Turn,
    ) -> Vec<Outcome> {
        self.wait_for(turn).await;
        self.read_in_chunk(first, pages, turn).await
    }
}

impl Windows {
    fn note_read(&self, reader: Reader, route: Route, home: Option<State>, pages: u32) {
        let pages = u64::from(pages);
        self.count(|stats| match (reader, route) {
            (Reader::Internal, Route::Home) if home == Some(State::And) => {
                stats.slot_reads += pages;
            }
            (Reader::Internal, _) => stats.internal_reads += pages,
            (Reader::Client, Route::Home) => stats.direct_reads += pages,
            (Reader::Client, Route::Others) => stats.rebuilt_reads += pages,
            (Reader::Client, _) if !self.has_begun.get() => {}
            (Reader::Client, Route::BusyHome | Route::BusyOthers) => stats.busy_reads += pages,
        });
    }
}
