//! The header at the start of each member's extent, and the marker of a page that is lost for good.
//!
//! ```text
//! 0..4    CRC-32C of the rest of the header
//! 4..8    magic, "LHvo"
//! 8       version of this format: 3
//! 9       layout: 0 striped, 1 parity, 2 mirrored
//! 10      number of members of the volume
//! 11      index of this member
//! 12..16  pages of a chunk
//! 16..24  identity of the volume
//! 24..32  generation that the extent was opened with
//! 32..36  number of the extent
//! 36..44  run of the volume that opened the extent: count in the upper half, random number below
//! 44..52  revision: the highest of an opening counts; the upper half is the count of a run
//! 52..60  members that lack some of the extent, as a bit set
//! 60      stream
//! 61      standing of the member: 0xA5 listed, 0x5A not listed yet
//! 62..64  zeros
//! 64..    tenures of all members, 8 bytes each; then 1, because media need not keep trailing zeros
//! ```
//! All numbers are little-endian. Zeros follow up to the end of the append unit. The header is
//! shorter than a block, which a device writes whole or not at all.
//!
//! Version 2 ends with the stream. The next byte, which its checksum does not cover, is the
//! standing; in still earlier versions it is zero. Members have tenure 0 in these versions.

use engine::{ExtentId, Stream};

use crate::layout::Layout;
use crate::tenure::incarnation_of;

/// Maximum length of a header in bytes.
pub const MOST_BYTES: usize = bytes_of(64);

/// Length of a header of version 2 in bytes.
const SHORT_BYTES: usize = 61;

/// Offset of the tenures.
const TENURES_AT: usize = 64;

const END: u8 = 1;

/// Returns the length in bytes of the header of a volume of `members` members.
const fn bytes_of(members: u8) -> usize {
    TENURES_AT + 8 * members as usize + 1
}

/// The meaning of an extent that the member lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing for certain: earlier versions began to fill members without a note.
    Unsaid,
    /// Nothing: the member replaced another one, and the extents it lacks are not noted yet.
    Unlisted,
    /// The member is noted in that extent's headers, if anything of the extent was synced.
    Listed,
}

impl Standing {
    fn byte(self) -> u8 {
        match self {
            Self::Unsaid => 0,
            Self::Unlisted => 0x5A,
            Self::Listed => 0xA5,
        }
    }

    fn of_byte(byte: Option<&u8>) -> Self {
        let is_it = |standing: &Self| byte == Some(&standing.byte());
        [Self::Unlisted, Self::Listed].into_iter().find(is_it).unwrap_or(Self::Unsaid)
    }
}

const MAGIC: [u8; 4] = *b"LHvo";
const VERSION: u8 = 3;

const SHORT_VERSION: u8 = 2;

/// The content of a page that cannot be rebuilt; it reads as unreadable. With any other content the
/// stripe's parity would give wrong bytes for the other pages.
pub(crate) const LOST: &[u8; 32] = b"\x93LHvo: what stood here is lost.\x6c";

/// Whether these are the bytes of a lost page.
pub(crate) fn is_lost(bytes: &[u8]) -> bool {
    bytes.starts_with(LOST)
}

/// The decoded header of a member's extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// How pages are distributed over the members.
    pub layout: Layout,
    /// Number of members of the volume.
    pub members: u8,
    /// Index of this member.
    pub member: u8,
    /// Identity of the volume.
    pub volume: u64,
    /// Generation that the extent was opened with.
    pub generation: u64,
    /// Number of the extent.
    pub extent: ExtentId,
    /// The run of the volume that opened the extent. Run and generation together identify an
    /// opening. A generation alone may be assigned twice, if power cuts lose the first opening on
    /// all members but one.
    pub run: u64,
    /// Of the headers of one opening, the one with the highest revision counts.
    pub revision: u64,
    /// Members that lack some of the extent, as a bit set.
    pub absent: u64,
    /// The stream that the extent stores.
    pub stream: Stream,
    /// The meaning of an extent that this member lacks.
    pub standing: Standing,
    /// The incarnation of this member: the count of earlier drives in its place.
    pub incarnation: u32,
}

