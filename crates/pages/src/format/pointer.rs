//! Where a value is: the page and the 512-byte piece of it in which the object begins.
//!
//! A pointer addresses pieces, as `PinK`'s 32-bit addresses do, but objects are packed end to end
//! and not rounded up to pieces: two small objects may begin in one piece, and the reader tells
//! them apart by key (docs/decisions/0003).
//!
//! Of an object larger than a page it also says about how many pages it takes (its *length class*), if
//! there are numbers to spare: then a read of all of them can begin at once, and on media where one
//! long read is cheaper than many short ones it is one.
//!
//! The numbers that are left over count an extent's generations. Garbage collection leaves entries
//! behind in lower levels that point into an extent which is then used again; when such an entry is
//! dropped, its generation tells that nothing of the extent's new contents has died.

use crate::medium::{PageNo, Shape};

/// Bytes of an addressable piece of a page.
pub(crate) const PIECE_BYTES: u32 = 512;

/// Generations that can be told apart, at least.
const MIN_GENERATIONS: u64 = 8;

/// Steps of length classes for each doubling, the finest that there are numbers for. With four a
/// read is at most a quarter too long.
const STEPS: [u32; 3] = [4, 2, 1];

/// Where an object begins; or that its key is deleted, or its value beside the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Pointer(u64);

impl Pointer {
    /// The key is deleted.
    pub const TOMBSTONE: Self = Self(u64::MAX);

    /// The value stands beside the key.
    pub const INLINE: Self = Self(u64::MAX - 1);

    /// Whether the key is deleted.
    pub fn is_tombstone(self) -> bool {
        self == Self::TOMBSTONE
    }

    /// Whether an object begins there: the key is not deleted, and its value not beside it.
    pub fn is_place(self) -> bool {
        self < Self::INLINE
    }
}

/// How pointers are cut up and stored on one medium.
#[derive(Clone, Copy, Debug)]
pub struct PointerFormat {
    pieces_per_page: u64,
    /// Pieces of the medium, when it has grown as far as it may.
    pieces: u64,
    classes: LengthClasses,
    /// Generations of an extent that pointers tell apart.
    generations: u64,
    /// Bytes of a stored pointer: 4 as published, more where 32 bits do not reach.
    pub bytes: usize,
}

impl PointerFormat {
    /// The format for a medium of this shape.
    pub fn new(shape: &Shape) -> Self {
        let pieces_per_page = u64::from(shape.payload_bytes.div_ceil(PIECE_BYTES));
        let most_pages =
            u64::from(shape.extents.max(shape.grows_to)) * u64::from(shape.pages_per_extent);
        let pieces = most_pages * pieces_per_page;
        // The highest number is the tombstone's, the next one that of values beside their keys.
        let numbers = |bytes: usize| (1_u64 << (8 * bytes)) - 2;
        let bytes = (4..8).find(|bytes| pieces * MIN_GENERATIONS <= numbers(*bytes));
        let bytes = bytes.expect("a medium of 2^32 pages needs no more than 7 bytes");
        // Bytes are for reaching every piece; classes take of what is left over.
        let fits = |classes: &LengthClasses| {
            pieces.saturating_mul(classes.count * MIN_GENERATIONS) <= numbers(bytes)
        };
        let most_pages = shape.pages_per_extent;
        let classes = STEPS.map(|steps| LengthClasses::new(steps, most_pages));
        let classes = classes.into_iter().find(fits).unwrap_or(LengthClasses::NONE);
        let generations = numbers(bytes) / (pieces * classes.count);
        Self { pieces_per_page, pieces, classes, generations, bytes }
    }

    /// A pointer to an object of `pages` pages that begins in `piece` of `page`, whose extent is in
    /// its `generation`.
    pub fn pointer(&self, page: PageNo, piece: u32, generation: u64, pages: u32) -> Pointer {
        debug_assert!(u64::from(piece) < self.pieces_per_page);
        let place = u64::from(page.0) * self.pieces_per_page + u64::from(piece);
        let class = self.classes.of(pages);
        Pointer((generation % self.generations * self.classes.count + class) * self.pieces + place)
    }

    /// The page and the piece in it where the object begins.
    ///
    /// # Panics
    /// If it is no place.
    pub fn locate(&self, pointer: Pointer) -> (PageNo, u32) {
        assert!(pointer.is_place(), "a tombstone or a value beside its key points nowhere");
        let place = pointer.0 % self.pieces;
        let page = PageNo((place / self.pieces_per_page) as u32);
        (page, (place % self.pieces_per_page) as u32)
    }

    /// Pages that the object takes at most; `None` if the pointer does not tell.
    pub fn most_pages(&self, pointer: Pointer) -> Option<u32> {
        self.classes.pages_of(pointer.0 / self.pieces % self.classes.count)
    }

    /// Pages that are read for an object of `pages` pages.
    pub fn pages_read(&self, pages: u32) -> u32 {
        if pages <= 1 {
            return pages;
        }
        self.classes.pages_of(self.classes.of(pages)).unwrap_or(pages)
    }

    /// Whether `pointer` was made in `generation` of its extent.
    pub fn is_of(&self, pointer: Pointer, generation: u64) -> bool {
        pointer.0 / (self.pieces * self.classes.count) == generation % self.generations
    }

    /// Whether no two generations up to this one look alike.
    pub(crate) fn tells_apart(&self, generation: u64) -> bool {
        generation < self.generations
    }

