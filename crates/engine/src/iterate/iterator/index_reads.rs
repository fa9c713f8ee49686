//! Index reads of iterators: on demand when a cursor needs a page, in parallel for a Seek, or ahead
//! of time.

use std::rc::Rc;

use runtime::{IoClass, JoinHandle, Nanos, PageImage};

use super::readahead::Readahead;
use super::{Ahead, Asked, EngineIterator, Position};
use crate::compaction::columns::Order;
use crate::effort::Effort;
use crate::error::EngineError;
use crate::iterate::cursor::{Direction, Needed};
use crate::iterate::snapshot::Snapshot;
use crate::medium::{Medium, PageNo};
use crate::read::cache::Access;
use crate::version::location::{Columns, IndexKind, IndexPage, Location, Piece};

impl<M: Medium> EngineIterator<M> {
    /// Supplies cursors with the segments they need. Returns false if it would have to wait and
    /// `may_wait` is false.
    pub(super) async fn supply(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        effort: &mut Effort,
        may_wait: bool,
    ) -> Result<bool, EngineError> {
        loop {
            let needed = position.cursors.needed(snapshot);
            let Some(first) = needed.first().copied() else { return Ok(true) };
            if self.is_beyond(position, snapshot, first) {
                position.cursors.finish(first.level);
                continue;
            }
            let piece = if let Some(table) = first.at.table() {
                let segments = self.table_for(position, first, table, effort, may_wait).await?;
                segments.map(Piece::Table)
            } else {
                let page = self.page_for(position, snapshot, first, effort, may_wait).await?;
                page.map(Piece::Page)
            };
            let Some(piece) = piece else { return Ok(false) };
            position.cursors.supply(snapshot, first, piece);
            self.prefetch_index(position, snapshot);
        }
    }

    /// Returns the page that a cursor needs: read along with another page, prefetched, cached, or
    /// read now. Returns `None` if it would have to wait and `may_wait` is false.
    async fn page_for(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        needed: Needed,
        effort: &mut Effort,
        may_wait: bool,
    ) -> Result<Option<PageImage>, EngineError> {
        let number = needed.at.page;
        if let Some(page) = position.along[needed.level].take(number) {
            effort.page_reads += 1;
            self.inner.keep_page(number, &page, Access::Scan);
            return Ok(Some(page));
        }
        let ahead = position.ahead[needed.level].take_if(|ahead| ahead.at == needed.at);
        if let Some(ahead) = ahead {
            if !ahead.page.has_come() && !may_wait {
                position.ahead[needed.level] = Some(ahead);
                return Ok(None);
            }
            effort.hashes += self.inner.caches.looks_for_pages(1);
            effort.page_reads += 1;
            let Piece::Page(page) = self.come(needed.at, ahead.page).await? else {
                unreachable!("a page was asked for");
            };
            return Ok(Some(page));
        }
        let cached = self.inner.cached_page(number, Access::Scan);
        if cached.is_none() && !may_wait {
            return Ok(None);
        }
        effort.hashes += self.inner.caches.looks_for_pages(1);
        if cached.is_some() {
            return Ok(cached);
        }
        effort.page_reads += 1;
        self.read_next(position, snapshot, needed).await.map(Some)
    }

    /// Returns the segments of the table that a cursor needs: prefetched, or read now, in phases.
    /// Returns `None` if it would have to wait and `may_wait` is false.
    async fn table_for(
        &self,
        position: &mut Position,
        needed: Needed,
        table: Columns,
        effort: &mut Effort,
        may_wait: bool,
    ) -> Result<Option<Rc<[PageImage]>>, EngineError> {
        let asked = &mut position.ahead[needed.level];
        let ahead = asked.take_if(|ahead| ahead.at == needed.at);
        let has_come = ahead.as_ref().is_some_and(|ahead| ahead.page.has_come());
        if !has_come && !may_wait {
            position.ahead[needed.level] = ahead;
            return Ok(None);
        }
        let pages = pages_of(needed.at);
        effort.hashes += self.inner.caches.looks_for_pages(pages);
        effort.page_reads += pages;
        if let Some(ahead) = ahead {
            let Piece::Table(segments) = self.come(needed.at, ahead.page).await? else {
                unreachable!("a table was asked for");
            };
            return Ok(Some(segments));
        }
        self.inner.stats.borrow_mut().iterators.next_index_reads += 1;
        let reading = self.inner.read_table(table, IoClass::ClientRead, self.phases());
        Ok(Some(Box::pin(reading).await?))
    }

    /// Returns the read order of a table that was not prefetched.
    fn phases(&self) -> Order {
        let columns = self.inner.options.columns;
        Order::InPhases(columns.is_some_and(|columns| columns.iterators_read_filters))
    }

