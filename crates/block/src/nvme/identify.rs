//! Identify structures for NVM sets and Predictable Latency Mode.

use std::num::NonZeroU32;

use super::layout::field;
use super::{DecodeError, SetId};

/// Length of every Identify structure in bytes.
const PAGE: usize = 4096;

/// NVM Set Attributes Entry: the attributes of one set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NvmSetAttributes {
    /// The set.
    pub id: SetId,
    /// The endurance group of the set; 0 if the drive has none.
    pub endurance_group: u16,
    /// Random 4 KiB Read Typical: the time of one read in a deterministic window without other
    /// outstanding reads, in units of 100 ns.
    pub read_typical_100ns: u32,
    /// Optimal Write Size in bytes, if the drive reports it.
    pub optimal_write_bytes: Option<NonZeroU32>,
    /// Total capacity in bytes.
    pub capacity_bytes: u128,
    /// Capacity that is allocated to no namespace, in bytes.
    pub unallocated_bytes: u128,
}

impl NvmSetAttributes {
    /// Length of an entry in bytes.
    pub const BYTES: usize = 128;

    /// Encodes the entry.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..2].copy_from_slice(&self.id.get().to_le_bytes());
        bytes[2..4].copy_from_slice(&self.endurance_group.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.read_typical_100ns.to_le_bytes());
        let optimal_write = self.optimal_write_bytes.map_or(0, NonZeroU32::get);
        bytes[12..16].copy_from_slice(&optimal_write.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.capacity_bytes.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.unallocated_bytes.to_le_bytes());
        bytes
    }

    /// Decodes an entry. Reserved bytes are ignored.
    ///
    /// # Errors
    /// Returns an error if the set is 0.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, DecodeError> {
        Ok(Self {
            id: SetId::try_from(u16::from_le_bytes(field(bytes, 0..2)))?,
            endurance_group: u16::from_le_bytes(field(bytes, 2..4)),
            read_typical_100ns: u32::from_le_bytes(field(bytes, 8..12)),
            optimal_write_bytes: NonZeroU32::new(u32::from_le_bytes(field(bytes, 12..16))),
            capacity_bytes: u128::from_le_bytes(field(bytes, 16..32)),
            unallocated_bytes: u128::from_le_bytes(field(bytes, 32..48)),
        })
    }
}

/// NVM Set List: sets by ascending number, up to the capacity of the structure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NvmSetList {
    entries: Vec<NvmSetAttributes>,
}

impl NvmSetList {
    /// Length of the structure in bytes.
    pub const BYTES: usize = PAGE;
    /// Maximum number of entries.
    pub const MAX_ENTRIES: usize = 31;
    /// The opcode of Identify.
    pub const OPCODE: u8 = 0x06;
    /// The identifier of the structure (CNS), in command dword 10.
    pub const CNS: u8 = 0x04;

    /// Returns the list of the drive's sets with numbers from `first` on, cut off at
    /// [`Self::MAX_ENTRIES`]. `sets` may be in any order.
    ///
    /// # Panics
    /// Panics if two sets have the same number.
    pub fn starting_at(first: u16, sets: impl IntoIterator<Item = NvmSetAttributes>) -> Self {
        let mut entries: Vec<_> = sets.into_iter().filter(|set| set.id.get() >= first).collect();
        entries.sort_by_key(|set| set.id);
        assert!(entries.is_sorted_by(|a, b| a.id < b.id), "sets have different numbers");
        entries.truncate(Self::MAX_ENTRIES);
        Self { entries }
    }

    /// Returns the sets, by ascending number.
    pub fn entries(&self) -> &[NvmSetAttributes] {
        &self.entries
    }

    /// Returns command dwords 10 and 11 of the Identify that requests the list from the number
    /// `first` on. If a list is full, request the next from its last number plus one.
    pub const fn dwords(first: u16) -> [u32; 2] {
        [Self::CNS as u32, first as u32]
    }

    /// Returns the first set number that an Identify requests: bits 15:0 of command dword 11, NVM
    /// Set Identifier.
    pub const fn first_of(dword11: u32) -> u16 {
        dword11 as u16
    }

    /// Encodes the structure.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.entries.len() as u8;
        let (slots, _) = bytes[128..].as_chunks_mut();
        for (slot, set) in slots.iter_mut().zip(&self.entries) {
            *slot = set.encode();
        }
        bytes
    }

    /// Decodes the structure. Reserved bytes and bytes after the last entry are ignored.
    ///
    /// # Errors
    /// Returns an error if the list claims more than 31 entries, or if a set number is 0 or not
    /// greater than its predecessor.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, DecodeError> {
        let count = bytes[0];
        if usize::from(count) > Self::MAX_ENTRIES {
            return Err(DecodeError::SetCount { found: count });
        }
        let (slots, _) = bytes[128..].as_chunks();
        let mut entries = Vec::<NvmSetAttributes>::with_capacity(count.into());
        for slot in &slots[..count.into()] {
            let set = NvmSetAttributes::decode(slot)?;
            if entries.last().is_some_and(|last| last.id >= set.id) {
                return Err(DecodeError::SetOrder { found: set.id.get() });
            }
            entries.push(set);
        }
        Ok(Self { entries })
    }
}

