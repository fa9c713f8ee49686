//! `io_uring`: operations go to the kernel through a queue in shared memory, and come back through another.
//!
//! One call to the system hands in what is queued and waits for what ends, so an operation by itself costs
//! as many calls as `pread` does. Operations are the ring's, with their buffers and files, until the kernel is
//! done with them; a ring that is dropped waits for that. It knows no thread: whoever has the runtime may use the
//! queues, and another may sleep in the ring meanwhile.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::op::{Op, What};

/// Operations that are handed to the kernel at a time.
const ENTRIES: u32 = 256;

/// Ends that the kernel keeps in the queue; beyond that it keeps them elsewhere.
const ENDS: u32 = 4096;

/// Stands for the bell among operations.
const BELL: u64 = u64::MAX;

/// What the executor sleeps in, and is woken by.
pub(crate) struct RingBell {
    ring: IoUring,
    /// Written to by whoever wakes; the ring watches it.
    event: OwnedFd,
}

/// An operation that the ring is done with: its token, itself, and what came of it.
pub(crate) type End = (u32, Op, Result<usize, Errno>);

/// The queues.
pub(crate) struct Ring {
    bell: Arc<RingBell>,
    /// Operations that the kernel has, or that are queued for it, by their tokens. The kernel reads and writes their
    /// bytes: nobody else touches them.
    flying: Vec<Option<Op>>,
    in_flight: usize,
    queued: u64,
    is_watching: bool,
}

impl RingBell {
    #[expect(clippy::host_endian_bytes, reason = "the kernel of this host reads the number")]
    pub(crate) fn wake(&self) {
        // Full is as good as written: the number is never read, only that it changes.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Hands what is queued to the kernel. Of two threads that do, one waits for the other.
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

/// What came of entering the kernel, where what only means "go on" is no error.
fn passing(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            // The time is over; a signal; no memory at the moment; too many ends wait to be taken.
            Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

impl Ring {
    /// A ring, if the kernel has one that does all that is needed.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_cqsize(ENDS).build(ENTRIES)?;
        let params = ring.params();
        // The last of these is what tells kernels that go on watching a bell (5.13).
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

    /// Operations that have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues an operation. It comes back from [`Self::ends`] with its token, which no other has meanwhile.
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
            // SAFETY: the submission queue is taken in this file only, each time for one statement in a method of
            // `&mut self`, so nobody else is in it. What the entry points to stays valid until its end: it
            // belongs to an operation in `flying` (see `entry_of`), or is the bell's, which lives as long as the ring.
            let pushed = unsafe { self.bell.ring.submission_shared().push(entry) };
            if pushed.is_ok() {
                return;
            }
            self.bell.submit();
        }
    }

    /// How often something was queued.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Takes what has ended, and what the kernel says of each.
    pub(crate) fn ends(&mut self, ends: &mut Vec<End>) {
        // SAFETY: this is the one place where the completion queue is taken, and `&mut self` says that nobody
        // else is in it.
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

    /// Has the ring look out for the bell until further notice. It ends where a thread does that began it.
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
                // The kernel may still write to the bytes: they stay where they are for good.
                std::mem::forget(std::mem::take(&mut self.flying));
                return;
            }
            self.ends(&mut ends);
        }
    }
}

/// The operation for the kernel, from where it got stuck. It points to the operation's file, which stays open, and
/// to the rest of its bytes, which stay where they are, as long as the operation is kept.
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
