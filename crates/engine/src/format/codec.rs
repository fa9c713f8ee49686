//! Little-endian fields: the encoding of dumps, the WAL and the manifest.

/// Appends fields to a buffer.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a byte.
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number as four bytes.
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number as eight bytes.
    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a byte string, preceded by its length in four bytes.
    pub(crate) fn string(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }

    /// Returns the number of bytes written.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the encoded fields.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads fields from a byte slice. Each read returns `None` if too few bytes are left.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(head)
    }

    /// Reads a byte.
    pub(crate) fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Reads a four-byte number.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Reads an eight-byte number.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a counter. Returns `None` for a value of 2^63 or more, which no counter reaches.
    pub(crate) fn counter(&mut self) -> Option<u64> {
        self.u64().filter(|count| *count < 1 << 63)
    }

    /// Reads a byte string that is preceded by its length.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// Whether all bytes are read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }
}
