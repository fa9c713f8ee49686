//! The header that all pages share. It holds the page's kind, its identity, the length of its
//! contents and a checksum over them.
//!
//! ```text
//! 0..4   checksum of bytes 4..length: their CRC-32C, mixed
//! 4..8   the page's own number: detects misdirected reads and writes
//! 8..12  generation of its extent: detects pages from an earlier use of the extent
//! 12..16 identity of the store: detects pages of another store
//! 16..20 run of the store in which the page was assigned, on a medium with in-place writes;
//!        else 0: detects pages of an earlier run that gave the extent the same generation
//! 20..22 length: bytes stored, including this header; the rest of the page is padding
//! 22     kind
//! 23     version of this format
//! 24..26 number of entries
//! 26..28 kind-specific
//! 28..32 kind-specific
//! ```
//! All numbers are little-endian. A medium may return more bytes than were stored, for example a
//! whole page: only the first `length` bytes are used. A page holds at most 65,535 bytes, so that
//! offsets in it fit in 16 bits.
//!
//! A page is decoded in two steps. `check` compares header and checksum with the identity that the
//! reader expects; the checksum is computed once for each image. [`Page::parse`] splits the header
//! into fields. With the decoders on top of it, any bytes decode to a value or to `None`.

use runtime::PageImage;

use crate::medium::PageNo;

/// Length of the common header, in bytes.
pub const HEADER_BYTES: usize = 32;

/// Maximum number of bytes that a store uses of a page.
pub const MAX_PAGE_BYTES: u32 = u16::MAX as u32;

/// Version of the page format.
const VERSION: u8 = 5;

const NUMBER_AT: usize = 4;
const GENERATION_AT: usize = 8;
const STORE_AT: usize = 12;
const RUN_AT: usize = 16;
const LENGTH_AT: usize = 20;
const KIND_AT: usize = 22;
const VERSION_AT: usize = 23;
const ENTRIES_AT: usize = 24;
const SMALL_AT: usize = 26;
const LARGE_AT: usize = 28;

/// The contents of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    /// Sorted keys and pointers.
    Meta = 1,
    /// Whole objects.
    Data = 2,
    /// The first page of an object that is larger than a page.
    LargeHead = 3,
    /// A further page of an object that is larger than a page.
    LargeTail = 4,
    /// No contents: fills up an append unit.
    Filler = 5,
    /// Slots of a hash table.
    Bucket = 6,
    /// Part of a WAL group.
    Log = 7,
    /// Part of a manifest group.
    Manifest = 8,
    /// Part of a table's index.
    TableIndex = 9,
    /// The index of a group of pages in a level.
    GroupIndex = 10,
    /// Part of the Bloom filter of a table in columns.
    FilterColumn = 11,
    /// Part of the keys of a table in columns.
    KeyColumn = 12,
    /// Part of the addresses of a table in columns.
    AddressColumn = 13,
}

impl PageKind {
    fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [PageKind; 13] = [
            PageKind::Meta,
            PageKind::Data,
            PageKind::LargeHead,
            PageKind::LargeTail,
            PageKind::Filler,
            PageKind::Bucket,
            PageKind::Log,
            PageKind::Manifest,
            PageKind::TableIndex,
            PageKind::GroupIndex,
            PageKind::FilterColumn,
            PageKind::KeyColumn,
            PageKind::AddressColumn,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The identity of a store. It distinguishes its pages from those of all other stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreId(pub u32);

/// The identity that a reader expects of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Page number.
    pub page: PageNo,
    /// Generation of its extent; the page stores its lower 32 bits.
    pub generation: u64,
    /// Store that owns the page.
    pub store: StoreId,
    /// Run in which the page was assigned, on a medium with in-place writes; else 0.
    pub run: u32,
}

/// The reason why a page is not the page that its reader expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageFault {
    /// The medium cannot read it: never written, lost, or beyond correction.
    Unreadable,
    /// The image is shorter than a header or than the length in its header: torn, or never written.
    Short,
    /// The checksum does not match: torn or damaged.
    Checksum,
    /// The page has another version of the format.
    Version(u8),
    /// The page belongs elsewhere: a misdirected read or write.
    Misdirected {
        /// The page number in its header.
        says: PageNo,
    },
    /// The page is from another generation of its extent: a write or an erase was lost.
    Stale {
        /// The generation in its header.
        says: u32,
    },
    /// The page is from another run of the store, before a power cut: the later write was lost.
    Earlier {
        /// The run in its header.
        says: u32,
    },
    /// The page belongs to another store.
    Foreign,
    /// The page is intact, but its contents differ from those that the index expects.
    Contents,
}

