//! Verification of redundancy: reads all chunks of each stripe in use, including parity, and checks
//! that they agree.

use engine::ExtentId;
use volume::{Checked, Mismatch, Seen};

use crate::drive;
use crate::error::Error;
use crate::error::place::Place;
use crate::report::{Finding, Report};
use crate::store::Store;

/// The results for the stripes of one extent.
type Stripes = Vec<Checked>;

impl Store {
    /// Adds to `report` the redundancy that does not agree with the data. Writes nothing. After
    /// each extent, `progress` receives the number of extents so far and of all extents.
    pub(crate) fn check_redundancy(&self, report: &mut Report, progress: &mut dyn FnMut(u64, u64)) {
        let all = self.parts_with_stripes();
        let mut extent = 0;
        while let Some(stripes) = self.check_stripes(ExtentId(extent)) {
            for checked in stripes {
                match checked {
                    Checked::Nothing => {}
                    Checked::Not => report.unchecked_stripes += 1,
                    Checked::Done(mismatches) => {
                        report.stripes += 1;
                        let found = mismatches.iter().map(|it| finding(self.place(), it));
                        report.findings.extend(found);
                    }
                }
            }
            extent += 1;
            progress(u64::from(extent), u64::from(all));
        }
    }

    /// Returns the number of extents whose stripes can be compared: 0 for a store in one directory.
    fn parts_with_stripes(&self) -> u32 {
        self.call(|root| {
            let parts = if root.volume.is_some() { root.engine.extents() } else { 0 };
            async move { parts }
        })
    }

    /// Checks the stripes of one extent. Returns `None` after the last extent, and for a store in
    /// one directory.
    fn check_stripes(&self, extent: ExtentId) -> Option<Stripes> {
        self.call(|root| {
            let (volume, engine) = (root.volume.clone(), root.engine.clone());
            async move {
                let volume = volume?;
                if extent.0 >= engine.extents() {
                    return None;
                }
                let see = |page, image: &_| match engine.is_whole(page, image) {
                    None => Seen::Unused,
                    Some(true) => Seen::Whole,
                    Some(false) => Seen::Damaged,
                };
                let mut stripes = Stripes::new();
                for row in 0..volume.rows() {
                    stripes.push(volume.check_stripe(extent, row, see).await);
                }
                Some(stripes)
            }
        })
    }
}

fn finding(place: &Place, mismatch: &Mismatch) -> Finding {
    let Mismatch { member, place: at, page } = *mismatch;
    let path = place.files[member].clone();
    let offset = Some(drive::first_byte(&path) + u64::from(at.0) * place.page_bytes);
    let what = match page {
        Some(page) => format!("page {} of the store is not what was written there", page.0),
        None => "parity does not agree with the pages that it is of, which are whole".to_owned(),
    };
    let error = Error::Damaged { path, offset, what };
    Finding { error, after: None, before: None, is_redundancy: true }
}
