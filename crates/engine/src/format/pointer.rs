//! The address of a value: a page, and the 512-byte piece of it in which the object begins.
//!
//! A pointer addresses pieces, as `PinK`'s 32-bit addresses do. But objects are packed end to end
//! and not rounded up to pieces: two small objects may begin in one piece, and the reader
//! distinguishes them by key (docs/decisions/0003).
//!
//! If unused pointer values remain, the pointer of an object larger than a page also holds the
//! approximate number of pages (its *length class*). Then all its pages can be read at once; on
//! media where one long read is cheaper than several short ones, they are one read.
//!
//! The remaining values count an extent's generations. Garbage collection leaves entries in lower
//! levels that point into an extent that has been reused since. The generation shows that such an
//! entry, when it is dropped, makes no object of the reused extent dead.

use crate::medium::{PageNo, Shape};

/// Length of an addressable piece of a page, in bytes.
pub(crate) const PIECE_BYTES: u32 = 512;

/// Minimum number of generations that pointers distinguish.
const MIN_GENERATIONS: u64 = 8;

/// Candidate numbers of length classes per doubling of the length, finest first. With four, a read
/// is at most a quarter too long.
const STEPS: [u32; 3] = [4, 2, 1];

/// The place where an object begins, or a mark: the key is deleted, or its value is stored inline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Pointer(u64);

impl Pointer {
    /// The key is deleted.
    pub const TOMBSTONE: Self = Self(u64::MAX);

    /// The value is stored inline, next to the key.
    pub const INLINE: Self = Self(u64::MAX - 1);

    /// Whether the key is deleted.
    pub fn is_tombstone(self) -> bool {
        self == Self::TOMBSTONE
    }

    /// Whether the pointer is the address of an object: not a tombstone, and not an inline value.
    pub fn is_place(self) -> bool {
        self < Self::INLINE
    }
}

/// The layout of pointers for one medium.
#[derive(Clone, Copy, Debug)]
pub struct PointerFormat {
    pieces_per_page: u64,
    /// Pieces of the medium at its maximum size.
    pieces: u64,
    classes: LengthClasses,
    /// Number of generations of an extent that pointers distinguish.
    generations: u64,
    /// Length of a stored pointer in bytes: 4 as in the paper, more if 32 bits are too few.
    pub bytes: usize,
}

impl PointerFormat {
    /// Returns the format for a medium of this shape.
    pub fn new(shape: &Shape) -> Self {
        let pieces_per_page = u64::from(shape.payload_bytes.div_ceil(PIECE_BYTES));
        let most_pages =
            u64::from(shape.extents.max(shape.grows_to)) * u64::from(shape.pages_per_extent);
        let pieces = most_pages * pieces_per_page;
        // The two highest numbers are reserved for tombstones and inline values.
        let numbers = |bytes: usize| (1_u64 << (8 * bytes)) - 2;
        let bytes = (4..8).find(|bytes| pieces * MIN_GENERATIONS <= numbers(*bytes));
        let bytes = bytes.expect("a medium of 2^32 pages needs no more than 7 bytes");
        // The bytes are chosen to reach every piece; length classes only use values that remain.
        let fits = |classes: &LengthClasses| {
            pieces.saturating_mul(classes.count * MIN_GENERATIONS) <= numbers(bytes)
        };
        let most_pages = shape.pages_per_extent;
        let classes = STEPS.map(|steps| LengthClasses::new(steps, most_pages));
        let classes = classes.into_iter().find(fits).unwrap_or(LengthClasses::NONE);
        let generations = numbers(bytes) / (pieces * classes.count);
        Self { pieces_per_page, pieces, classes, generations, bytes }
    }

    /// Returns the pointer to an object of `pages` pages that begins in `piece` of `page`, whose
    /// extent has this `generation`.
    pub fn pointer(&self, page: PageNo, piece: u32, generation: u64, pages: u32) -> Pointer {
        debug_assert!(u64::from(piece) < self.pieces_per_page);
        let place = u64::from(page.0) * self.pieces_per_page + u64::from(piece);
        let class = self.classes.of(pages);
        Pointer((generation % self.generations * self.classes.count + class) * self.pieces + place)
    }

    /// Returns the page and the piece in it where the object begins.
    ///
    /// # Panics
    /// Panics if the pointer is not an address.
    pub fn locate(&self, pointer: Pointer) -> (PageNo, u32) {
        assert!(pointer.is_place(), "a tombstone or a value beside its key points nowhere");
        let place = pointer.0 % self.pieces;
        let page = PageNo((place / self.pieces_per_page) as u32);
        (page, (place % self.pieces_per_page) as u32)
    }

    /// Returns the maximum number of pages of the object; `None` if the pointer has no length
    /// class.
    pub fn most_pages(&self, pointer: Pointer) -> Option<u32> {
        self.classes.pages_of(pointer.0 / self.pieces % self.classes.count)
    }

    /// Returns the number of pages that a read of an object of `pages` pages transfers.
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

    /// Whether all generations up to this one have distinct values in pointers.
    pub(crate) fn tells_apart(&self, generation: u64) -> bool {
        generation < self.generations
    }

    /// Converts the stored form of [`Pointer::INLINE`] to it. Call this only where inline values
    /// may be stored: elsewhere the same number is an address.
    pub fn or_inline(&self, pointer: Pointer) -> Pointer {
        if pointer.0 == self.highest() - 1 { Pointer::INLINE } else { pointer }
    }

    /// Returns the highest number that fits in a stored pointer.
    fn highest(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }

    /// Appends the stored form of the pointer, [`Self::bytes`] bytes.
    pub fn encode(&self, pointer: Pointer, to: &mut Vec<u8>) {
        to.extend_from_slice(&pointer.0.to_le_bytes()[..self.bytes]);
    }

    /// Decodes the pointer at the start of `from`.
    ///
    /// # Panics
    /// Panics if `from` is shorter than a pointer.
    pub fn decode(&self, from: &[u8]) -> Pointer {
        let highest = self.highest();
        let number = if let Some(word) = from.first_chunk() {
            // The mask removes the bytes after the pointer.
            u64::from_le_bytes(*word) & highest
        } else {
            let mut word = [0; 8];
            word[..self.bytes].copy_from_slice(&from[..self.bytes]);
            u64::from_le_bytes(word)
        };
        if number == highest { Pointer::TOMBSTONE } else { Pointer(number) }
    }
}

/// Length classes, in pages. With 4 `steps` they are 1 to 8, 10, 12, 14, 16, 20, ...: four steps
/// from each power of two to the next.
#[derive(Clone, Copy, Debug)]
struct LengthClasses {
    /// Steps per doubling; 0 if there is a single class.
    steps: u32,
    count: u64,
}

impl LengthClasses {
    /// A single class for all lengths.
    const NONE: Self = Self { steps: 0, count: 1 };

    /// Returns the classes up to `most_pages`.
    fn new(steps: u32, most_pages: u32) -> Self {
        let below = class_sizes(steps).take_while(|pages| *pages < most_pages).count();
        Self { steps, count: below as u64 + 1 }
    }

    /// Returns the smallest class that holds `pages` pages.
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

/// Yields the maximum pages of each class, in order.
fn class_sizes(steps: u32) -> impl Iterator<Item = u32> {
    (0..steps * (u32::BITS - steps.ilog2())).map(move |class| class_size(class, steps))
}

/// Returns the maximum pages of a class: consecutive at first, then in steps that double with each
/// doubling of the pages.
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
