//! The opcodes of the commands.
//!
//! The first four are from the NVMe Key Value Command Set, which has no iterators. Iterator
//! commands use the vendor-specific range; the two lowest bits of an opcode encode the direction of
//! the transfer, as the base specification requires. A key of up to 16 bytes is part of the command
//! itself.

/// Direction of the data transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// No data.
    None = 0b00,
    /// From the host to the drive.
    ToDrive = 0b01,
    /// From the drive to the host.
    ToHost = 0b10,
}

/// A command of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// Stores a value.
    Store = 0x01,
    /// Reads a value.
    Retrieve = 0x02,
    /// Removes a value.
    Delete = 0x10,
    /// Checks whether a value exists.
    Exist = 0x14,
    /// Takes a snapshot and opens an iterator on it; dword 0 of the completion is its handle.
    IteratorCreate = 0xC0,
    /// Closes an iterator.
    IteratorDestroy = 0xC4,
    /// Moves to the first pair at or after a key, and reads it.
    IteratorSeek = 0xC2,
    /// Reads the next pair.
    IteratorNext = 0xC6,
    /// Reads the next pairs, up to the requested number and the size of the buffer.
    IteratorNextMany = 0xCA,
}

impl Opcode {
    /// All commands.
    pub const ALL: [Self; 9] = [
        Self::Store,
        Self::Retrieve,
        Self::Delete,
        Self::Exist,
        Self::IteratorCreate,
        Self::IteratorDestroy,
        Self::IteratorSeek,
        Self::IteratorNext,
        Self::IteratorNextMany,
    ];

    /// Returns the opcode.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the direction of the data transfer, as encoded in the opcode.
    pub const fn transfer(self) -> Transfer {
        match self.code() & 0b11 {
            0b01 => Transfer::ToDrive,
            0b10 => Transfer::ToHost,
            _ => Transfer::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_the_direction_of_the_transfer() {
        for opcode in Opcode::ALL {
            let expected = match opcode {
                Opcode::Store => Transfer::ToDrive,
                Opcode::Retrieve
                | Opcode::IteratorSeek
                | Opcode::IteratorNext
                | Opcode::IteratorNextMany => Transfer::ToHost,
                Opcode::Delete
                | Opcode::Exist
                | Opcode::IteratorCreate
                | Opcode::IteratorDestroy => Transfer::None,
            };
            assert_eq!(opcode.transfer(), expected, "{opcode:?}");
            let is_ours = !matches!(opcode.code(), 0x01 | 0x02 | 0x10 | 0x14);
            assert_eq!(opcode.code() >= 0x80, is_ours, "{opcode:?}");
        }
    }
}
