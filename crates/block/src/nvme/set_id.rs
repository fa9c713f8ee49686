//! The identifier of an NVM set.

use std::fmt;
use std::num::NonZeroU16;

use super::DecodeError;

/// The identifier of an NVM set. The specification reserves 0, so 0 is not representable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SetId(NonZeroU16);

impl SetId {
    /// Returns the set with this number; `None` for 0.
    pub const fn new(number: u16) -> Option<Self> {
        match NonZeroU16::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl TryFrom<u16> for SetId {
    type Error = DecodeError;

    fn try_from(number: u16) -> Result<Self, DecodeError> {
        Self::new(number).ok_or(DecodeError::SetIdZero)
    }
}

impl From<SetId> for u16 {
    fn from(set: SetId) -> Self {
        set.get()
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
