//! One set: maps commands on blocks to operations on a file.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use block::nvme::SetId;
use block::{BLOCK_BYTES, Block, DeviceError, Force};
use runtime::{FileRead, Handle, IoClass, PageImage, ReadBuffers, Room};

use crate::error::{FileError, is_unknown, of_room};
use crate::holes::Data;
use crate::options::Discards;
use crate::passthrough::Passthrough;
use crate::plm::Plm;
use crate::room::Rooms;
use crate::trouble::{Doing, Failure, Trouble, Troubles, as_device_error};
use crate::waiting::{AGAIN, OneWaits};

/// Longer writes are split into pieces, written one after the other: a drive with a megabyte to
/// write delays reads several times longer than a drive with one piece to write. Measured: the 99th
/// percentile of reads is 0.55 ms next to writes of 1 MiB, 0.13 ms next to the same bytes in these
/// pieces.
const PIECE_BYTES: usize = 128 << 10;

/// A read that touches one more memory page takes longer: 3 us of 50 us for a 4 KiB read on the
/// drive of decision 40.
const MEMORY_PAGE_BYTES: usize = 4096;
/// Reads of at least this many blocks use buffers aligned to a memory page.
const LONG_READ_BLOCKS: u32 = 8;

/// A set of a device.
pub(crate) struct Set {
    pub(crate) id: SetId,
    pub(crate) blocks: u64,
    /// The number of blocks that the file really has.
    pub(crate) there: u64,
    pub(crate) path: PathBuf,
    /// `None` if the file is missing or could not be opened.
    pub(crate) file: Option<Arc<File>>,
    /// Whether I/O bypasses the page cache.
    pub(crate) is_direct: bool,
    /// Required alignment of buffer addresses, in bytes.
    pub(crate) alignment: usize,
    /// Buffers for callers that execute reads by themselves.
    pub(crate) read_buffers: ReadBuffers,
    /// The current way to discard. A way that the file system does not support is not tried again.
    pub(crate) discards: Cell<Discards>,
    /// The allocated parts of the file; `None` if all of it is allocated.
    pub(crate) rooms: Option<Rooms>,
    /// The data ranges of a file that is not written to; `None` if unknown.
    pub(crate) data: Option<Data>,
    /// Whether writes are refused: the set was opened read-only, or a sync failed. After a failed
    /// sync the operating system may have dropped any of the unsynced writes.
    pub(crate) is_read_only: Cell<bool>,
    /// The windows of the set, once they were looked for and found.
    pub(crate) plm: RefCell<Option<Plm<Passthrough>>>,
    pub(crate) handle: Handle,
    pub(crate) troubles: Rc<Troubles>,
}

/// A range of blocks, in bytes of the file.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    bytes: u64,
}

impl Range {
    fn of(first: u64, blocks: u64) -> Self {
        Self { offset: first * u64::from(BLOCK_BYTES), bytes: blocks * u64::from(BLOCK_BYTES) }
    }

