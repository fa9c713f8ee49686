//! Set Features and Get Features for Predictable Latency Mode.
//!
//! ```text
//!            CDW10                        CDW11              CDW12                    data
//!   Set 13h  7:0 FID, 31 save             15:0 NVM set       0 enable                 512 bytes
//!   Set 14h  7:0 FID, 31 save             15:0 NVM set       2:0 1 DTWIN, 2 NDWIN     -
//!   Set 0Bh  7:0 FID, 31 save             31:0 announcements                          -
//!   Get      7:0 FID, 10:8 select         15:0 NVM set (13h, 14h)
//! ```
//!
//! Dword 0 of the completion of Get Features holds the value that Set Features has in CDW12 (0Bh:
//! CDW11). Set Features of a window completes when the set is in that window. A change to DTWIN is
//! delayed until the set has spent its minimum time in NDWIN.

use super::layout::{field, refuse_reserved};
use super::{AsyncEventConfig, Budget, DecodeError, Events, SetId, WindowSelect};

const SAVE: u32 = 1 << 31;
const ID: u32 = 0xFF;
const SET: u32 = 0xFFFF;

/// Deterministic Threshold Configuration: the events to record, and the remaining budget of a
/// deterministic window below which warnings are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Thresholds {
    /// The events to record.
    pub events: Events,
    /// A warning is recorded when an estimate of log page 0Ah falls below its value here.
    pub left: Budget,
}

impl Thresholds {
    /// Length of the structure in bytes.
    pub const BYTES: usize = 512;

    /// Encodes the structure.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..2].copy_from_slice(&self.events.bits().to_le_bytes());
        bytes[32..56].copy_from_slice(&self.left.encode());
        bytes
    }

    /// Decodes the structure. Reserved bytes and bits are ignored.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            events: Events::from_bits(u16::from_le_bytes(field(bytes, 0..2))),
            left: Budget::decode(&field(bytes, 32..56)),
        }
    }

    fn decode_slice(data: &[u8]) -> Result<Self, DecodeError> {
        let wrong = DecodeError::DataLength { found: data.len(), wanted: Self::BYTES };
        Ok(Self::decode(data.try_into().map_err(|_| wrong)?))
    }
}

/// Predictable Latency Mode Config of a set, feature 13h. The default is that of the specification:
/// disabled, no events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlmConfig {
    /// Whether the set is in Predictable Latency Mode.
    pub enabled: bool,
    /// The events of the set and their thresholds.
    pub thresholds: Thresholds,
}

/// A feature of the drive, or of one of its sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Predictable Latency Mode Config of a set (13h).
    PlmConfig(SetId),
    /// Predictable Latency Mode Window of a set (14h).
    PlmWindow(SetId),
    /// Asynchronous Event Configuration of the drive (0Bh).
    AsyncEvents,
}

impl Feature {
    /// Returns the feature identifier.
    pub const fn id(self) -> u8 {
        match self {
            Self::AsyncEvents => 0x0B,
            Self::PlmConfig(_) => 0x13,
            Self::PlmWindow(_) => 0x14,
        }
    }

    /// Decodes the feature of command dwords 10 and 11. A feature of the whole drive ignores dword
    /// 11.
    fn decode(dword10: u32, dword11: u32) -> Result<Self, DecodeError> {
        let of_set: fn(SetId) -> Self = match (dword10 & ID) as u8 {
            0x0B => return Ok(Self::AsyncEvents),
            0x13 => Self::PlmConfig,
            0x14 => Self::PlmWindow,
            found => return Err(DecodeError::FeatureId { found }),
        };
        refuse_reserved(11, dword11, SET)?;
        SetId::try_from((dword11 & SET) as u16).map(of_set)
    }
}

/// A feature with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Predictable Latency Mode Config (13h).
    PlmConfig {
        /// The set.
        set: SetId,
        /// The new configuration.
        config: PlmConfig,
    },
    /// Predictable Latency Mode Window (14h).
    PlmWindow {
        /// The set.
        set: SetId,
        /// The selected window.
        window: WindowSelect,
    },
    /// Asynchronous Event Configuration (0Bh).
    AsyncEvents(AsyncEventConfig),
}

impl Setting {
    /// Returns the feature.
    pub const fn feature(&self) -> Feature {
        match self {
            Self::PlmConfig { set, .. } => Feature::PlmConfig(*set),
            Self::PlmWindow { set, .. } => Feature::PlmWindow(*set),
            Self::AsyncEvents(_) => Feature::AsyncEvents,
        }
    }

    /// Returns dword 0 of the completion of Get Features.
    pub fn dword0(&self) -> u32 {
        match self {
            Self::PlmConfig { config, .. } => u32::from(config.enabled),
            Self::PlmWindow { window, .. } => u32::from(window.code()),
            Self::AsyncEvents(config) => config.bits,
        }
    }