impl std::fmt::Display for PageFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable => f.write_str("it cannot be read (lost, or beyond correction)"),
            Self::Short => f.write_str("it is shorter than it should be (torn or never written)"),
            Self::Checksum => f.write_str("its checksum does not match (torn or damaged)"),
            Self::Version(version) => write!(f, "its format has version {version}, not {VERSION}"),
            Self::Misdirected { says } => {
                write!(f, "it is page {} (a misdirected read or write)", says.0)
            }
            Self::Stale { says } => write!(
                f,
                "it is from generation {says} of its extent (a write or an erase was lost)"
            ),
            Self::Earlier { says } => write!(
                f,
                "it is from run {says} of the store, before a power cut (a later write of it was lost)"
            ),
            Self::Foreign => f.write_str("it belongs to another store"),
            Self::Contents => f.write_str("it holds something else than the index says"),
        }
    }
}

/// A page split into its fields.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Kind of the page.
    pub kind: PageKind,
    /// Number of entries in the header.
    pub entries: u16,
    /// The first kind-specific number.
    pub small: u16,
    /// The second kind-specific number.
    pub large: u32,
    /// All stored bytes, including the header.
    pub bytes: &'a [u8],
}

impl<'a> Page<'a> {
    /// Parses the page in `bytes`. Returns `None` if they are not a page.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let length = stored_len(bytes)?;
        let bytes = &bytes[..length];
        Some(Self {
            kind: PageKind::from_byte(bytes[KIND_AT])?,
            entries: u16_at(bytes, ENTRIES_AT),
            small: u16_at(bytes, SMALL_AT),
            large: u32_at(bytes, LARGE_AT),
            bytes,
        })
    }

    /// Returns the bytes after the header.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }
}

/// Starts a page: a header with kind, version and numbers, but without identity, length and
/// checksum. Reserves capacity for `bytes` further bytes.
pub fn start(kind: PageKind, entries: u16, small: u16, large: u32, bytes: usize) -> Vec<u8> {
    let mut page = Vec::with_capacity(HEADER_BYTES + bytes);
    page.resize(HEADER_BYTES, 0);
    page[KIND_AT] = kind as u8;
    page[VERSION_AT] = VERSION;
    page[ENTRIES_AT..SMALL_AT].copy_from_slice(&entries.to_le_bytes());
    page[SMALL_AT..LARGE_AT].copy_from_slice(&small.to_le_bytes());
    page[LARGE_AT..HEADER_BYTES].copy_from_slice(&large.to_le_bytes());
    page
}

/// Writes the length of a page into its header: from then on it can be parsed.
pub fn finish(mut page: Vec<u8>) -> Vec<u8> {
    assert!(page.len() <= MAX_PAGE_BYTES as usize, "a page of {} bytes", page.len());
    let length = page.len() as u16;
    page[LENGTH_AT..KIND_AT].copy_from_slice(&length.to_le_bytes());
    page
}

/// Writes identity, length and checksum: the page is ready for the medium.
pub fn seal(page: Vec<u8>, is: Identity) -> PageImage {
    let mut page = finish(page);
    page[NUMBER_AT..GENERATION_AT].copy_from_slice(&is.page.0.to_le_bytes());
    page[GENERATION_AT..STORE_AT].copy_from_slice(&(is.generation as u32).to_le_bytes());
    page[STORE_AT..RUN_AT].copy_from_slice(&is.store.0.to_le_bytes());
    page[RUN_AT..LENGTH_AT].copy_from_slice(&is.run.to_le_bytes());
    let sum = checksum(&page[NUMBER_AT..]);
    page[..NUMBER_AT].copy_from_slice(&sum.to_le_bytes());
    PageImage::new(&page)
}