    /// Returns a prefetched segment or table, and makes its read urgent if it has not ended.
    async fn come(&self, at: IndexPage, asked: Asked) -> Result<Piece, EngineError> {
        let read = match asked {
            Asked::Cached(page) => return Ok(Piece::Page(page)),
            Asked::UnderWay(read) => read,
        };
        let is_waited_for = !read.is_finished();
        self.inner.stats.borrow_mut().iterators.index_prefetch_waits += u64::from(is_waited_for);
        if is_waited_for {
            let pages = at.table().map_or(at.page.0..at.page.0 + 1, Columns::behind_filter);
            pages.for_each(|page| self.inner.store.medium.promote(PageNo(page)));
        }
        read.await
    }

    /// Reads a segment that was not prefetched, and reads following segments of its level along
    /// with it.
    async fn read_next(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        needed: Needed,
    ) -> Result<PageImage, EngineError> {
        self.inner.stats.borrow_mut().iterators.next_index_reads += 1;
        let (at, class) = (needed.at, IoClass::ClientRead);
        let along = self.pages_along(position, snapshot, needed);
        let image = if along == 0 {
            self.inner.read_index(at, class).await?
        } else {
            let read = self.inner.store.medium.read_run(at.page, 1 + along, class).await;
            let mut read = (at.page.0..).map(PageNo).zip(read);
            let (_, first) = read.next().expect("a run has its first page");
            for (page, other) in read {
                // An error of such a page is reported by the reader that needs the page.
                let checked = self.inner.store.check_page(page, other);
                let checked = checked.and_then(|image| self.inner.checked_meta(page, image));
                let Ok(image) = checked else { break };
                position.along[needed.level].keep(page, image);
            }
            self.inner.check_index(at, first, class).await?
        };
        self.inner.keep_page(at.page, &image, Access::Scan);
        Ok(image)
    }

    /// Returns the number of pages after `needed` to read along with it: they hold the next
    /// segments of the level, are adjacent in the same extent, and none begins at or after the
    /// upper bound.
    fn pages_along(&self, position: &mut Position, snapshot: &Snapshot, needed: Needed) -> u32 {
        let goes_up = position.cursors.direction() == Direction::Up;
        if self.options.readahead_bytes == 0 || needed.at.kind != IndexKind::Segment || !goes_up {
            return 0;
        }
        let shape = self.inner.store.shape;
        let page_bytes = u64::from(shape.page_bytes);
        let kept: usize = position.along.iter().map(Readahead::kept).sum();
        let room = self.buffer.bytes().saturating_sub(kept as u64 * page_bytes);
        let most = self.options.readahead_bytes.min(room);
        let (first, extent) = (needed.at.page, shape.extent_of(needed.at.page));
        let wanted = position.along[needed.level].along(first, page_bytes, most);
        let level = snapshot.version.level(needed.level);
        let follows = |behind: &u32| {
            let (index, page) = (needed.segment + *behind as usize, PageNo(first.0 + behind));
            let is_there =
                || matches!(level.segment(index).location, Location::Stored(at) if at == page);
            let is_within = || {
                let key = level.first_key(index);
                self.upper_bound.as_ref().is_none_or(|end| *key < **end)
            };
            index < level.len() && is_there() && shape.extent_of(page) == extent && is_within()
        };
        (1..=wanted).take_while(follows).count() as u32
    }

    /// Reads the segments that cursors need, in parallel. Returns the number of pages read.
    pub(super) async fn read_all(
        &self,
        snapshot: &Rc<Snapshot>,
        position: &mut Position,
    ) -> Result<u64, EngineError> {
        let mut count = 0;
        loop {
            let mut needed = position.cursors.needed(snapshot);
            let is_beyond = |needed: &mut Needed| self.is_beyond(position, snapshot, *needed);
            let beyond: Vec<Needed> = needed.extract_if(.., is_beyond).collect();
            for beyond in beyond {
                position.cursors.finish(beyond.level);
            }
            if needed.is_empty() {
                self.prefetch_index(position, snapshot);
                return Ok(count);
            }
            if self.supply_cached(position, snapshot, &mut needed).await {
                continue; // a segment may end before the key, so that the next one is needed
            }
            let is_of_table = |needed: &mut Needed| needed.at.table().is_some();
            let tables: Vec<Needed> = needed.extract_if(.., is_of_table).collect();
            let tables: Vec<_> = tables
                .into_iter()
                .map(|needed| (needed, self.seek_table(needed, snapshot)))
                .collect();
            let read = |needed: Needed| {
                (needed, self.inner.store.medium.read(needed.at.page, IoClass::ClientRead))
            };
            let reads: Vec<_> = needed.into_iter().map(read).collect();
            count += reads.len() as u64;
            for (needed, table) in tables {
                count += u64::from(pages_of(needed.at));
                position.cursors.supply(snapshot, needed, table.await?);
            }
            for (needed, read) in reads {
                let read = read.await;
                let class = IoClass::ClientRead;
                let page = self.inner.check_index(needed.at, read, class).await?;
                self.inner.keep_page(needed.at.page, &page, Access::Point);
                position.cursors.supply(snapshot, needed, Piece::Page(page));
            }
        }
    }

