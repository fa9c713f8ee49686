//! Storage of a memtable's keys and values: packed in chunks, each of which is freed as a whole.
//!
//! Separate allocations would leave holes of the size of a key or value between longer-lived
//! allocations, above all page images of the index; a heap with such holes does not shrink. The
//! stored bytes are shared, not copied: the WAL, flushes and readers keep references to them, and
//! thereby to their chunk. Cost of storing: one copy.

use bytes::{Bytes, BytesMut};

/// Size of the first chunk of a memtable, small because the memtable may stay small.
const FIRST_CHUNK_BYTES: usize = 4 << 10;
/// Each further chunk is twice as large as the one before, up to this size.
const CHUNK_BYTES: usize = 256 << 10;
/// Longer values have an allocation of their own, so that little space is wasted at the end of a
/// chunk.
const LONGEST_BYTES: usize = CHUNK_BYTES / 8;

/// Chunks that are filled one after the other.
#[derive(Default)]
pub(super) struct Chunks {
    /// Free space of the newest chunk.
    rest: BytesMut,
    /// Size of the newest chunk in bytes; 0 before the first one.
    newest_bytes: usize,
}

impl Chunks {
    /// Whether a value of this length is stored in a chunk.
    pub(super) fn takes(len: usize) -> bool {
        len <= LONGEST_BYTES
    }

    /// Returns a copy of `bytes`, in the newest chunk if it has space, else in a new one.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.is_empty() {
            return Bytes::new();
        }
        if self.rest.capacity() < bytes.len() {
            let next = (2 * self.newest_bytes).clamp(FIRST_CHUNK_BYTES, CHUNK_BYTES);
            self.newest_bytes = next.max(bytes.len());
            self.rest = BytesMut::with_capacity(self.newest_bytes);
        }
        self.rest.extend_from_slice(bytes);
        self.rest.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_lies_side_by_side_and_stays_what_it_is() {
        let mut chunks = Chunks::default();
        let kept: Vec<Bytes> = (0..1000_u32).map(|n| chunks.keep(&[n as u8; 100])).collect();
        assert!(kept.iter().zip(0..).all(|(kept, n)| **kept == [n as u8; 100]));
        let follows = |pair: &&[Bytes]| pair[1].as_ptr() == pair[0].as_ptr().wrapping_add(100);
        let apart = 999 - kept.windows(2).filter(follows).count();
        // Chunks of 4, 8, 16, 32 and 64 KiB.
        assert_eq!(apart, 4, "100,000 bytes lie in five chunks");
        assert_eq!(chunks.keep(b""), b""[..]);
    }

    #[test]
    fn no_chunk_is_longer_than_another_or_than_what_it_holds() {
        let mut chunks = Chunks::default();
        assert_eq!(chunks.keep(&vec![7; 40_000]).len(), 40_000);
        assert_eq!(chunks.newest_bytes, 40_000);
        for _ in 0..100 {
            chunks.keep(&vec![7; 32_000]);
        }
        assert_eq!(chunks.newest_bytes, CHUNK_BYTES);
    }
}
