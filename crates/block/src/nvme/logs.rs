//! Get Log Page, and the two log pages of Predictable Latency Mode.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::layout::field;
use super::{Budget, DecodeError, Events, SetId, WindowStatus};

const RETAIN: u32 = 1 << 15;

/// A log page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Log {
    /// Predictable Latency Per NVM Set (0Ah).
    PerSet(SetId),
    /// Predictable Latency Event Aggregate (0Bh).
    EventAggregate,
}

impl Log {
    /// Returns the log page identifier.
    pub const fn id(self) -> u8 {
        match self {
            Self::PerSet(_) => 0x0A,
            Self::EventAggregate => 0x0B,
        }
    }
}

/// A part of a log page to read. It is not empty; its offset and length are multiples of 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSpan {
    offset_bytes: u64,
    length_bytes: u64,
}

impl LogSpan {
    /// Creates a span. Log page 0Ah is [`PerSetLog::BYTES`] bytes long; for the length of 0Bh see
    /// [`EventAggregate::bytes_for`].
    ///
    /// # Errors
    /// Returns an error if the offset or the length is not a multiple of 4, or if the length is 0
    /// or above 16 GiB.
    pub const fn new(offset_bytes: u64, length_bytes: u64) -> Result<Self, DecodeError> {
        if !offset_bytes.is_multiple_of(4) {
            return Err(DecodeError::LogOffset { found: offset_bytes });
        }
        if !length_bytes.is_multiple_of(4) || length_bytes == 0 || length_bytes > 4 << 32 {
            return Err(DecodeError::LogLength { found: length_bytes });
        }
        Ok(Self { offset_bytes, length_bytes })
    }

    /// Returns the offset in bytes.
    pub const fn offset_bytes(self) -> u64 {
        self.offset_bytes
    }

    /// Returns the length in bytes.
    pub const fn length_bytes(self) -> u64 {
        self.length_bytes
    }

    /// Returns the bytes of the span in `page`, cut off at the end of the page. `None` if the span
    /// begins past the end, which is Invalid Field in Command.
    pub fn of(self, page: &[u8]) -> Option<&[u8]> {
        let rest = page.get(usize::try_from(self.offset_bytes).ok()?..)?;
        let length = usize::try_from(self.length_bytes).unwrap_or(usize::MAX);
        Some(&rest[..rest.len().min(length)])
    }
}

/// The Get Log Page command.
///
/// ```text
///   CDW10  7:0 log page   14:8 log specific, unused   15 retain event   31:16 length, low half
///   CDW11  15:0 length, high half   31:16 NVM set (0Ah)
///   CDW12  offset, low half   CDW13  offset, high half
/// ```
/// The length is in dwords minus one, the offset in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetLogPage {
    /// The log page.
    pub log: Log,
    /// Whether the page's event stays pending after the read (Retain Asynchronous Event).
    pub retain: bool,
    /// The part of the page to read.
    pub span: LogSpan,
}

impl GetLogPage {
    /// The opcode of Get Log Page.
    pub const OPCODE: u8 = 0x02;

    /// Returns the command that reads a set's whole log page and clears its events.
    pub const fn per_set(set: SetId) -> Self {
        let span = LogSpan { offset_bytes: 0, length_bytes: PerSetLog::BYTES as u64 };
        Self { log: Log::PerSet(set), retain: false, span }
    }

    /// Returns command dwords 10 to 13.
    pub fn dwords(self) -> [u32; 4] {
        let last_dword = (self.span.length_bytes / 4 - 1) as u32;
        let retain = if self.retain { RETAIN } else { 0 };
        let specific = match self.log {
            Log::PerSet(set) => u32::from(set.get()),
            Log::EventAggregate => 0,
        };
        [
            u32::from(self.log.id()) | retain | (last_dword << 16),
            (last_dword >> 16) | (specific << 16),
            self.span.offset_bytes as u32,
            (self.span.offset_bytes >> 32) as u32,
        ]
    }

    /// Decodes the command from dwords 10 to 13. Fields that the log page does not use are ignored.
    ///
    /// # Errors
    /// Returns an error if the log page is neither 0Ah nor 0Bh, the set is 0, or the offset is not
    /// a multiple of 4.
    pub fn decode(dwords: [u32; 4]) -> Result<Self, DecodeError> {
        let [dword10, dword11, offset_low, offset_high] = dwords;
        let log = match (dword10 & 0xFF) as u8 {
            0x0A => Log::PerSet(SetId::try_from((dword11 >> 16) as u16)?),
            0x0B => Log::EventAggregate,
            found => return Err(DecodeError::LogId { found }),
        };
        let last_dword = (dword10 >> 16) | (dword11 << 16);
        let length_bytes = (u64::from(last_dword) + 1) * 4;
        let offset_bytes = u64::from(offset_low) | (u64::from(offset_high) << 32);
        let span = LogSpan::new(offset_bytes, length_bytes)?;
        Ok(Self { log, retain: dword10 & RETAIN != 0, span })
    }
}

