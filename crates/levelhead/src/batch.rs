//! Several writes at once.

use pages::{BatchOptions, BatchWrite, LogSync, Value};

/// Writes that are made at one instant, in the order in which they were added: [`Store::write`](crate::Store::write).
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
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `key` a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.writes.push((key.into(), Some(Value::from_bytes(value))));
    }

    /// Takes the value of `key` away, if it has one.
    pub fn delete(&mut self, key: &[u8]) {
        self.writes.push((key.into(), None));
    }

    /// Says that the batch makes room: what it deletes, or has deleted later, is more than what it puts. A store that is full takes it then, as it
    /// takes deletes; some of the room that other puts may not have is there for that. When that is used up, because it was not so, or because
    /// nothing that was deleted has been given back yet, the batch is refused as a put is.
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

    /// Writes in it.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Takes all writes out of it; it is as a new one.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.makes_room = false;
    }

    pub(crate) fn options(&self, sync: LogSync) -> BatchOptions {
        BatchOptions { sync: Some(sync), makes_room: self.makes_room }
    }

    /// Copies for the engine; the bytes of values are shared.
    pub(crate) fn to_writes(&self) -> Vec<BatchWrite> {
        self.writes.clone()
    }
}
