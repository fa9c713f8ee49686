//! Atomic batches of writes.

use engine::{BatchOptions, BatchWrite, LogSync, Value};

/// Writes that take effect atomically, in the order in which they were added:
/// [`Store::write`](crate::Store::write).
///
/// ```
/// # fn main() -> Result<(), levelhead::Error> {
/// # let directory = std::env::temp_dir().join(format!("levelhead-batch-{}", std::process::id()));
/// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
/// let mut batch = levelhead::Batch::new();
/// batch.put(b"from", b"90");
/// batch.put(b"to", b"110");
/// batch.delete(b"order 17");
/// store.write(&batch)?;
/// # store.close()?;
/// # std::fs::remove_dir_all(&directory).expect("it is ours");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    writes: Vec<BatchWrite>,
    makes_room: bool,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.writes.push((key.into(), Some(Value::from_bytes(value))));
    }

    /// Deletes `key`, if it has a value.
    pub fn delete(&mut self, key: &[u8]) {
        self.writes.push((key.into(), None));
    }

    /// Declares that the batch frees space: its deletes, or later deletes that it enables, free
    /// more than its puts take. A full store then accepts the batch, as it accepts deletes; a part
    /// of the space that is withheld from other puts is reserved for such batches. When that
    /// reserve is used up, because the declaration was false or the deleted data has not been
    /// collected yet, the batch is refused like a put.
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # let directory = std::env::temp_dir().join(format!("levelhead-makes-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// # store.put(b"order 17", b"a teapot")?;
    /// let mut batch = levelhead::Batch::new();
    /// batch.delete(b"order 17");
    /// batch.put(b"orders", b"16");
    /// batch.makes_room();
    /// store.write(&batch)?;
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    pub fn makes_room(&mut self) {
        self.makes_room = true;
    }

    /// Returns the number of writes in the batch.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Removes all writes and resets [`Self::makes_room`].
    pub fn clear(&mut self) {
        self.writes.clear();
        self.makes_room = false;
    }

    pub(crate) fn options(&self, sync: LogSync) -> BatchOptions {
        BatchOptions { sync: Some(sync), makes_room: self.makes_room }
    }

    /// Copies the writes for the engine; the bytes of values are shared.
    pub(crate) fn to_writes(&self) -> Vec<BatchWrite> {
        self.writes.clone()
    }
}