    fn all(self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// Returns all bytes of the blocks, as stored on the medium, with trailing zeros written out.
fn bytes_of(blocks: &[Block], alignment: usize) -> PageImage {
    let mut image = PageImage::zeroed(blocks.len() * BLOCK_BYTES as usize, alignment);
    let bytes = image.bytes_mut().expect("nobody shares a new page");
    for (place, block) in bytes.chunks_mut(BLOCK_BYTES as usize).zip(blocks) {
        place[..block.bytes().len()].copy_from_slice(block.bytes());
    }
    image
}

impl Set {
    fn check(&self, first: u64, blocks: u64) -> Result<(&Arc<File>, Range), DeviceError> {
        if first.checked_add(blocks).is_none_or(|end| end > self.blocks) {
            let capacity = self.blocks;
            return Err(DeviceError::OutOfRange { set: self.id, first, blocks, capacity });
        }
        let file = self.file.as_ref().ok_or(DeviceError::Gone(self.id))?;
        Ok((file, Range::of(first, blocks)))
    }

    fn takes_writes(&self, first: u64, blocks: u64) -> Result<(&Arc<File>, Range), DeviceError> {
        let found = self.check(first, blocks)?;
        if self.is_read_only.get() { Err(DeviceError::ReadOnly(self.id)) } else { Ok(found) }
    }

    /// Records a failure and converts it to a device error.
    fn failed(&self, failure: &Failure, doing: Doing, range: Range) -> DeviceError {
        let Range { offset, bytes } = range;
        let what = format!("{doing}: {failure}");
        self.troubles.note(Trouble { path: self.path.clone(), offset, bytes, what });
        as_device_error(failure, doing, self.id, offset / u64::from(BLOCK_BYTES))
    }

    /// Converts the result of a transfer; a short transfer is an error.
    fn whole(
        &self,
        result: io::Result<usize>,
        doing: Doing,
        range: Range,
    ) -> Result<(), DeviceError> {
        let failure = match result {
            Ok(bytes) if bytes as u64 == range.bytes => return Ok(()),
            Ok(bytes) if doing == Doing::Writing => Failure::CutShort(bytes as u64),
            Ok(bytes) => Failure::Ended(bytes as u64),
            Err(error) => Failure::System(error),
        };
        Err(self.failed(&failure, doing, range))
    }

    pub(crate) fn read(
        self: &Rc<Self>,
        first: u64,
        blocks: u32,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let read = self.check(first, blocks.into()).and_then(|(file, range)| {
            if !self.is_there(range) {
                return Err(self.failed(&Failure::Ended(0), Doing::Reading, range));
            }
            if self.is_hole(range) {
                return Ok(None);
            }
            // A short read may stay cached in memory, where the larger alignment would waste a page
            // per buffer.
            let least = if blocks < LONG_READ_BLOCKS { 1 } else { MEMORY_PAGE_BYTES };
            let buffer = PageImage::zeroed(range.bytes as usize, self.alignment.max(least));
            Ok(Some((self.handle.read_at(file, range.offset, buffer), range)))
        });
        let set = Rc::clone(self);
        async move {
            let Some((read, range)) = read? else {
                return Ok(vec![Block::ZERO; blocks as usize]);
            };
            let (result, buffer) = read.await;
            set.whole(result, Doing::Reading, range)?;
            Ok(Block::all_of(&buffer).collect())
        }
    }

    /// Returns the read of existing blocks, for a caller that executes it without the set.
    pub(crate) fn file_read(&self, first: u64, blocks: u32) -> Option<FileRead> {
        let (file, range) = self.check(first, blocks.into()).ok()?;
        (self.is_there(range) && !self.is_hole(range))
            .then(|| FileRead::new(file, range.offset, range.bytes as usize, &self.read_buffers))
    }

    /// Whether the file contains the whole range. It may be shorter than the set: see `there`.
    fn is_there(&self, range: Range) -> bool {
        range.all().end <= self.there * u64::from(BLOCK_BYTES)
    }

    fn is_hole(&self, range: Range) -> bool {
        self.data.as_ref().is_some_and(|data| data.is_hole(&range.all()))
    }

    pub(crate) fn write(
        self: &Rc<Self>,
        first: u64,
        blocks: &[Block],
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let written = self.takes_writes(first, blocks.len() as u64).map(|(file, range)| {
            let bytes = bytes_of(blocks, self.alignment.max(MEMORY_PAGE_BYTES));
            let (set, file) = (Rc::clone(self), Arc::clone(file));
            // Boxed, because each future that contains it would otherwise be several times as
            // large.
            Box::pin(self.begin_writing(set, file, range, bytes, (class, force)))
        });
        async move { written?.await }
    }

    /// Allocates a part of the file. If the disk has too little space for the part, allocates only
    /// the `written` bytes.
    async fn give_room_or_less(
        &self,
        file: &Arc<File>,
        part: std::ops::Range<u64>,
        written: std::ops::Range<u64>,
    ) -> Result<(), DeviceError> {
        match self.give_room(file, part).await {
            Err(DeviceError::NoSpace(_)) => self.give_room(file, written).await,
            given => given,
        }
    }

    /// Allocates a part of the file.
    async fn give_room(
        &self,
        file: &Arc<File>,
        part: std::ops::Range<u64>,
    ) -> Result<(), DeviceError> {
        let (offset, bytes) = (part.start, part.end - part.start);
        match self.handle.change_room(file, offset, bytes, Room::Give).await {
            Ok(()) => Ok(()),
            // The file gets its space as it is written.
            Err(error) if is_unknown(&error) => Ok(()),
            Err(error) => {
                self.rooms.iter().for_each(|rooms| rooms.forget(part.clone()));
                let failure = Failure::System(error);
                Err(self.failed(&failure, Doing::Writing, Range { offset, bytes }))
            }
        }
    }

    /// Implements [`crate::FileDevice::preallocate`].
    pub(crate) async fn preallocate(&self, bytes: u64) -> Result<(), FileError> {
        let (Some(file), Some(rooms)) = (&self.file, &self.rooms) else { return Ok(()) };
        let bytes = bytes.min(self.blocks * u64::from(BLOCK_BYTES));
        let Err(error) = self.handle.change_room(file, 0, bytes, Room::Give).await else {
            rooms.take_missing(0..bytes);
            return Ok(());
        };
        match of_room(&self.path, bytes, error) {
            FileError::System { error, .. } => {
                let what = format!("it gets its room as it is written: {error}");
                self.troubles.note(Trouble { path: self.path.clone(), offset: 0, bytes, what });
                Ok(())
            }
            full => Err(full),
        }
    }

    /// Returns when a write that found the disk full should be retried, if waiting is enabled.
    /// Otherwise returns the error.
    async fn until_room(
        &self,
        error: DeviceError,
        class: IoClass,
        waits: &mut Option<OneWaits>,
    ) -> Result<(), DeviceError> {
        let waiting = &self.troubles.waiting;
        if !matches!(error, DeviceError::NoSpace(_)) {
            return Err(error);
        }
        if !waiting.is_on.get() {
            waiting.has_refused.set(true);
            return Err(error);
        }
        waits.get_or_insert_with(|| waiting.begin(class));
        self.handle.sleep(AGAIN).await;
        Ok(())
    }

    /// Submits the first piece. A task writes the other pieces, or all pieces if space must be
    /// allocated first.
    fn begin_writing(
        &self,
        set: Rc<Self>,
        file: Arc<File>,
        range: Range,
        bytes: PageImage,
        (class, force): (IoClass, Force),
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let is_durable = force == Force::Unit;
        let length = bytes.bytes().len();
        let missing = self.rooms.as_ref().and_then(|rooms| rooms.take_missing(range.all()));
        let is_alone = missing.is_none() && length <= PIECE_BYTES;
        let write = move |set: &Self, file: &Arc<File>, at: usize| {
            let piece = bytes.slice(at..length.min(at + PIECE_BYTES));
            set.handle.write_at(file, range.offset + at as u64, piece, is_durable)
        };
        let mut begun = missing.is_none().then(|| write(self, &file, 0));
        let writes = async move {
            let mut waits = None;
            if let Some(missing) = missing {
                let less = range.all();
                while let Err(error) =
                    set.give_room_or_less(&file, missing.clone(), less.clone()).await
                {
                    set.until_room(error, class, &mut waits).await?;
                }
            }
            let mut at = 0;
            loop {
                let next = begun.take().unwrap_or_else(|| write(&set, &file, at));
                let (result, piece) = next.await;
                let (offset, bytes_now) = (range.offset + at as u64, piece.bytes().len());
                let written = Range { offset, bytes: bytes_now as u64 };
                if let Err(error) = set.whole(result, Doing::Writing, written) {
                    set.until_room(error, class, &mut waits).await?;
                    continue;
                }
                at += bytes_now;
                if at == length {
                    return Ok(());
                }
            }
        };
        // A single operation needs no task.
        let (alone, task) = if is_alone {
            (Some(writes), None)
        } else {
            (None, Some(self.handle.spawn("write in pieces", writes)))
        };
        async move {
            match (alone, task) {
                (Some(alone), _) => alone.await,
                (None, Some(task)) => task.await,
                (None, None) => unreachable!("it is one or the other"),
            }
        }
    }

    pub(crate) fn flush(self: &Rc<Self>) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let flush = self.takes_writes(0, 0).map(|(file, _)| self.handle.sync_data(file));
        let set = Rc::clone(self);
        async move {
            let Err(error) = flush?.await else { return Ok(()) };
            // The next flush would report success in spite of lost writes.
            set.is_read_only.set(true);
            let whole = Range::of(0, set.blocks);
            Err(set.failed(&Failure::System(error), Doing::Flushing, whole))
        }
    }

    pub(crate) fn discard(
        self: &Rc<Self>,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let task = self.takes_writes(first, blocks).map(|(file, range)| {
            let (set, file) = (Rc::clone(self), Arc::clone(file));
            self.handle.spawn("discard", async move { set.zero(&file, range).await })
        });
        async move { task?.await }
    }

    /// Makes a range read as zeros by the first supported way.
    async fn zero(&self, file: &Arc<File>, range: Range) -> Result<(), DeviceError> {
        let Range { offset, bytes } = range;
        if bytes == 0 {
            return Ok(());
        }
        loop {
            let way = self.discards.get();
            let room = match way {
                Discards::KeepRoom => Room::Zero,
                Discards::GiveBack => Room::Punch,
                Discards::WriteZeros => return self.write_zeros(file, range).await,
                Discards::Ignore => return Ok(()),
            };
            let Err(error) = self.handle.change_room(file, offset, bytes, room).await else {
                if let (Room::Punch, Some(rooms)) = (room, &self.rooms) {
                    rooms.forget(range.all());
                }
                return Ok(());
            };
            let is_unknown = is_unknown(&error);
            let next = match way {
                Discards::KeepRoom if is_unknown => Discards::GiveBack,
                Discards::GiveBack if is_unknown => Discards::WriteZeros,
                _ => return Err(self.failed(&Failure::System(error), Doing::Discarding, range)),
            };
            if self.discards.get() == way {
                self.discards.set(next);
            }
        }
    }

    async fn write_zeros(&self, file: &Arc<File>, range: Range) -> Result<(), DeviceError> {
        let zeros = PageImage::zeroed(PIECE_BYTES.min(range.bytes as usize), self.alignment);
        let mut at = 0;
        while at < range.bytes {
            let bytes = (range.bytes - at).min(PIECE_BYTES as u64);
            let piece = Range { offset: range.offset + at, bytes };
            let zeros = zeros.slice(0..bytes as usize);
            let (result, _) = self.handle.write_at(file, piece.offset, zeros, false).await;
            self.whole(result, Doing::Discarding, piece)?;
            at += bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_become_the_bytes_they_stand_for() {
        let blocks = [Block::ZERO, Block::new(b"short"), Block::new(&[7; 4096])];
        let image = bytes_of(&blocks, 512);
        assert!(image.bytes().as_ptr().addr().is_multiple_of(512));
        assert_eq!(image.bytes().len(), 3 * 4096);
        for (bytes, block) in image.bytes().chunks(4096).zip(&blocks) {
            assert_eq!(bytes, block.to_vec());
        }
    }
}