/// The bits of Controller Attributes (CTRATT) that concern sets and windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerAttributes(u32);

impl ControllerAttributes {
    /// No attribute.
    pub const NONE: Self = Self(0);
    /// NVM Sets.
    pub const NVM_SETS: Self = Self(1 << 2);
    /// Read Recovery Levels.
    pub const READ_RECOVERY_LEVELS: Self = Self(1 << 3);
    /// Endurance Groups.
    pub const ENDURANCE_GROUPS: Self = Self(1 << 4);
    /// Predictable Latency Mode. It requires NVM sets, read recovery levels and announcements of
    /// the event aggregate.
    pub const PREDICTABLE_LATENCY: Self = Self(1 << 5);
    /// All attributes of this type.
    pub const ALL: Self = Self(0b1111 << 2);

    /// Decodes the attributes of the field. Other bits are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the bits, at their positions in the field.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the union of both sets of attributes.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether `others` is a subset.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// The fields of Identify Controller that concern sets and windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerFields {
    /// The supported attributes.
    pub attributes: ControllerAttributes,
    /// Whether the controller can announce changes of the event aggregate (OAES bit 12).
    pub announces_event_aggregate: bool,
    /// Read Recovery Levels Supported: one bit per level.
    pub read_recovery_levels: u16,
    /// The largest NVM set number (NSETIDMAX); 0 without sets.
    pub largest_set: u16,
    /// The largest endurance group number (ENDGIDMAX); 0 without groups.
    pub largest_endurance_group: u16,
}

impl ControllerFields {
    const EVENT_AGGREGATE: u32 = 1 << 12;

    /// Writes the fields into a structure. All other bits and bytes are unchanged.
    pub fn write_into(&self, page: &mut [u8; PAGE]) {
        let notices = if self.announces_event_aggregate { Self::EVENT_AGGREGATE } else { 0 };
        let others = u32::from_le_bytes(field(page, 92..96)) & !Self::EVENT_AGGREGATE;
        page[92..96].copy_from_slice(&(others | notices).to_le_bytes());
        let others = u32::from_le_bytes(field(page, 96..100)) & !ControllerAttributes::ALL.bits();
        page[96..100].copy_from_slice(&(others | self.attributes.bits()).to_le_bytes());
        page[100..102].copy_from_slice(&self.read_recovery_levels.to_le_bytes());
        page[338..340].copy_from_slice(&self.largest_set.to_le_bytes());
        page[340..342].copy_from_slice(&self.largest_endurance_group.to_le_bytes());
    }

    /// Reads the fields from a structure.
    pub fn read_from(page: &[u8; PAGE]) -> Self {
        let notices = u32::from_le_bytes(field(page, 92..96));
        let attributes = u32::from_le_bytes(field(page, 96..100));
        Self {
            attributes: ControllerAttributes::from_bits(attributes),
            announces_event_aggregate: notices & Self::EVENT_AGGREGATE != 0,
            read_recovery_levels: u16::from_le_bytes(field(page, 100..102)),
            largest_set: u16::from_le_bytes(field(page, 338..340)),
            largest_endurance_group: u16::from_le_bytes(field(page, 340..342)),
        }
    }
}

/// The fields of Identify Namespace (CNS 00h) that concern sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamespaceFields {
    /// The set of the namespace (NVMSETID); `None` on a controller without sets.
    pub set: Option<SetId>,
    /// The endurance group (ENDGID); 0 if the drive has none.
    pub endurance_group: u16,
}

impl NamespaceFields {
    /// Writes the fields into a structure. All other bytes are unchanged.
    pub fn write_into(&self, page: &mut [u8; PAGE]) {
        let set = self.set.map_or(0, SetId::get);
        page[100..102].copy_from_slice(&set.to_le_bytes());
        page[102..104].copy_from_slice(&self.endurance_group.to_le_bytes());
    }

    /// Reads the fields from a structure.
    pub fn read_from(page: &[u8; PAGE]) -> Self {
        Self {
            set: SetId::new(u16::from_le_bytes(field(page, 100..102))),
            endurance_group: u16::from_le_bytes(field(page, 102..104)),
        }
    }
}

#[cfg(test)]
#[path = "identify_tests.rs"]
mod tests;