/// Predictable Latency Per NVM Set, log page 0Ah: the limits of a set's windows and the current
/// window.
///
/// Limits are constant for the life of the drive. Within one deterministic window, estimates only
/// decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerSetLog {
    /// The current window of the set.
    pub status: WindowStatus,
    /// Events since the last read of the page without Retain.
    pub events: Events,
    /// DTWIN Reads Typical, Writes Typical and Time Maximum: the limits of a window. A set that
    /// exceeds one of them may leave the window by itself.
    pub dtwin: Budget,
    /// NDWIN Time Minimum High, in milliseconds: the time that the host should grant after a full
    /// deterministic window.
    pub ndwin_minimum_high_ms: u64,
    /// NDWIN Time Minimum Low, in milliseconds: the time that the set needs before its next
    /// deterministic window.
    pub ndwin_minimum_low_ms: u64,
    /// DTWIN Reads Estimate, Writes Estimate and Time Estimate: the remaining budget of the window.
    pub left: Budget,
    /// **An extension of this project**, in bytes that the specification reserves. The estimated
    /// time, in microseconds, during which the set accepts no commands when it next enters a
    /// deterministic window, because it flushes its write buffer ("device lockdown" of Vigil-KV,
    /// USENIX ATC'22). `None` (all bytes zero) if the drive reports no estimate.
    pub lockdown_estimate_us: Option<NonZeroU64>,
}

impl PerSetLog {
    /// Length of the page in bytes.
    pub const BYTES: usize = 512;

    /// Encodes the page.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.status.code();
        bytes[2..4].copy_from_slice(&self.events.bits().to_le_bytes());
        bytes[32..56].copy_from_slice(&self.dtwin.encode());
        bytes[56..64].copy_from_slice(&self.ndwin_minimum_high_ms.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.ndwin_minimum_low_ms.to_le_bytes());
        bytes[128..152].copy_from_slice(&self.left.encode());
        let lockdown = self.lockdown_estimate_us.map_or(0, NonZeroU64::get);
        bytes[504..512].copy_from_slice(&lockdown.to_le_bytes());
        bytes
    }

    /// Decodes the page. Reserved bytes and bits are ignored.
    ///
    /// A drive of another vendor may use bytes 504 to 511 for another purpose in the future: ignore
    /// the lockdown estimate of such a drive.
    ///
    /// # Errors
    /// Returns an error if the status is reserved.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, DecodeError> {
        Ok(Self {
            status: WindowStatus::try_from(bytes[0] & 0b111)?,
            events: Events::from_bits(u16::from_le_bytes(field(bytes, 2..4))),
            dtwin: Budget::decode(&field(bytes, 32..56)),
            ndwin_minimum_high_ms: u64::from_le_bytes(field(bytes, 56..64)),
            ndwin_minimum_low_ms: u64::from_le_bytes(field(bytes, 64..72)),
            left: Budget::decode(&field(bytes, 128..152)),
            lockdown_estimate_us: NonZeroU64::new(u64::from_le_bytes(field(bytes, 504..512))),
        })
    }
}

/// Predictable Latency Event Aggregate, log page 0Bh: the sets that have pending events. Reading a
/// set's page 0Ah without Retain removes the set from the list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventAggregate {
    /// The sets with pending events.
    pub sets: BTreeSet<SetId>,
}

impl EventAggregate {
    /// Returns the length of the page with `sets` entries in bytes, rounded up to the multiple of 4
    /// that [`LogSpan`] requires.
    pub const fn bytes_for(sets: u16) -> u64 {
        (8 + 2 * sets as u64).next_multiple_of(4)
    }

    /// Encodes the page, without padding.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 2 * self.sets.len());
        bytes.extend((self.sets.len() as u64).to_le_bytes());
        bytes.extend(self.sets.iter().flat_map(|set| set.get().to_le_bytes()));
        bytes
    }

    /// Decodes the page. Bytes after the last entry are ignored.
    ///
    /// # Errors
    /// Returns an error if the page is longer than `bytes`, or if a set number is 0 or not greater
    /// than its predecessor.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let found = bytes.len();
        let (count, entries) =
            bytes.split_first_chunk().ok_or(DecodeError::AggregateLength { found, wanted: 8 })?;
        let wanted = u64::from_le_bytes(*count).saturating_mul(2).saturating_add(8);
        if wanted > found as u64 {
            return Err(DecodeError::AggregateLength { found, wanted });
        }
        let mut sets = BTreeSet::new();
        for entry in entries[..wanted as usize - 8].chunks_exact(2) {
            let number = u16::from_le_bytes(field(entry, 0..2));
            let set = SetId::try_from(number)?;
            if sets.last().is_some_and(|last| *last >= set) {
                return Err(DecodeError::SetOrder { found: number });
            }
            sets.insert(set);
        }
        Ok(Self { sets })
    }
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
