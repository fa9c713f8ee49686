//! The writes of a store: appends, syncs, releases.

use std::collections::BTreeMap;

use engine::{ExtentId, Medium, Stream};
use runtime::{IoClass, PageImage, join_all};

use super::Life;
use super::known::{Filled, Row};

impl Life {
    /// Returns an extent with room, and opens one if necessary.
    fn extent_to_append(&mut self) -> Option<u32> {
        let rows = self.volume.shape().pages_per_extent / self.volume.shape().append_unit;
        let (open, free) = {
            let model = &mut *self.model.borrow_mut();
            for extent in model.extents.values_mut() {
                extent.is_open &= extent.next < rows;
            }
            let is_open = model.extents.iter().filter(|(_, e)| e.is_open);
            let open: Vec<u32> = is_open.map(|(id, _)| *id).collect();
            let free = (0..self.world.shape.extents).find(|id| !model.extents.contains_key(id));
            (open, free)
        };
        if open.len() >= 2 {
            return Some(open[self.rng.below(open.len() as u64) as usize]);
        }
        self.open(free?)
    }

    fn open(&mut self, id: u32) -> Option<u32> {
        let stream = Stream::ALL[self.rng.below(4) as usize];
        let model = &mut *self.model.borrow_mut();
        model.generations += 1;
        match self.volume.open(ExtentId(id), model.generations, stream) {
            Ok(()) => {
                let rows = BTreeMap::new();
                model.extents.insert(id, Filled { stream, rows, next: 0, is_open: true });
                Some(id)
            }
            Err(error) => {
                self.complain_unless_beyond(model, &format!("extent {id} is not opened: {error}"));
                None
            }
        }
    }

    pub(super) async fn append(&mut self) {
        if self.model.borrow().is_beyond {
            return;
        }
        if let Some(id) = self.extent_to_append() {
            self.append_to(id).await;
        }
    }

    async fn append_to(&mut self, id: u32) {
        let shape = self.volume.shape();
        let rows = shape.pages_per_extent / shape.append_unit;
        let mut appends = Vec::new();
        for _ in 0..=self.rng.below(4) {
            let row = self.model.borrow().extents[&id].next;
            if row >= rows {
                break;
            }
            let pages: Vec<Vec<u8>> = (0..shape.append_unit).map(|_| self.content()).collect();
            let images = pages.iter().map(|page| PageImage::new(page)).collect();
            let first = shape.page(ExtentId(id), row * shape.append_unit);
            {
                let mut model = self.model.borrow_mut();
                let extent = model.extents.get_mut(&id).expect("it is open");
                extent.next += 1;
                extent.rows.insert(row, Row { pages, ..Row::default() });
            }
            self.tally.borrow_mut().appends += 1;
            let append = self.volume.append(first, images, IoClass::Flush);
            appends.push(async move { (row, append.await) });
        }
        for (row, done) in join_all(appends).await {
            let mut model = self.model.borrow_mut();
            let extent = model.extents.get_mut(&id).expect("it is open");
            match done {
                Ok(()) => extent.rows.get_mut(&row).expect("it is there").is_acknowledged = true,
                Err(error) => {
                    extent.rows.remove(&row);
                    extent.is_open = false;
                    self.complain_unless_beyond(&mut model, &format!("append to {id}: {error}"));
                    model.is_beyond = true;
                }
            }
        }
    }

    /// Returns unique bytes for a page, sometimes with zeros at the end.
    fn content(&mut self) -> Vec<u8> {
        let zeros = self.rng.below(3) as usize;
        let length = 9 + self.rng.below(60) as usize;
        let mut page: Vec<u8> = (0..length).map(|_| self.rng.below(256) as u8).collect();
        page[0] = 1;
        page.resize(length + zeros, 0);
        page
    }

    pub(super) async fn sync_all(&mut self) {
        let given = self.model.borrow().generations;
        for stream in Stream::ALL {
            let acknowledged: Vec<(u32, u32)> = {
                let model = self.model.borrow();
                let of = model.extents.iter().filter(|(_, e)| e.stream == stream);
                let rows = of.flat_map(|(id, e)| e.rows.iter().map(|(row, r)| (*id, *row, r)));
                rows.filter(|(_, _, r)| r.is_acknowledged).map(|(id, row, _)| (id, row)).collect()
            };
            let synced = self.volume.sync(stream).await;
            let mut model = self.model.borrow_mut();
            match synced {
                Ok(()) => {
                    for (id, row) in acknowledged {
                        let extent = model.extents.get_mut(&id).expect("nobody releases it");
                        extent.rows.get_mut(&row).expect("it is there").is_synced = true;
                    }
                }
                Err(error) => {
                    self.complain_unless_beyond(
                        &mut model,
                        &format!("sync of {stream:?}: {error}"),
                    );
                    model.is_beyond = true;
                    return;
                }
            }
        }
        self.model.borrow_mut().known_generations = given;
    }

    pub(super) async fn release(&mut self) {
        let ids: Vec<u32> = self.model.borrow().extents.keys().copied().collect();
        if ids.is_empty() || self.model.borrow().is_beyond {
            return;
        }
        // Prefers the extent that a member is being filled with, which is then filled again at
        // once.
        let filled = (0..self.world.members).find_map(|m| self.volume.progress(m)?.extent);
        let filled = filled.map(|id| id.0).filter(|id| ids.contains(id) && self.rng.chance(0.7));
        let id = filled.unwrap_or_else(|| ids[self.rng.below(ids.len() as u64) as usize]);
        self.model.borrow_mut().extents.remove(&id);
        if let Err(error) = self.volume.release(ExtentId(id)).await {
            let mut model = self.model.borrow_mut();
            self.complain_unless_beyond(&mut model, &format!("release of {id}: {error}"));
            model.is_beyond = true;
        } else if filled.is_some() && self.open(id).is_some() {
            self.append_to(id).await;
        }
    }
}
