//! Incremental reads of the tables that a compaction merges.

use std::collections::VecDeque;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::meta_segment::MetaSegment;
use crate::format::page::PageFault;
use crate::medium::Medium;
use crate::version::open_table::Table;

/// A run being read: tables in key order, from a page on.
pub(crate) struct RunReader {
    tables: VecDeque<Rc<Table>>,
    page: u32,
    /// The number of pages read so far.
    pub read: u64,
}

impl RunReader {
    /// Returns the run of `tables`, which must be in key order.
    pub(crate) fn new(tables: impl IntoIterator<Item = Rc<Table>>) -> Self {
        Self { tables: tables.into_iter().collect(), page: 0, read: 0 }
    }

    /// Reads the next pages, up to the readahead size. Returns them and whether they are the last
    /// ones. One read is in flight at a time, as in a compaction thread of `RocksDB`.
    pub(crate) async fn next<M: Medium>(
        &mut self,
        inner: &Inner<M>,
        class: IoClass,
    ) -> Result<(Vec<PageImage>, bool), EngineError> {
        let Some(table) = self.tables.front() else { return Ok((Vec::new(), true)) };
        let bytes = inner.tables_of().options.readahead_bytes;
        let most = (bytes / u64::from(inner.store.shape.page_bytes)).clamp(1, 1 << 20) as u32;
        let range = self.page..table.meta.data_pages.min(self.page + most);
        let pages = inner.store.read_apart(&table.meta.pages, range.clone(), class).await?;
        let count = u64::from(range.end - range.start);
        inner.stats.borrow_mut().tables.read_pages += count;
        self.read += count;
        let listed = |(place, image)| listed(inner, table, place, image);
        let pages = range.clone().zip(pages).map(listed).collect::<Result<Vec<_>, _>>()?;
        self.page = range.end;
        if self.page == table.meta.data_pages {
            self.tables.pop_front();
            self.page = 0;
        }
        Ok((pages, self.tables.is_empty()))
    }
}

/// Checks that a page matches the table's index, so that a merge gets its keys in order.
fn listed<M: Medium>(
    inner: &Inner<M>,
    table: &Table,
    place: u32,
    image: PageImage,
) -> Result<PageImage, EngineError> {
    let number = table.meta.pages.page(place, inner.store.shape.pages_per_extent);
    let image = inner.checked_meta(number, image)?;
    let segment = MetaSegment::new(image.bytes(), inner.store.format).expect("it was checked");
    let (chunk, at) = (&table.chunk, place as usize);
    let next = (at + 1 < chunk.len()).then(|| chunk.first_key(at + 1));
    let is_within = || next.is_some() || segment.key(segment.len() - 1) == &*table.meta.last_key;
    let longest = usize::from(table.meta.longest_key);
    let is_short = || (0..segment.len()).all(|entry| segment.key(entry).len() <= longest);
    let is_listed = segment.is_listed(chunk.entries(at), chunk.first_key(at), next);
    if is_listed && is_within() && is_short() {
        Ok(image)
    } else {
        Err(EngineError::Corrupt(number, PageFault::Contents))
    }
}