/// Returns the bytes of a header. `tenures` are the tenures of all members: see incarnations.rs.
///
/// # Panics
/// If the number of tenures differs from the number of members.
pub fn encode(header: &Header, tenures: &[u64]) -> Vec<u8> {
    assert_eq!(
        tenures.len(),
        usize::from(header.members),
        "a header has the tenure of each member"
    );
    let (kind, chunk_pages) = match header.layout {
        Layout::Striped { chunk_pages } => (0, chunk_pages),
        Layout::Parity { chunk_pages } => (1, chunk_pages),
        Layout::Mirrored => (2, 0),
    };
    let mut bytes = vec![0; 4];
    bytes.extend(MAGIC);
    bytes.extend([VERSION, kind, header.members, header.member]);
    bytes.extend(chunk_pages.to_le_bytes());
    bytes.extend(header.volume.to_le_bytes());
    bytes.extend(header.generation.to_le_bytes());
    bytes.extend(header.extent.0.to_le_bytes());
    bytes.extend(header.run.to_le_bytes());
    bytes.extend(header.revision.to_le_bytes());
    bytes.extend(header.absent.to_le_bytes());
    bytes.push(header.stream as u8);
    bytes.extend([header.standing.byte(), 0, 0]);
    bytes.extend(tenures.iter().flat_map(|tenure| tenure.to_le_bytes()));
    bytes.push(END);
    seal(&mut bytes);
    bytes
}