    /// Returns the data of Set Features or Get Features; `None` for a feature without data.
    pub fn data(&self) -> Option<[u8; Thresholds::BYTES]> {
        match self {
            Self::PlmConfig { config, .. } => Some(config.thresholds.encode()),
            Self::PlmWindow { .. } | Self::AsyncEvents(_) => None,
        }
    }

    /// Decodes the value returned by Get Features. Reserved bits of the completion are ignored, as
    /// is the data of a feature without data.
    ///
    /// # Errors
    /// Returns an error if the data of 13h is not 512 bytes long, or if the window is reserved.
    pub fn from_completion(
        feature: Feature,
        dword0: u32,
        data: &[u8],
    ) -> Result<Self, DecodeError> {
        Ok(match feature {
            Feature::PlmConfig(set) => {
                let thresholds = Thresholds::decode_slice(data)?;
                Self::PlmConfig { set, config: PlmConfig { enabled: dword0 & 1 != 0, thresholds } }
            }
            Feature::PlmWindow(set) => {
                Self::PlmWindow { set, window: WindowSelect::try_from((dword0 & 0b111) as u8)? }
            }
            Feature::AsyncEvents => Self::AsyncEvents(AsyncEventConfig { bits: dword0 }),
        })
    }
}

/// The Set Features command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetFeatures {
    /// The feature and its new value.
    pub setting: Setting,
    /// Whether the value persists across a reset.
    pub save: bool,
}

impl SetFeatures {
    /// The opcode of Set Features.
    pub const OPCODE: u8 = 0x09;

    /// Returns command dwords 10 to 12. The data of the command is [`Setting::data`].
    pub fn dwords(&self) -> [u32; 3] {
        let feature = self.setting.feature();
        let dword10 = u32::from(feature.id()) | if self.save { SAVE } else { 0 };
        let value = self.setting.dword0();
        match feature {
            Feature::PlmConfig(set) | Feature::PlmWindow(set) => {
                [dword10, u32::from(set.get()), value]
            }
            Feature::AsyncEvents => [dword10, value, 0],
        }
    }

    /// Decodes the command from dwords 10 to 12 and its data. Reserved bytes of the data are
    /// ignored, as is the data of a feature without data.
    ///
    /// # Errors
    /// Returns an error if the feature is unknown, the set is 0, the window is neither 1 nor 2,
    /// reserved bits of a dword are set, or the data of 13h is not 512 bytes long.
    pub fn decode(dwords: [u32; 3], data: &[u8]) -> Result<Self, DecodeError> {
        let [dword10, dword11, dword12] = dwords;
        let feature = Feature::decode(dword10, dword11)?;
        refuse_reserved(10, dword10, SAVE | ID)?;
        let (value, defined) = match feature {
            Feature::PlmConfig(_) => (dword12, 0b1),
            Feature::PlmWindow(_) => (dword12, 0b111),
            Feature::AsyncEvents => (dword11, 0),
        };
        refuse_reserved(12, dword12, defined)?;
        let setting = Setting::from_completion(feature, value, data)?;
        Ok(Self { setting, save: dword10 & SAVE != 0 })
    }
}

/// The value that Get Features requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Select {
    /// The current value.
    #[default]
    Current = 0,
    /// The factory default.
    Default = 1,
    /// The value that a reset restores.
    Saved = 2,
    /// The capabilities of the feature instead of a value. Bits of dword 0: 0 saveable, 1 namespace
    /// specific, 2 changeable.
    Supported = 3,
}

/// The Get Features command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetFeatures {
    /// The feature.
    pub feature: Feature,
    /// The requested value.
    pub select: Select,
}

impl GetFeatures {
    /// The opcode of Get Features.
    pub const OPCODE: u8 = 0x0A;

    /// Returns command dwords 10 and 11.
    pub fn dwords(self) -> [u32; 2] {
        let dword10 = u32::from(self.feature.id()) | ((self.select as u32) << 8);
        let dword11 = match self.feature {
            Feature::PlmConfig(set) | Feature::PlmWindow(set) => u32::from(set.get()),
            Feature::AsyncEvents => 0,
        };
        [dword10, dword11]
    }

    /// Decodes the command from dwords 10 and 11.
    ///
    /// # Errors
    /// Returns an error if the feature is unknown, the set is 0, the select is reserved, or
    /// reserved bits are set.
    pub fn decode(dwords: [u32; 2]) -> Result<Self, DecodeError> {
        let [dword10, dword11] = dwords;
        let feature = Feature::decode(dword10, dword11)?;
        refuse_reserved(10, dword10, (0b111 << 8) | ID)?;
        let select = match ((dword10 >> 8) & 0b111) as u8 {
            0 => Select::Current,
            1 => Select::Default,
            2 => Select::Saved,
            3 => Select::Supported,
            found => return Err(DecodeError::Select { found }),
        };
        Ok(Self { feature, select })
    }
}

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
