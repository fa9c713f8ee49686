//! Access to the fields of structures and dwords.

use std::ops::Range;

use super::DecodeError;

/// Returns the bytes of the field at `range`, for `from_le_bytes`.
pub(super) fn field<const N: usize>(bytes: &[u8], range: Range<usize>) -> [u8; N] {
    bytes[range].try_into().expect("the range is as long as the field")
}

/// Returns an error if a command dword has bits outside `defined`.
pub(super) fn refuse_reserved(dword: u8, value: u32, defined: u32) -> Result<(), DecodeError> {
    match value & !defined {
        0 => Ok(()),
        bits => Err(DecodeError::ReservedBits { dword, bits }),
    }
}