/// Returns the CRC-32C of the bytes after the checksum field, mixed by the finalizer of
/// `MurmurHash3`.
///
/// A CRC is linear: the XOR of three pages of one length has a valid CRC again. If two of the pages
/// are versions of one page, the XOR has the header of the third page. Parity produces such a page
/// from a partially written stripe. The mixed checksum matches it only by chance.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = crc32c::crc32c(bytes);
    sum = (sum ^ sum >> 16).wrapping_mul(0x85EB_CA6B);
    sum = (sum ^ sum >> 13).wrapping_mul(0xC2B2_AE35);
    sum ^ sum >> 16
}

/// Returns the length of a page that was read, if it is the expected page. Computes the checksum
/// once for each image (see [`PageImage::verify`]); the rest is a few comparisons.
pub(crate) fn check(image: &PageImage, expected: Identity) -> Result<usize, PageFault> {
    let bytes = image.bytes();
    let length = stored_len(bytes).ok_or(PageFault::Short)?;
    if !image.verify(|bytes| u32_at(bytes, 0) == checksum(&bytes[NUMBER_AT..length])) {
        return Err(PageFault::Checksum);
    }
    let (says, generation) = (u32_at(bytes, NUMBER_AT), u32_at(bytes, GENERATION_AT));
    let run = u32_at(bytes, RUN_AT);
    if bytes[VERSION_AT] != VERSION {
        Err(PageFault::Version(bytes[VERSION_AT]))
    } else if u32_at(bytes, STORE_AT) != expected.store.0 {
        Err(PageFault::Foreign)
    } else if says != expected.page.0 {
        Err(PageFault::Misdirected { says: PageNo(says) })
    } else if run != expected.run {
        Err(PageFault::Earlier { says: run })
    } else if generation != expected.generation as u32 {
        Err(PageFault::Stale { says: generation })
    } else {
        Ok(length)
    }
}

/// Returns the page without its padding.
pub(crate) fn without_padding(image: PageImage) -> PageImage {
    match stored_len(image.bytes()) {
        Some(length) if length < image.bytes().len() => image.slice(0..length),
        _ => image,
    }
}

/// Returns the identity in a page's header; `None` if `bytes` are not a page.
pub(crate) fn stamp(bytes: &[u8]) -> Option<Identity> {
    stored_len(bytes)?;
    Some(Identity {
        page: PageNo(u32_at(bytes, NUMBER_AT)),
        generation: u64::from(u32_at(bytes, GENERATION_AT)),
        store: StoreId(u32_at(bytes, STORE_AT)),
        run: u32_at(bytes, RUN_AT),
    })
}

/// Returns the stored length of the page that begins with `bytes` and continues with zeros, in
/// bytes. For media that do not record how long a page was. The result is arbitrary if `bytes` are
/// not a page.
pub fn said_len(bytes: &[u8]) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    usize::from(u16::from_le_bytes([byte(LENGTH_AT), byte(LENGTH_AT + 1)]))
}

/// Returns the length field of a page; `None` if `bytes` are shorter than it.
fn stored_len(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(u16_at(bytes.get(..HEADER_BYTES)?, LENGTH_AT));
    (HEADER_BYTES..=bytes.len()).contains(&length).then_some(length)
}

