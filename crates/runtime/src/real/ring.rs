//! `io_uring`: operations go to the kernel through a queue in shared memory, and completions come
//! back through another.
//!
//! One system call submits the queued operations and waits for completions, so a single operation
//! costs as many calls as `pread`. The ring owns operations, with their buffers and files, until
//! the kernel has completed them; dropping the ring waits for that. The ring is not bound to a
//! thread: the thread that has the runtime may use the queues, while another one sleeps in the
//! ring.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::op::{Op, What};

/// Operations submitted to the kernel at a time.
const ENTRIES: u32 = 256;

/// Completions in the queue; the kernel keeps further ones elsewhere.
const ENDS: u32 = 4096;

/// The token of the bell among operations.
const BELL: u64 = u64::MAX;

/// The ring in which the executor sleeps, and the event that wakes it.
pub(crate) struct RingBell {
    ring: IoUring,
    /// Written to wake the executor; the ring polls it.
    event: OwnedFd,
}

/// An operation that the ring has completed: its token, the operation, and the result.
pub(crate) type End = (u32, Op, Result<usize, Errno>);

/// The queues.
pub(crate) struct Ring {
    bell: Arc<RingBell>,
    /// Operations that are queued or in the kernel, by token. The kernel reads and writes their
    /// bytes, and no other code accesses these.
    flying: Vec<Option<Op>>,
    in_flight: usize,
    queued: u64,
    is_watching: bool,
}

impl RingBell {
    #[expect(clippy::host_endian_bytes, reason = "the kernel of this host reads the number")]
    pub(crate) fn wake(&self) {
        // An event that is full also wakes: its value is never read.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Submits the queued operations to the kernel. Concurrent calls wait for each other.
    pub(crate) fn submit(&self) {
        if let Err(error) = passing(self.ring.submit()) {
            panic!("handing I/O to the kernel failed: {error}");
        }
    }

    pub(crate) fn wait(&self, longest: Option<Duration>) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let waited = match longest {
            None => submitter.submit_and_wait(1),
            Some(span) => {
                let span = Timespec::from(span);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&span))
            }
        };
        passing(waited)
    }
}

/// Converts the result of entering the kernel: codes that only mean "continue" are not errors.
fn passing(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            // Timed out; a signal; temporarily no memory; too many unread completions.
            Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

impl Ring {
    /// Creates a ring, if the kernel supports all that is needed.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_cqsize(ENDS).build(ENTRIES)?;
        let params = ring.params();
        // The last feature identifies kernels that support multishot polls of the bell (5.13).
        let has_features = params.is_feature_nodrop()
            && params.is_feature_ext_arg()
            && params.is_feature_resource_tagging();
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Fsync::CODE,
            opcode::Fallocate::CODE,
            opcode::PollAdd::CODE,
        ];
        if !has_features || !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's ring is too old"));
        }
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let bell = Arc::new(RingBell { ring, event });
        let mut this =
            Self { bell, flying: Vec::new(), in_flight: 0, queued: 0, is_watching: false };
        this.watch_bell();
        Ok(this)
    }

    pub(crate) fn bell(&self) -> Arc<RingBell> {
        Arc::clone(&self.bell)
    }

    /// Returns the number of operations that have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues an operation. [`Self::ends`] returns it with its token, which must be unique
    /// meanwhile.
    pub(crate) fn queue(&mut self, mut op: Op, token: u32) {
        let entry = entry_of(&mut op).user_data(token.into());
        let index = token as usize;
        if self.flying.len() <= index {
            self.flying.resize_with(index + 1, || None);
        }
        let before = self.flying[index].replace(op);
        assert!(before.is_none(), "two operations have the token {token}");
        self.in_flight += 1;
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        self.queued += 1;
        loop {
            // SAFETY: the submission queue is used in this file only, each time for one statement
            // in a method of `&mut self`, so no other code is in it. The data that the entry points
            // to stays valid until its end: it belongs to an operation in `flying` (see
            // `entry_of`), or is the bell's, which lives as long as the ring.
            let pushed = unsafe { self.bell.ring.submission_shared().push(entry) };
            if pushed.is_ok() {
                return;
            }
            self.bell.submit();
        }
    }

    /// Returns the number of entries queued so far.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Takes the completed operations, with the kernel's results.
    pub(crate) fn ends(&mut self, ends: &mut Vec<End>) {
        // SAFETY: the completion queue is used only here, and `&mut self` excludes other users.
        let queue = unsafe { self.bell.ring.completion_shared() };
        for end in queue {
            if end.user_data() != BELL {
                let token = end.user_data() as u32;
                let op =
                    self.flying[token as usize].take().expect("the kernel ends what it was given");
                self.in_flight -= 1;
                let came = match usize::try_from(end.result()) {
                    Ok(bytes) => Ok(bytes),
                    Err(_) => Err(Errno::from_raw_os_error(-end.result())),
                };
                ends.push((token, op, came));
            } else if !cqueue::more(end.flags()) {
                self.is_watching = false;
            }
        }
        if !self.is_watching {
            self.watch_bell();
        }
    }

    /// Lets the ring poll the bell until further notice. The poll ends when the thread that
    /// submitted it ends.
    fn watch_bell(&mut self) {
        const READABLE: u32 = 1;
        let event = Fd(self.bell.event.as_raw_fd());
        let watch = opcode::PollAdd::new(event, READABLE).multi(true).build().user_data(BELL);
        self.push(&watch);
        self.is_watching = true;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut ends = Vec::new();
        while self.in_flight > 0 {
            if self.bell.wait(None).is_err() {
                // The kernel may still write to the buffers, so they are leaked.
                std::mem::forget(std::mem::take(&mut self.flying));
                return;
            }
            self.ends(&mut ends);
        }
    }
}

/// Returns the kernel's entry for the rest of an operation. The entry points to the operation's
/// file, which stays open, and to the rest of its bytes, which stay in place, as long as the
/// operation is kept.
fn entry_of(op: &mut Op) -> squeue::Entry {
    let fd = Fd(op.file.as_raw_fd());
    let at = op.offset + op.done as u64;
    let rest = op.done..;
    match op.what {
        What::Read => {
            let bytes = &mut op.buffer.bytes_mut().expect("nobody shares what is read into")[rest];
            opcode::Read::new(fd, bytes.as_mut_ptr(), bytes.len() as u32).offset(at).build()
        }
        What::Write { is_durable } => {
            let bytes = &op.buffer.bytes()[rest];
            let flags = if is_durable { super::op::DURABLE.bits() } else { 0 };
            opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32)
                .offset(at)
                .rw_flags(flags.cast_signed())
                .build()
        }
        What::SyncData => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
        What::SyncAll => opcode::Fsync::new(fd).build(),
        What::Allocate { mode, bytes } => {
            let mode = mode.flags().bits().cast_signed();
            opcode::Fallocate::new(fd, bytes).offset(op.offset).mode(mode).build()
        }
    }
}
