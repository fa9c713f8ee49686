//! What each member's extent begins with, and what stands where a page is lost for good.
//!
//! ```text
//! 0..4    CRC-32C of bytes 4..61
//! 4..8    magic, "LHvo"
//! 8       version of this format
//! 9       layout: 0 striped, 1 parity, 2 mirrored
//! 10      members of the volume
//! 11      the member that this is
//! 12..16  pages of a chunk
//! 16..24  identity of the volume
//! 24..32  generation that the extent was opened with
//! 32..36  number of the extent
//! 36..44  run of the volume that opened the extent: its number in the upper half, random below
//! 44..52  revision: of the headers of one opening the highest counts; the upper half as that of a run
//! 52..60  members that have not all of the extent, a bit each
//! 60      stream
//! 61      standing of the member: 0xA5 listed, 0x5A not listed yet, zero of earlier versions; then zeros up to the end of
//!         the append unit
//! ```
//! All numbers are little-endian. The header is shorter than a block, which a device writes whole or
//! not at all.

use pages::{ExtentId, Stream};

use crate::layout::Layout;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 61;

/// What follows from it that a member lacks an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing for certain: earlier versions began to fill members without a note.
    Unsaid,
    /// Nothing: the member took the place of another one, and what it lacks is not noted yet.
    Unlisted,
    /// That it is noted, if anything of the extent was synced.
    Listed,
}

impl Standing {
    /// The byte behind a header.
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
const VERSION: u8 = 2;

/// What a page is filled with that nothing could be rebuilt from: it counts as unreadable. Else the
/// parity of its stripe would give wrong bytes for the others.
pub(crate) const LOST: &[u8; 32] = b"\x93LHvo: what stood here is lost.\x6c";

/// Whether these are the bytes of a page that is lost.
pub(crate) fn is_lost(bytes: &[u8]) -> bool {
    bytes.starts_with(LOST)
}

/// A member's extent, as it says itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// How pages lie on the members.
    pub layout: Layout,
    /// Members of the volume.
    pub members: u8,
    /// The member that this is.
    pub member: u8,
    /// Identity of the volume.
    pub volume: u64,
    /// Generation that the extent was opened with.
    pub generation: u64,
    /// Number of the extent.
    pub extent: ExtentId,
    /// The run of the volume that opened the extent. With the generation it says which opening this is: a
    /// generation alone may be given twice, when power cuts take the first one from all members but one.
    pub run: u64,
    /// Of the headers of one opening the one with the highest counts.
    pub revision: u64,
    /// Members that have not all of the extent, a bit each.
    pub absent: u64,
    /// What the extent is filled with.
    pub stream: Stream,
    /// What the member's lacking an extent says.
    pub standing: Standing,
}

/// The bytes of a header.
pub fn encode(header: &Header) -> Vec<u8> {
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
    bytes.push(header.standing.byte());
    seal(&mut bytes);
    bytes
}

/// Makes the checksum right.
pub(crate) fn seal(bytes: &mut [u8]) {
    if bytes.len() >= HEADER_BYTES {
        let crc = crc32c::crc32c(&bytes[4..HEADER_BYTES]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The header that these bytes begin with; `None` if it is none, or notes members that there are not. What follows is padding.
pub fn decode(bytes: &[u8]) -> Option<Header> {
    let standing = Standing::of_byte(bytes.get(HEADER_BYTES));
    let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let is_whole = number(bytes, 0, 4) == u64::from(crc32c::crc32c(&bytes[4..]));
    if !is_whole || bytes[4..8] != MAGIC || bytes[8] != VERSION {
        return None;
    }
    let chunk_pages = number(bytes, 12, 4) as u32;
    let layout = match (bytes[9], chunk_pages) {
        (0, 1..) => Layout::Striped { chunk_pages },
        (1, 1..) => Layout::Parity { chunk_pages },
        (2, 0) => Layout::Mirrored,
        _ => return None,
    };
    let (members, absent) = (bytes[10], number(bytes, 52, 8));
    if absent.checked_shr(u32::from(members)).unwrap_or(0) != 0 {
        return None;
    }
    Some(Header {
        layout,
        members,
        member: bytes[11],
        volume: number(bytes, 16, 8),
        generation: number(bytes, 24, 8),
        extent: ExtentId(number(bytes, 32, 4) as u32),
        run: number(bytes, 36, 8),
        revision: number(bytes, 44, 8),
        absent,
        stream: *Stream::ALL.iter().find(|stream| **stream as u8 == bytes[60])?,
        standing,
    })
}

/// The number in `len` bytes at `at`.
fn number(bytes: &[u8; HEADER_BYTES], at: usize, len: usize) -> u64 {
    let mut number = [0; 8];
    number[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use fuzz::{Answer, Target};
    use runtime::Rng;

    use super::*;

    fn any_header(rng: &mut Rng) -> Header {
        let chunk_pages = 1 + rng.below(100) as u32;
        let members = rng.below(65) as u8;
        Header {
            layout: match rng.below(3) {
                0 => Layout::Striped { chunk_pages },
                1 => Layout::Parity { chunk_pages },
                _ => Layout::Mirrored,
            },
            members,
            member: rng.below(64) as u8,
            volume: rng.next_u64(),
            generation: rng.next_u64(),
            extent: ExtentId(rng.next_u64() as u32),
            run: rng.next_u64(),
            revision: rng.next_u64(),
            absent: rng.next_u64() & !u64::MAX.checked_shl(u32::from(members)).unwrap_or(0),
            stream: Stream::ALL[rng.below(4) as usize],
            standing: [Standing::Unsaid, Standing::Unlisted, Standing::Listed]
                [rng.below(3) as usize],
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_no_changed_byte_passes() {
        let header = any_header(&mut Rng::new(1));
        let mut bytes = encode(&header);
        bytes.resize(4096, 0);
        assert_eq!(decode(&bytes), Some(header));
        assert!(!is_lost(&bytes) && is_lost(LOST) && decode(LOST).is_none());
        for at in 0..HEADER_BYTES {
            bytes[at] ^= 0x10;
            assert_eq!(decode(&bytes), None, "byte {at} was changed");
            bytes[at] ^= 0x10;
        }
    }

    #[test]
    fn a_header_that_notes_members_that_there_are_not_is_none() {
        let header = any_header(&mut Rng::new(2));
        for (members, absent, is_one) in [
            (3, 0b111, true),
            (3, 0b1000, false),
            (3, 1 << 63, false),
            (64, 1 << 63, true),
            (0, 1, false),
        ] {
            let bytes = encode(&Header { members, absent, ..header });
            assert_eq!(decode(&bytes).is_some(), is_one, "{members} members, {absent:b}");
        }
    }

    #[test]
    fn fuzz_header() {
        let check = |bytes: &[u8]| {
            let Some(header) = decode(bytes) else { return Answer::Refused };
            assert_eq!(encode(&header)[..HEADER_BYTES], bytes[..HEADER_BYTES]);
            Answer::Taken
        };
        Target {
            test: ("volume", "fuzz_header"),
            encoding: &|rng| encode(&any_header(rng)),
            seal: &|bytes| seal(bytes),
            check: &check,
        }
        .run();
    }
}