    /// Starts reading a table for a Seek, in phases.
    fn seek_table(
        &self,
        needed: Needed,
        snapshot: &Rc<Snapshot>,
    ) -> JoinHandle<Result<Piece, EngineError>> {
        self.read_apart(needed.at, IoClass::ClientRead, self.phases(), snapshot)
    }

    /// Supplies cursors with the needed segments that are in the cache. Returns whether these were
    /// all. A Seek counts as a point access, like a Get.
    async fn supply_cached(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        needed: &mut Vec<Needed>,
    ) -> bool {
        let hashes = self.inner.caches.looks_for_pages(needed.len() as u32);
        if hashes == 0 {
            return false;
        }
        needed.retain(|needed| {
            if needed.at.table().is_some() {
                return true; // its pages are looked up one by one
            }
            let cached = self.inner.cached_page(needed.at.page, Access::Point);
            let is_missing = cached.is_none();
            if let Some(page) = cached {
                position.cursors.supply(snapshot, *needed, Piece::Page(page));
            }
            is_missing
        });
        self.spend(Nanos::ZERO, Effort { hashes, ..Effort::default() }).await;
        needed.is_empty()
    }

    /// Prefetches the segment after the current one, in each level.
    pub(super) fn prefetch_index(&self, position: &mut Position, snapshot: &Rc<Snapshot>) {
        if !self.options.index_prefetch {
            return;
        }
        for level in 0..position.ahead.len() {
            let Some(next) = position.cursors.following(snapshot, level) else { continue };
            let is_asked_for =
                position.ahead[level].as_ref().is_some_and(|ahead| ahead.at == next.at);
            if is_asked_for || self.is_beyond(position, snapshot, next) {
                continue;
            }
            let cached = match next.at.table() {
                Some(_) => None,
                None => self.inner.cached_page(next.at.page, Access::Scan),
            };
            let page = match cached {
                Some(page) => Asked::Cached(page),
                None => Asked::UnderWay(self.prefetch(next.at, snapshot)),
            };
            position.ahead[level] = Some(Ahead { at: next.at, page });
        }
    }

    /// Starts reading a segment that is not needed yet.
    fn prefetch(
        &self,
        at: IndexPage,
        snapshot: &Rc<Snapshot>,
    ) -> JoinHandle<Result<Piece, EngineError>> {
        self.inner.stats.borrow_mut().iterators.index_prefetches += 1;
        self.read_apart(at, IoClass::IndexPrefetch, Order::AtOnce, snapshot)
    }

    /// Reads a segment or table in a separate task.
    fn read_apart(
        &self,
        at: IndexPage,
        class: IoClass,
        order: Order,
        snapshot: &Rc<Snapshot>,
    ) -> JoinHandle<Result<Piece, EngineError>> {
        let (inner, snapshot) = (Rc::clone(&self.inner), Rc::clone(snapshot));
        self.inner.store.handle.spawn("index prefetch", async move {
            let _snapshot = snapshot;
            if let Some(table) = at.table() {
                return Ok(Piece::Table(inner.read_table(table, class, order).await?));
            }
            let image = inner.read_index(at, class).await?;
            inner.keep_page(at.page, &image, Access::Scan);
            Ok(Piece::Page(image))
        })
    }

    /// Whether a segment begins at or after the upper bound, for ascending cursors. Descending
    /// cursors never reach a segment that ends below the lower bound.
    fn is_beyond(&self, position: &Position, snapshot: &Snapshot, needed: Needed) -> bool {
        let goes_up = position.cursors.direction() == Direction::Up;
        let end = self.upper_bound.as_ref().filter(|_| goes_up);
        end.is_some_and(|end| {
            position
                .cursors
                .first_key(snapshot, needed)
                .is_some_and(|first_key| *first_key >= **end)
        })
    }
}

/// Returns the number of pages that a cursor decodes for this segment or table.
fn pages_of(at: IndexPage) -> u32 {
    at.table().map_or(1, |table| table.pages.behind_filter())
}
