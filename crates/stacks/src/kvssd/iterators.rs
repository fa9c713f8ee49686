//! Iterator commands: Create, Seek, Next, Next-many, Destroy.
//!
//! Commands on one handle (`handles`) are executed one after the other. A reply has, for each pair,
//! eight bytes (key length, flags, value length), the key and the value.

use super::drive::{Inner, KvDrive};
use super::handles::IteratorHandle;
use super::iterator_table::{Batch, Pair, pair_of};
use super::status::Status;

impl KvDrive {
    /// Create: takes a snapshot and opens an iterator on it, up to the key `upper_bound`,
    /// exclusive.
    ///
    /// # Errors
    /// Returns [`Status::TooManyIterators`], [`Status::IteratorMemory`],
    /// [`Status::InvalidKeySize`].
    pub async fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<IteratorHandle, Status> {
        let inner = self.inner();
        upper_bound.map_or(Ok(()), |key| inner.check_key(key))?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(upper_bound.unwrap_or_default());
        inner.spend_command().await;
        let outcome = inner.open_iterator(upper_bound);
        inner.complete(0).await;
        outcome
    }

    /// Seek: moves to the first pair at or after `key`, and reads it.
    ///
    /// # Errors
    /// Returns [`Status::EndOfRange`] if no such pair exists; [`Status::AskAgain`] among deleted
    /// keys: continue with [`Self::next`].
    pub async fn seek(&self, handle: IteratorHandle, key: &[u8]) -> Result<Pair, Status> {
        self.inner().check_key(key)?;
        self.read_one(handle, Some(key)).await
    }

    /// Next: moves to the next pair, and reads it.
    ///
    /// # Errors
    /// Returns [`Status::EndOfRange`] at the end; [`Status::AskAgain`] among deleted keys.
    pub async fn next(&self, handle: IteratorHandle) -> Result<Pair, Status> {
        self.read_one(handle, None).await
    }

    /// Next-many: reads the next pairs, up to `count` and as many as fit a host buffer of
    /// `buffer_bytes`, but at least one. Their values are read in parallel.
    ///
    /// # Errors
    /// Returns [`Status::EndOfRange`] if no pair follows; [`Status::AskAgain`] among deleted keys.
    pub async fn next_many(
        &self,
        handle: IteratorHandle,
        count: u32,
        buffer_bytes: u64,
    ) -> Result<Batch, Status> {
        let inner = self.inner();
        let open = inner.iterators.get(handle)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(&[]);
        let _turn = open.turn.acquire(1).await;
        let mut state = open.take()?;
        inner.spend_command().await;
        let outcome = state.read_many(count.max(1), buffer_bytes).await;
        inner.iterators.give_back(handle, &open, state);
        let pairs = outcome.as_ref().map_or(&[][..], |batch| &batch.pairs);
        inner.complete(pairs.iter().map(Pair::reply_bytes).sum()).await;
        outcome
    }

    /// Destroy: closes an iterator and releases its resources.
    ///
    /// # Errors
    /// Returns [`Status::InvalidIterator`] if the handle is not open.
    pub async fn destroy_iterator(&self, handle: IteratorHandle) -> Result<(), Status> {
        let inner = self.inner();
        let _slot = inner.slots.acquire(1).await;
        inner.receive(&[]);
        inner.spend_command().await;
        let outcome = inner.iterators.remove(handle);
        inner.complete(0).await;
        outcome
    }

    /// Closes every iterator, as a controller reset does.
    pub fn reset_iterators(&self) {
        self.inner().iterators.clear();
    }

    async fn read_one(&self, handle: IteratorHandle, seek: Option<&[u8]>) -> Result<Pair, Status> {
        let inner = self.inner();
        let open = inner.iterators.get(handle)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(seek.unwrap_or_default());
        let _turn = open.turn.acquire(1).await;
        let mut state = open.take()?;
        let outcome = match (seek, state.left_over.take()) {
            (Some(key), _) => pair_of(state.iterator.seek(key, inner.command).await),
            (None, Some(left_over)) => {
                inner.spend_command().await;
                left_over
            }
            (None, None) => pair_of(state.iterator.next(0, inner.command).await),
        };
        inner.iterators.give_back(handle, &open, state);
        inner.complete(outcome.as_ref().map_or(0, Pair::reply_bytes)).await;
        outcome
    }
}

impl Inner {
    /// Opens an iterator. Without an await: it happens at one instant.
    fn open_iterator(&self, upper_bound: Option<&[u8]>) -> Result<IteratorHandle, Status> {
        if !self.iterators.has_room() {
            return Err(Status::TooManyIterators);
        }
        // Only an LSM-tree keeps keys in order.
        let engine = self.engine.lsm().ok_or(Status::InvalidOpcode)?;
        let iterator = engine.create_iterator(upper_bound)?;
        self.iterators.add(iterator).ok_or(Status::TooManyIterators)
    }
}