    /// Makes [`Pointer::INLINE`] of what it is stored as. Only whoever may have stored one asks: to others
    /// that number is a place.
    pub fn or_inline(&self, pointer: Pointer) -> Pointer {
        if pointer.0 == self.highest() - 1 { Pointer::INLINE } else { pointer }
    }

    /// The highest number that is stored.
    fn highest(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }

    /// Appends the pointer as it is stored, in [`Self::bytes`] bytes.
    pub fn encode(&self, pointer: Pointer, to: &mut Vec<u8>) {
        to.extend_from_slice(&pointer.0.to_le_bytes()[..self.bytes]);
    }

    /// The pointer that stands at the front of `from`.
    ///
    /// # Panics
    /// If there are fewer bytes than a pointer has.
    pub fn decode(&self, from: &[u8]) -> Pointer {
        let highest = self.highest();
        let number = if let Some(word) = from.first_chunk() {
            u64::from_le_bytes(*word) & highest // what follows is not of the pointer
        } else {
            let mut word = [0; 8];
            word[..self.bytes].copy_from_slice(&from[..self.bytes]);
            u64::from_le_bytes(word)
        };
        if number == highest { Pointer::TOMBSTONE } else { Pointer(number) }
    }
}

/// Classes in which object lengths are told apart, in pages: with `steps` of 4 they are 1 to 8, 10,
/// 12, 14, 16, 20, ...: four steps from each power of two to the next.
#[derive(Clone, Copy, Debug)]
struct LengthClasses {
    /// Steps for each doubling; 0 if lengths are not told apart.
    steps: u32,
    count: u64,
}

impl LengthClasses {
    /// Every length looks alike.
    const NONE: Self = Self { steps: 0, count: 1 };

    /// Classes up to `most_pages`.
    fn new(steps: u32, most_pages: u32) -> Self {
        let below = class_sizes(steps).take_while(|pages| *pages < most_pages).count();
        Self { steps, count: below as u64 + 1 }
    }

    /// The smallest class for objects of `pages` pages.
    fn of(self, pages: u32) -> u64 {
        if self.steps == 0 || pages <= 1 {
            return 0;
        }
        let class = class_sizes(self.steps).take_while(|most| *most < pages).count() as u64;
        assert!(class < self.count, "an object of {pages} pages is longer than an extent");
        class
    }

    fn pages_of(self, class: u64) -> Option<u32> {
        (self.steps > 0).then(|| class_size(class as u32, self.steps))
    }
}

/// The pages of each class in order.
fn class_sizes(steps: u32) -> impl Iterator<Item = u32> {
    (0..steps * (u32::BITS - steps.ilog2())).map(move |class| class_size(class, steps))
}

/// The pages of a class: one by one at first, and then in steps that double when the pages have.
fn class_size(class: u32, steps: u32) -> u32 {
    if class < steps {
        return class + 1;
    }
    let step = 1 << (class / steps - 1);
    steps * step + class % steps * step + step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(extents: u32, pages_per_extent: u32, payload_bytes: u32) -> PointerFormat {
        PointerFormat::new(&Shape {
            payload_bytes,
            page_bytes: payload_bytes,
            pages_per_extent,
            extents,
            grows_to: 0,
            append_unit: 1,
            parallelism: 1,
        })
    }

    #[test]
    fn four_bytes_serve_the_paper_s_drive_and_five_a_terabyte() {
        assert_eq!(format(512, 16_384, 8_224).bytes, 4);
        assert_eq!(format(1_400, 98_304, 16_512).bytes, 5);
    }

    #[test]
    fn pointers_survive_storage_and_know_their_generation() {
        let format = format(512, 16_384, 8_224);
        for generation in [0, 1, 29, 30, 31, 1_000] {
            let pointer = format.pointer(PageNo(8_388_607), 16, generation, 1);
            let mut stored = Vec::new();
            format.encode(pointer, &mut stored);
            assert_eq!(format.decode(&stored), pointer);
            assert_eq!(format.locate(pointer), (PageNo(8_388_607), 16));
            assert!(format.is_of(pointer, generation));
            assert!(!format.is_of(pointer, generation + 1));
        }
        let mut stored = Vec::new();
        format.encode(Pointer::TOMBSTONE, &mut stored);
        assert!(format.decode(&stored).is_tombstone());
    }

    #[test]
    fn classes_are_exact_up_to_8_pages_and_at_most_a_quarter_too_long() {
        let sizes: Vec<u32> = class_sizes(4).take(18).collect();
        assert_eq!(sizes, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48]);
        assert_eq!(class_sizes(1).take(5).collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
        let small = format(64, 1024, 4096);
        for pages in 1..=1024 {
            let pointer = small.pointer(PageNo(5), 3, 2, pages);
            let most = small.most_pages(pointer).expect("there are numbers for classes");
            assert!(pages <= most && most <= pages + pages / 4, "{pages} pages are read as {most}");
            assert_eq!(small.locate(pointer), (PageNo(5), 3));
            assert!(small.is_of(pointer, 2) && !small.is_of(pointer, 3));
        }
    }

    #[test]
    fn the_paper_s_drive_has_no_numbers_left_for_classes() {
        let format = format(512, 16_384, 8_224);
        assert_eq!(format.most_pages(format.pointer(PageNo(1), 0, 1, 200)), None);
    }
}
