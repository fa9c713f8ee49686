//! `plm_cache`: stripes that not all members have yet. Bookkeeping only.
//!
//! A stripe stays here from its acknowledgement until each member has its chunk. Meanwhile it is
//! read from here, so that no page is rebuilt from a mix of written and unwritten chunks.

use std::collections::BTreeMap;

use engine::ExtentId;
use runtime::PageImage;

/// The data pages of stripes.
#[derive(Default)]
pub(crate) struct Images {
    /// By extent and stripe.
    stripes: BTreeMap<(ExtentId, u32), Stripe>,
}

struct Stripe {
    /// The life of the extent that the stripe belongs to.
    life: u64,
    pages: Vec<PageImage>,
}

impl Images {
    pub(crate) fn insert(&mut self, extent: ExtentId, row: u32, life: u64, pages: Vec<PageImage>) {
        self.stripes.insert((extent, row), Stripe { life, pages });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stripes.is_empty()
    }

    /// Returns a page of a stripe.
    pub(crate) fn get(&self, extent: ExtentId, row: u32, index: u32) -> Option<&PageImage> {
        if self.stripes.is_empty() {
            return None;
        }
        self.stripes.get(&(extent, row)).map(|stripe| &stripe.pages[index as usize])
    }

    /// Removes a stripe that was inserted in life `life` of the extent; each member has its chunk.
    pub(crate) fn remove(&mut self, extent: ExtentId, row: u32, life: u64) {
        if self.stripes.get(&(extent, row)).is_some_and(|stripe| stripe.life == life) {
            self.stripes.remove(&(extent, row));
        }
    }

    /// Removes all stripes of an extent that was released.
    pub(crate) fn forget(&mut self, extent: ExtentId) {
        let of_extent = self.stripes.range((extent, 0)..=(extent, u32::MAX));
        let rows: Vec<u32> = of_extent.map(|((_, row), _)| *row).collect();
        for row in rows {
            self.stripes.remove(&(extent, row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_there_until_its_own_writes_have_ended() {
        let mut images = Images::default();
        let pages = |byte: u8| vec![PageImage::new(&[byte]); 2];
        images.insert(ExtentId(3), 1, 7, pages(1));
        images.forget(ExtentId(3));
        assert!(images.get(ExtentId(3), 1, 0).is_none());
        images.insert(ExtentId(3), 1, 9, pages(2));
        images.remove(ExtentId(3), 1, 7);
        assert_eq!(images.get(ExtentId(3), 1, 1).map(PageImage::bytes), Some(&[2][..]));
        assert!(images.get(ExtentId(3), 0, 0).is_none());
        images.remove(ExtentId(3), 1, 9);
        assert!(images.get(ExtentId(3), 1, 1).is_none());
    }
}