/// Reads the two-byte number at `at`. Requires: it is inside `bytes`.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads the eight-byte number at `at`.
///
/// # Panics
/// Panics if it is not inside `bytes`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Makes a valid page of any bytes that are long enough, for tests of the decoders after the
/// checksum.
#[cfg(any(test, feature = "test-hooks"))]
pub fn reseal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES || bytes.len() > MAX_PAGE_BYTES as usize {
        return;
    }
    bytes[VERSION_AT] = VERSION;
    let length = stored_len(bytes).unwrap_or_else(|| {
        let length = bytes.len();
        bytes[LENGTH_AT..KIND_AT].copy_from_slice(&(length as u16).to_le_bytes());
        length
    });
    let sum = checksum(&bytes[NUMBER_AT..length]);
    bytes[..NUMBER_AT].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const IS: Identity =
        Identity { page: PageNo(7), generation: 3, store: StoreId(0xABCD), run: 0 };

    fn sealed() -> PageImage {
        let mut page = start(PageKind::Data, 2, 5, 6, 100);
        page.extend_from_slice(&[9; 100]);
        seal(page, IS)
    }

    fn padded(image: &PageImage, to: usize) -> PageImage {
        let mut bytes = image.bytes().to_vec();
        bytes.resize(to, 0);
        PageImage::new(&bytes)
    }

    #[test]
    fn a_page_that_comes_back_padded_is_the_page() {
        let image = padded(&sealed(), 4096);
        assert_eq!(check(&image, IS), Ok(132));
        let page = Page::parse(image.bytes()).expect("it is a page");
        assert_eq!((page.kind, page.entries, page.small, page.large), (PageKind::Data, 2, 5, 6));
        assert_eq!(page.body(), [9; 100]);
        assert_eq!(without_padding(image).bytes(), sealed().bytes());
    }

    #[test]
    fn what_is_wrong_with_a_page_is_said() {
        let image = sealed();
        assert_eq!(check(&image, IS), Ok(132));
        let fault = |expected| check(&image, expected).expect_err("it is another page");
        let elsewhere = Identity { page: PageNo(8), ..IS };
        assert_eq!(fault(elsewhere), PageFault::Misdirected { says: PageNo(7) });
        assert_eq!(fault(Identity { generation: 4, ..IS }), PageFault::Stale { says: 3 });
        assert_eq!(fault(Identity { store: StoreId(1), ..IS }), PageFault::Foreign);
        let bytes = image.bytes();
        assert_eq!(check(&PageImage::new(&bytes[..131]), IS), Err(PageFault::Short));
        assert_eq!(check(&PageImage::new(&[]), IS), Err(PageFault::Short));
        let mut flipped = bytes.to_vec();
        flipped[40] ^= 1;
        assert_eq!(check(&PageImage::new(&flipped), IS), Err(PageFault::Checksum));
    }

    #[test]
    fn a_page_of_another_run_is_not_taken_for_one_of_this() {
        let later = Identity { run: 9, ..IS };
        let again = seal(start(PageKind::Data, 2, 5, 6, 0), later);
        assert_eq!(check(&again, later), Ok(32));
        assert_eq!(check(&sealed(), later), Err(PageFault::Earlier { says: 0 }));
        assert_eq!(check(&again, IS), Err(PageFault::Earlier { says: 9 }));
    }

    /// Combines the parity of an earlier generation of the extent with a page of the current one.
    #[test]
    fn what_parity_makes_of_a_torn_stripe_is_no_page() {
        let page = |number, generation, fill| {
            let mut bytes = start(PageKind::Log, 0, 0, 9, 100);
            bytes.extend_from_slice(&[fill; 100]);
            seal(bytes, Identity { page: PageNo(number), generation, ..IS })
        };
        let (old, old_beside, new_beside) = (page(7, 2, 1), page(9, 2, 3), page(9, 3, 4));
        let three = old.bytes().iter().zip(old_beside.bytes()).zip(new_beside.bytes());
        let mixed: Vec<u8> = three.map(|((a, b), c)| a ^ b ^ c).collect();
        assert!(Page::parse(&mixed).is_some(), "its header looks like one");
        assert_eq!(check(&PageImage::new(&mixed), IS), Err(PageFault::Checksum));
    }

    #[test]
    fn only_half_a_generation_is_stored_and_compared() {
        let image = sealed();
        assert_eq!(check(&image, Identity { generation: 3 + (1 << 32), ..IS }), Ok(132));
    }
}