/// Updates the checksum.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some(length) = length(bytes)
        && let Some(checked) = bytes.get(4..length)
    {
        let crc = crc32c::crc32c(checked);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns the length in bytes of the header that begins with `bytes`; `None` if its version is
/// unknown.
fn length(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(8)? {
        VERSION => Some(bytes_of(*bytes.get(10)?)),
        SHORT_VERSION => Some(SHORT_BYTES),
        _ => None,
    }
}

/// Decodes the header at the start of `bytes`; the rest is padding. Returns `None` if the bytes are
/// no valid header, or if it notes members that do not exist.
pub fn decode(bytes: &[u8]) -> Option<Header> {
    let standing = Standing::of_byte(bytes.get(SHORT_BYTES));
    let bytes = bytes.get(..length(bytes)?)?;
    let is_whole = number(bytes, 0, 4) == u64::from(crc32c::crc32c(&bytes[4..]));
    if !is_whole || bytes[4..8] != MAGIC {
        return None;
    }
    let chunk_pages = number(bytes, 12, 4) as u32;
    let layout = match (bytes[9], chunk_pages) {
        (0, 1..) => Layout::Striped { chunk_pages },
        (1, 1..) => Layout::Parity { chunk_pages },
        (2, 0) => Layout::Mirrored,
        _ => return None,
    };
    let (members, member) = (bytes[10], bytes[11]);
    let absent = number(bytes, 52, 8);
    if absent.checked_shr(u32::from(members)).unwrap_or(0) != 0 {
        return None;
    }
    Some(Header {
        layout,
        members,
        member,
        volume: number(bytes, 16, 8),
        generation: number(bytes, 24, 8),
        extent: ExtentId(number(bytes, 32, 4) as u32),
        run: number(bytes, 36, 8),
        revision: number(bytes, 44, 8),
        absent,
        stream: *Stream::ALL.iter().find(|stream| **stream as u8 == bytes[60])?,
        standing,
        incarnation: tenures(bytes).nth(usize::from(member)).map_or(0, incarnation_of),
    })
}

/// Returns the tenures of members in the bytes of a header that [`decode`] accepts; none for
/// version 2.
pub(crate) fn tenures(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let end = length(bytes).map_or(0, |length| length - 1);
    let numbers = bytes.get(TENURES_AT..end).unwrap_or_default().chunks_exact(8);
    numbers.map(|bytes| number(bytes, 0, 8))
}

/// Returns the little-endian number of `len` bytes at `at`.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut number = [0; 8];
    number[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use runtime::Rng;
    use testkit::fuzz::{Answer, Target};

    use super::*;

    /// A random header, and the tenures of all members.
    fn any_header(rng: &mut Rng) -> (Header, Vec<u64>) {
        let chunk_pages = 1 + rng.below(100) as u32;
        let members = rng.below(65) as u8;
        let member = rng.below(64) as u8;
        let tenures: Vec<u64> = (0..members).map(|_| rng.next_u64() >> rng.below(64)).collect();
        let header = Header {
            layout: match rng.below(3) {
                0 => Layout::Striped { chunk_pages },
                1 => Layout::Parity { chunk_pages },
                _ => Layout::Mirrored,
            },
            members,
            member,
            volume: rng.next_u64(),
            generation: rng.next_u64(),
            extent: ExtentId(rng.next_u64() as u32),
            run: rng.next_u64(),
            revision: rng.next_u64(),
            absent: rng.next_u64() & !u64::MAX.checked_shl(u32::from(members)).unwrap_or(0),
            stream: Stream::ALL[rng.below(4) as usize],
            standing: [Standing::Unsaid, Standing::Unlisted, Standing::Listed]
                [rng.below(3) as usize],
            incarnation: tenures.get(usize::from(member)).map_or(0, |it| incarnation_of(*it)),
        };
        (header, tenures)
    }

    /// Encodes a header as version 2 did.
    fn encode_short(header: &Header) -> Vec<u8> {
        let mut bytes = encode(header, &vec![0; usize::from(header.members)]);
        bytes.truncate(SHORT_BYTES);
        bytes[8] = SHORT_VERSION;
        seal(&mut bytes);
        bytes.push(header.standing.byte());
        bytes
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_no_changed_byte_passes() {
        let (header, told) = any_header(&mut Rng::new(1));
        let mut bytes = encode(&header, &told);
        let length = bytes.len();
        assert!(bytes[length - 1] != 0 && length <= MOST_BYTES);
        bytes.resize(4096, 0);
        assert_eq!(decode(&bytes), Some(header));
        assert!(tenures(&bytes).eq(told));
        assert!(!is_lost(&bytes) && is_lost(LOST) && decode(LOST).is_none());
        for at in 0..length {
            bytes[at] ^= 0x10;
            assert_eq!(decode(&bytes), None, "byte {at} was changed");
            bytes[at] ^= 0x10;
        }
    }

    #[test]
    fn a_header_of_an_earlier_version_is_read() {
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let (header, _) = any_header(&mut rng);
            let mut bytes = encode_short(&header);
            assert_eq!(decode(&bytes), Some(Header { incarnation: 0, ..header }));
            bytes.resize(4096, 0);
            assert_eq!(decode(&bytes), Some(Header { incarnation: 0, ..header }));
            assert_eq!(tenures(&bytes).count(), 0);
        }
    }

    #[test]
    fn a_header_that_notes_members_that_there_are_not_is_none() {
        let (header, _) = any_header(&mut Rng::new(2));
        for (members, absent, is_one) in [
            (3, 0b111, true),
            (3, 0b1000, false),
            (3, 1 << 63, false),
            (64, 1 << 63, true),
            (0, 1, false),
        ] {
            let told = vec![0; usize::from(members)];
            let bytes = encode(&Header { members, absent, ..header }, &told);
            assert_eq!(decode(&bytes).is_some(), is_one, "{members} members, {absent:b}");
        }
    }

    #[test]
    fn fuzz_header() {
        let check = |bytes: &[u8]| {
            let Some(header) = decode(bytes) else { return Answer::Refused };
            let told: Vec<u64> = tenures(bytes).collect();
            let again =
                if bytes[8] == VERSION { encode(&header, &told) } else { encode_short(&header) };
            // Bytes without a meaning may differ.
            assert_eq!(decode(&again), Some(header));
            assert!(tenures(&again).eq(told));
            Answer::Taken
        };
        let encoding = |rng: &mut Rng| {
            let (header, told) = any_header(rng);
            if rng.chance(0.2) { encode_short(&header) } else { encode(&header, &told) }
        };
        Target {
            test: ("volume", "fuzz_header"),
            encoding: &encoding,
            seal: &|bytes| seal(bytes),
            check: &check,
        }
        .run();
    }
}
