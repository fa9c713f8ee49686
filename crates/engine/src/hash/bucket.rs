//! Bucket pages: the slots of the hash table, as many as fit in a page.
//!
//! ```text
//! header (28..32: number of the bucket page)
//! slots  pointer, 4 to 7 bytes | signature u8
//! ```
//! No key has signature 0. A slot with signature 0 is empty if the bytes of its pointer are zero.
//! Otherwise the slot was in use, and searches pass over it. So a page of zeros has only empty
//! slots, and two keys have the same signature once in 255 times.

use runtime::PageImage;

use crate::format::page;
use crate::format::page::{HEADER_BYTES, Page, PageKind};
use crate::format::pointer::{Pointer, PointerFormat};
use crate::medium::Shape;

const SIGNATURE_BYTES: usize = 1;

/// The contents of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    /// Never used: a search ends here.
    Empty,
    /// Used before, but without a key now. Searches pass over the slot, and an insert may use it.
    Deleted,
    /// Refers to the object of a key with this signature.
    Held { signature: u8, pointer: Pointer },
    /// Invalid: no write makes such a slot.
    LeadsNowhere,
}

impl Slot {
    /// Whether an insert may use the slot.
    pub(crate) fn is_free(self) -> bool {
        matches!(self, Self::Empty | Self::Deleted)
    }
}

/// The layout of slots in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketFormat {
    pointers: PointerFormat,
    /// Slots in a page.
    pub slots: u32,
}

impl BucketFormat {
    pub(crate) fn new(shape: &Shape, pointers: PointerFormat) -> Self {
        // As in every page, header and checksum are in the spare area, if the page has one.
        let room = shape.page_bytes.min(shape.payload_bytes - HEADER_BYTES as u32);
        Self { pointers, slots: slots_per_page(room, pointers.bytes as u32) }
    }

    fn slot_bytes(&self) -> usize {
        self.pointers.bytes + SIGNATURE_BYTES
    }

    /// Returns the slots of a page that was never written.
    pub(crate) fn blank(&self) -> Box<[u8]> {
        vec![0; self.slots as usize * self.slot_bytes()].into()
    }

    pub(crate) fn get(&self, slots: &[u8], index: u32) -> Slot {
        let start = index as usize * self.slot_bytes();
        let (pointer, rest) = slots[start..].split_at(self.pointers.bytes);
        match rest[0] {
            0 if pointer.iter().all(|byte| *byte == 0) => Slot::Empty,
            0 => Slot::Deleted,
            signature => match self.pointers.decode(pointer) {
                Pointer::TOMBSTONE => Slot::LeadsNowhere,
                pointer => Slot::Held { signature, pointer },
            },
        }
    }

    pub(crate) fn set(&self, slots: &mut [u8], index: u32, slot: Slot) {
        let mut bytes = Vec::with_capacity(self.slot_bytes());
        let (pointer, signature) = match slot {
            Slot::Empty | Slot::LeadsNowhere => unreachable!("no slot changes to {slot:?}"),
            Slot::Deleted => (Pointer::TOMBSTONE, 0),
            Slot::Held { signature, pointer } => (pointer, signature),
        };
        assert!(slot == Slot::Deleted || signature != 0, "no key has signature 0");
        self.pointers.encode(pointer, &mut bytes);
        bytes.push(signature);
        let start = index as usize * self.slot_bytes();
        slots[start..start + bytes.len()].copy_from_slice(&bytes);
    }

    /// Returns bucket page `number`, unsealed.
    pub(crate) fn encode(slots: &[u8], number: u32) -> Vec<u8> {
        let mut bytes = page::start(PageKind::Bucket, 0, 0, number, slots.len());
        bytes.extend_from_slice(slots);
        bytes
    }

    /// Whether `slots` has the length of the slots of a page, and no slot is invalid. Cost: one
    /// check of each slot.
    pub(crate) fn are_sound(&self, slots: &[u8]) -> bool {
        self.are_whole(slots)
            && (0..self.slots).all(|index| self.get(slots, index) != Slot::LeadsNowhere)
    }

    fn are_whole(&self, slots: &[u8]) -> bool {
        slots.len() == self.slots as usize * self.slot_bytes()
    }

    /// Returns the slots in an intact page; `None` if it is not bucket page `number`. An invalid
    /// slot is detected only when it is used: a check of all slots costs more than the read.
    pub(crate) fn decode<'a>(&self, image: &'a PageImage, number: u32) -> Option<&'a [u8]> {
        let page = Page::parse(image.bytes())?;
        let slots = page.body();
        let is_it = page.kind == PageKind::Bucket && page.large == number;
        (is_it && self.are_whole(slots)).then_some(slots)
    }
}

/// Returns the number of slots that fit in `bytes` bytes. A slot has a pointer of `pointer_bytes`
/// bytes and a signature.
pub(crate) fn slots_per_page(bytes: u32, pointer_bytes: u32) -> u32 {
    bytes / (pointer_bytes + SIGNATURE_BYTES as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::{Identity, StoreId};
    use crate::medium::PageNo;
    use crate::specimens::{SHAPE, pointers};
    use proptest::prelude::*;

    fn formats() -> (PointerFormat, BucketFormat) {
        (pointers(), BucketFormat::new(&SHAPE, pointers()))
    }

    #[test]
    fn an_8_kib_page_holds_1638_slots_of_5_bytes() {
        assert_eq!(slots_per_page(8192, 4), 1638);
    }

    #[test]
    fn a_page_is_read_back_only_as_the_one_it_is() {
        let (_, format) = formats();
        let is = Identity { page: PageNo(3), generation: 1, store: StoreId(2), run: 0 };
        let image = page::seal(BucketFormat::encode(&format.blank(), 7), is);
        assert_eq!(format.decode(&image, 7), Some(&*format.blank()));
        assert_eq!(format.decode(&image, 8), None);
    }

    #[test]
    fn slots_are_unsound_if_one_leads_nowhere() {
        let (_, format) = formats();
        let mut slots = format.blank();
        format.set(&mut slots, 2, Slot::Deleted);
        assert!(format.are_sound(&slots) && !format.are_sound(&slots[1..]));
        format.set(&mut slots, 3, Slot::Held { signature: 9, pointer: Pointer::TOMBSTONE });
        assert_eq!(format.get(&slots, 3), Slot::LeadsNowhere);
        assert!(!format.are_sound(&slots));
    }

    proptest! {
        #[test]
        fn slots_keep_what_was_put_in_them_and_nothing_else_changes(
            writes in prop::collection::vec((0..204_u32, 0..256_u16, 0..768_u32, 0..3_u32), 0..300)
        ) {
            let (pointers, format) = formats();
            prop_assert_eq!(format.slots, 204);
            let mut model = vec![Slot::Empty; 204];
            let mut slots = format.blank();
            for (index, signature, page, piece) in writes {
                let slot = match signature as u8 {
                    0 => Slot::Deleted,
                    signature => {
                        let pointer = pointers.pointer(PageNo(page), piece, 1, 1);
                        Slot::Held { signature, pointer }
                    }
                };
                model[index as usize] = slot;
                format.set(&mut slots, index, slot);
            }
            for (index, slot) in (0..).zip(&model) {
                prop_assert_eq!(format.get(&slots, index), *slot);
            }
        }
    }
}
