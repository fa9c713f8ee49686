//! Reads of a file that need no runtime.

use std::fs::File;
use std::io;
use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use super::op::{Op, What};
use crate::{Mutex, PageImage};

/// The alignment of buffers: a page of memory. A buffer across two pages takes a drive longer
/// (decision 40).
const ALIGNMENT: usize = 4096;

/// The maximum number of buffers kept for later reads. As many are kept as threads use
/// concurrently; each has the size of one read.
const MOST_KEPT: usize = 64;

/// A pool of buffers for reads of one size. Clones share the pool.
#[derive(Clone, Default)]
pub struct ReadBuffers(Arc<Mutex<Vec<PageImage>>>);

impl ReadBuffers {
    /// Returns a buffer of `bytes` bytes, with the contents of an earlier read.
    fn take(&self, bytes: usize) -> PageImage {
        let kept = self.0.lock().pop().filter(|kept| kept.bytes().len() == bytes);
        kept.unwrap_or_else(|| PageImage::zeroed(bytes, ALIGNMENT))
    }

    fn give_back(&self, mut buffer: PageImage) {
        if buffer.bytes_mut().is_none() {
            return; // The buffer is shared.
        }
        let mut kept = self.0.lock();
        if kept.len() < MOST_KEPT {
            kept.push(buffer);
        }
    }
}

/// A read of a file that can be performed on any thread, without the runtime.
pub struct FileRead {
    file: Arc<File>,
    offset: u64,
    bytes: usize,
    buffers: ReadBuffers,
}

/// The bytes of a read. Copy them if they are needed for long, because the buffer is reused.
pub struct ReadBytes {
    image: PageImage,
    buffers: ReadBuffers,
}

impl FileRead {
    /// Creates a read of `bytes` bytes from `offset` on.
    pub fn new(file: &Arc<File>, offset: u64, bytes: usize, buffers: &ReadBuffers) -> Self {
        Self { file: Arc::clone(file), offset, bytes, buffers: buffers.clone() }
    }

    /// Performs the read, and blocks until it ends.
    ///
    /// # Errors
    /// Returns the system's error; `UnexpectedEof` if the file is too short.
    pub fn perform(self) -> io::Result<ReadBytes> {
        let Self { file, offset, bytes, buffers } = self;
        let buffer = buffers.take(bytes);
        let mut op = Op { file, what: What::Read, offset, buffer, done: 0 };
        let result = op.perform();
        let read = ReadBytes { image: op.buffer, buffers };
        if result? < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
    }
}

impl Deref for ReadBytes {
    type Target = PageImage;

    fn deref(&self) -> &PageImage {
        &self.image
    }
}

impl Drop for ReadBytes {
    fn drop(&mut self) {
        self.buffers.give_back(mem::replace(&mut self.image, PageImage::new(&[])));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn a_read_gives_what_is_there_and_its_buffer_is_used_again() {
        let memory = memfd_create(c"reads", MemfdFlags::CLOEXEC).expect("a file in memory");
        let mut file = File::from(memory);
        file.write_all(&[1, 2, 3, 4, 5]).expect("it takes bytes");
        let (file, buffers) = (Arc::new(file), ReadBuffers::default());
        let read = |offset, bytes| FileRead::new(&file, offset, bytes, &buffers).perform();
        let first = read(1, 2).expect("they are there");
        assert_eq!((first.bytes(), buffers.0.lock().len()), (&[2, 3][..], 0));
        let kept = first.clone();
        drop(first);
        assert_eq!(buffers.0.lock().len(), 0, "who shares a buffer would see it change");
        drop(kept);
        drop(read(3, 2).expect("they are there"));
        assert_eq!(buffers.0.lock().len(), 1);
        assert!(read(4, 2).is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof));
        assert_eq!(buffers.0.lock().len(), 1, "one is enough for one thread");
        let four = read(0, 4).expect("they are there");
        assert_eq!(four.bytes(), [1, 2, 3, 4]);
        assert!(four.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
    }
}
