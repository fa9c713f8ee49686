//! Reads, compared with the model.

use engine::{ExtentId, Medium, MediumError, PageNo};
use runtime::{IoClass, PageImage};

use super::Life;
use super::known::Row;

impl Life {
    pub(super) async fn read_some(&mut self) {
        let rows = self.readable();
        if rows.is_empty() {
            return;
        }
        let per_row = self.volume.shape().append_unit;
        let reads: Vec<_> = (0..=self.rng.below(4))
            .map(|_| {
                let (id, row) = rows[self.rng.below(rows.len() as u64) as usize];
                let at = self.rng.below(u64::from(per_row)) as u32;
                let length = 1 + self.rng.below(u64::from(per_row - at)) as u32;
                (id, row, at, length)
            })
            .collect();
        for (id, row, at, length) in reads {
            self.read(id, row, at, length, "read").await;
        }
    }

    fn readable(&self) -> Vec<(u32, u32)> {
        let model = self.model.borrow();
        let rows = model.extents.iter().flat_map(|(id, e)| e.rows.iter().map(|r| (*id, r)));
        let rows = rows.filter(|(_, (_, row))| row.is_acknowledged);
        rows.map(|(id, (row, _))| (id, *row)).collect()
    }

    pub(super) async fn read_all(&mut self, when: &str) {
        let per_row = self.volume.shape().append_unit;
        for (id, row) in self.readable() {
            self.read(id, row, 0, per_row, when).await;
        }
    }

    /// Reads pages of a stripe and compares them with the model.
    async fn read(&mut self, id: u32, row: u32, at: u32, length: u32, when: &str) {
        let shape = self.volume.shape();
        let first = shape.page(ExtentId(id), row * shape.append_unit + at);
        let was_beyond = self.model.borrow().is_beyond;
        let found = if length == 1 {
            vec![self.volume.read(first, IoClass::ClientRead).await]
        } else {
            self.volume.read_run(first, length, IoClass::ClientRead).await
        };
        for (number, found) in (0..).zip(found) {
            self.tally.borrow_mut().reads += 1;
            let page = PageNo(first.0 + number);
            let known = {
                let model = self.model.borrow();
                let Some(known) = model.extents.get(&id).and_then(|e| e.rows.get(&row)) else {
                    return;
                };
                known.clone()
            };
            let expected = &known.pages[(at + number) as usize];
            let complaint = self.judge(page, found, expected, &known).await;
            let Some(complaint) = complaint else { continue };
            let is_error = complaint.contains("cannot") || complaint.contains("gone");
            let beyond = was_beyond || self.model.borrow().is_beyond;
            let may_fail = beyond || self.model.borrow().extents[&id].rows[&row].may_fail;
            let may_fail = may_fail || self.keeps_holes();
            if is_error && (may_fail || self.world.spares() == 0) {
                self.tally.borrow_mut().errors += 1;
                continue;
            }
            let flipped = known.is_flipped && may_fail;
            if !flipped {
                let what = format!("{when}: extent {id} stripe {row} page {}: {complaint}", page.0);
                self.model.borrow_mut().complaints.push(format!("{what} (seed {})", self.seed));
            }
        }
    }

    /// Whether the volume has ever counted a kept hole.
    pub(super) fn keeps_holes(&self) -> bool {
        let mut model = self.model.borrow_mut();
        model.keeps_holes |= self.volume.stats().kept_holes > 0;
        model.keeps_holes
    }

    /// Returns the complaint about a page that was read, if any. A flipped bit is accepted if a
    /// rebuild is right.
    async fn judge(
        &self,
        page: PageNo,
        found: Result<PageImage, MediumError>,
        expected: &[u8],
        known: &Row,
    ) -> Option<String> {
        let is_it = |found: &PageImage| {
            let bytes = found.bytes();
            bytes.len() >= expected.len()
                && bytes[..expected.len()] == *expected
                && bytes[expected.len()..].iter().all(|byte| *byte == 0)
        };
        match found {
            Ok(image) if is_it(&image) => None,
            Ok(_) if known.is_flipped => {
                let versions = self.volume.read_versions(page, IoClass::ClientRead).await;
                if versions.iter().any(is_it) {
                    self.tally.borrow_mut().healed += 1;
                    None
                } else if versions.is_empty() {
                    Some("it cannot be rebuilt".to_owned())
                } else {
                    Some("a flipped bit was not healed".to_owned())
                }
            }
            Ok(image) => Some(format!("wrong bytes: {:?} instead of {expected:?}", image.bytes())),
            Err(error) => Some(format!("{error}")),
        }
    }
}
