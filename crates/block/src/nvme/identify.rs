//! What Identify tells about NVM sets and Predictable Latency Mode.

use std::num::NonZeroU32;

use super::layout::field;
use super::{DecodeError, SetId};

/// The length of every structure of Identify.
const PAGE: usize = 4096;

/// NVM Set Attributes Entry: one set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NvmSetAttributes {
    /// The set.
    pub id: SetId,
    /// Its endurance group, 0 if the drive has none.
    pub endurance_group: u16,
    /// Random 4 KiB Read Typical: how long one read takes in a deterministic window with no other
    /// outstanding, in units of 100 ns.
    pub read_typical_100ns: u32,
    /// Optimal Write Size, in bytes, if there is one.
    pub optimal_write_bytes: Option<NonZeroU32>,
    /// Total capacity in bytes.
    pub capacity_bytes: u128,
    /// Capacity that no namespace has, in bytes.
    pub unallocated_bytes: u128,
}

impl NvmSetAttributes {
    /// The length of an entry.
    pub const BYTES: usize = 128;

    /// The entry.
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

    /// The values of an entry. Reserved bytes are ignored.
    ///
    /// # Errors
    /// The set is 0.
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

/// NVM Set List: sets by ascending number, as many as a structure holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NvmSetList {
    entries: Vec<NvmSetAttributes>,
}

impl NvmSetList {
    /// The length of the structure.
    pub const BYTES: usize = PAGE;
    /// The most entries.
    pub const MAX_ENTRIES: usize = 31;
    /// The opcode of Identify.
    pub const OPCODE: u8 = 0x06;
    /// The structure's number (CNS), in command dword 10.
    pub const CNS: u8 = 0x04;

    /// The list for a drive with these sets, in any order, from the number `first` on.
    ///
    /// # Panics
    /// Two sets have the same number.
    pub fn starting_at(first: u16, sets: impl IntoIterator<Item = NvmSetAttributes>) -> Self {
        let mut entries: Vec<_> = sets.into_iter().filter(|set| set.id.get() >= first).collect();
        entries.sort_by_key(|set| set.id);
        assert!(entries.is_sorted_by(|a, b| a.id < b.id), "sets have different numbers");
        entries.truncate(Self::MAX_ENTRIES);
        Self { entries }
    }

    /// The sets, by ascending number.
    pub fn entries(&self) -> &[NvmSetAttributes] {
        &self.entries
    }

    /// Command dwords 10 and 11 of the Identify that asks for the list from the number `first` on.
    /// To go on after a full list, ask from its last number plus one on.
    pub const fn dwords(first: u16) -> [u32; 2] {
        [Self::CNS as u32, first as u32]
    }

    /// The number from which on an Identify asks for sets: bits 15:0 of command dword 11, NVM Set
    /// Identifier.
    pub const fn first_of(dword11: u32) -> u16 {
        dword11 as u16
    }

    /// The structure.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.entries.len() as u8;
        let (slots, _) = bytes[128..].as_chunks_mut();
        for (slot, set) in slots.iter_mut().zip(&self.entries) {
            *slot = set.encode();
        }
        bytes
    }

    /// The values of a structure. Reserved bytes and bytes after the last entry are ignored.
    ///
    /// # Errors
    /// It claims more than 31 entries, or their numbers do not ascend or are 0.
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

/// Controller Attributes (CTRATT): those of its bits that are about sets and windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerAttributes(u32);

impl ControllerAttributes {
    /// None.
    pub const NONE: Self = Self(0);
    /// NVM Sets.
    pub const NVM_SETS: Self = Self(1 << 2);
    /// Read Recovery Levels.
    pub const READ_RECOVERY_LEVELS: Self = Self(1 << 3);
    /// Endurance Groups.
    pub const ENDURANCE_GROUPS: Self = Self(1 << 4);
    /// Predictable Latency Mode. It demands NVM sets, read recovery levels, and announcements of
    /// the event aggregate.
    pub const PREDICTABLE_LATENCY: Self = Self(1 << 5);
    /// All of these.
    pub const ALL: Self = Self(0b1111 << 2);

    /// The attributes of the field. Other bits are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The bits, in place.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// These and others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether all of others are among them.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// The fields of Identify Controller that are about sets and windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerFields {
    /// What the controller supports.
    pub attributes: ControllerAttributes,
    /// Whether it can announce changes of the event aggregate (OAES bit 12).
    pub announces_event_aggregate: bool,
    /// Read Recovery Levels Supported: a bit per level.
    pub read_recovery_levels: u16,
    /// The largest number of an NVM set (NSETIDMAX), 0 without sets.
    pub largest_set: u16,
    /// The largest number of an endurance group (ENDGIDMAX), 0 without groups.
    pub largest_endurance_group: u16,
}

impl ControllerFields {
    const EVENT_AGGREGATE: u32 = 1 << 12;

    /// Writes the fields into a structure. Other bits and bytes stay as they are.
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

    /// The fields of a structure.
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

/// The fields of Identify Namespace (CNS 00h) that are about sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamespaceFields {
    /// The set that the namespace lies in (NVMSETID); none on a controller without sets.
    pub set: Option<SetId>,
    /// Its endurance group (ENDGID), 0 if the drive has none.
    pub endurance_group: u16,
}

impl NamespaceFields {
    /// Writes the fields into a structure. Other bytes stay as they are.
    pub fn write_into(&self, page: &mut [u8; PAGE]) {
        let set = self.set.map_or(0, SetId::get);
        page[100..102].copy_from_slice(&set.to_le_bytes());
        page[102..104].copy_from_slice(&self.endurance_group.to_le_bytes());
    }

    /// The fields of a structure.
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
