//! The numbers of the commands.
//!
//! The first five are those of the NVMe Key Value Command Set. Iterators are not in it; they take
//! numbers from the vendor range whose two lowest bits tell the direction of the transfer, as the
//! base specification wants it. A key of up to 16 bytes travels in the command itself.

/// Which way data goes.
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
    /// Store a value.
    Store = 0x01,
    /// Read a value.
    Retrieve = 0x02,
    /// Remove a value.
    Delete = 0x10,
    /// Whether there is a value.
    Exist = 0x14,
    /// Take a snapshot and make an iterator of it; dword 0 of the completion is its handle.
    IteratorCreate = 0xC0,
    /// Give an iterator back.
    IteratorDestroy = 0xC4,
    /// Go to the first pair at or after a key, and read it.
    IteratorSeek = 0xC2,
    /// Read the next pair.
    IteratorNext = 0xC6,
    /// Read the next pairs, as many as asked for and the buffer holds.
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

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Which way its data goes, as the number tells.
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
