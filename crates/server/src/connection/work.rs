//! Work of a connection that is active: its buffers, of input not executed yet and of replies not
//! sent yet, and the execution of a batch of commands.

use std::ops::Range;

use tokio::sync::SemaphorePermit;

use crate::clock::Stopwatch;
use crate::commands;
use crate::commands::command::Spec;
use crate::commands::session::Session;
use crate::fault::Fault;
use crate::limits::MAX_ARGUMENT_BYTES;
use crate::resp::{Command, Decoder, Limits, Protocol, Reply};
use crate::state::State;
use crate::statistics::Class;

/// Maximum number of commands executed before their replies are sent.
const BATCH: usize = 256;
/// Length of replies, in bytes, at which a batch ends.
pub(super) const BATCH_BYTES: usize = 256 << 10;
/// Bytes per read of the socket.
pub(super) const READ: usize = 16 << 10;
/// Capacity in bytes above which an empty input buffer is freed. Also the most that an
/// unauthenticated client may send ahead of reading its replies, and the memory above which a
/// command waits for a reservation of its own.
pub(super) const KEPT: usize = 64 << 10;

/// The thread on which a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A thread that also serves other connections, which wait until the command ends.
    Near,
    /// A thread of its own: a spare thread takes over the other connections.
    Far,
}

/// The next step of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The input may contain more commands, or a command waits to run.
    Batch,
    Read,
    /// Close after the replies are sent.
    End,
    /// Close after the client has read the reason; the client may still be sending.
    Dismissal,
    /// Close now.
    Over,
}

/// Buffers of an active connection.
pub(super) struct Work {
    input: Vec<u8>,
    /// Length of the executed part at the front of `input`. It is removed only now and then, and
    /// not after each batch, because a long pipeline may follow it.
    done: usize,
    decoder: Decoder,
    /// A command that waits for memory or for its turn in the store.
    next: Option<Command>,
    /// The kind of turn that `next` waits for.
    pub waits_for: Option<Place>,
    pub reply: Reply,
    /// Ranges in `reply` of the replies to commands that wrote.
    pub written: Vec<Range<usize>>,
    /// Class and duration in microseconds of the commands whose writes are not durable yet.
    pending: Vec<(Class, u64)>,
    pub began: Stopwatch,
    /// Replies to send, of which the first `sent` bytes are sent.
    outgoing: Vec<u8>,
    sent: usize,
}

impl Work {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            input: Vec::new(),
            done: 0,
            decoder: Decoder::default(),
            next: None,
            waits_for: None,
            reply: Reply::new(protocol),
            written: Vec::new(),
            pending: Vec::new(),
            began: Stopwatch::start(),
            outgoing: Vec::new(),
            sent: 0,
        }
    }

    /// Returns the memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let next = self.next.as_ref().map_or(0, Command::held_bytes);
        let replies = self.reply.held_bytes() + self.outgoing.capacity();
        self.input.capacity() + self.decoder.held_bytes() + next + replies
    }

    /// Returns the memory that the waiting command needs to run, in bytes.
    pub(super) fn wanted_by_next(&self) -> usize {
        self.next.as_ref().map_or(0, taken_by)
    }

    /// Returns the bytes of input that are not executed yet.
    pub(super) fn unanswered(&self) -> usize {
        self.input.len() - self.done
    }

    /// Returns the peak of memory held, in bytes, while the buffers grow for the next read; 0 if
    /// they need not grow.
    pub(super) fn growth(&self) -> usize {
        let (input, decoder) = (self.input_wanted(), self.decoder.growth(READ));
        let input = if self.input.capacity() >= input { 0 } else { input };
        if input + decoder == 0 { 0 } else { self.bytes() + input + decoder }
    }

    /// Grows the buffers for the next read, in small increments because the old buffer exists until
    /// it is copied.
    pub(super) fn grow(&mut self) {
        let wanted = self.input_wanted();
        self.input.reserve_exact(wanted - self.input.len());
        self.decoder.grow(READ);
    }

    fn input_wanted(&self) -> usize {
        let len = self.input.len();
        let has_room = self.input.capacity() >= len + READ;
        if has_room { self.input.capacity() } else { len + READ.max(len / 4) }
    }

    pub(super) fn take_in(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Removes the executed input once it is a quarter of the buffer: at most three bytes are moved
    /// per byte removed.
    fn take_off_done(&mut self) {
        self.done += self.decoder.take_done();
        if 4 * self.done >= self.input.len() {
            self.input.drain(..self.done);
            self.done = 0;
        }
    }

    /// Appends an error that belongs to no command.
    pub(super) fn say(&mut self, state: &State, fault: &Fault) {
        self.reply.error(fault.message());
        state.statistics.count_fault(fault);
    }

    /// Moves the replies to the outgoing buffer and returns their length in bytes.
    pub(super) fn queue(&mut self) -> usize {
        let said = self.reply.take();
        let len = said.len();
        if self.unsent().is_empty() {
            self.outgoing = said;
        } else {
            self.outgoing.drain(..self.sent);
            self.outgoing.extend_from_slice(&said);
        }
        self.sent = 0;
        len
    }

    pub(super) fn unsent(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    pub(super) fn has_sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Frees the empty buffers, but keeps a small input buffer. Returns whether no input and no
    /// reply is left.
    pub(super) fn give_back(&mut self) -> bool {
        if self.unsent().is_empty() {
            (self.outgoing, self.sent) = (Vec::new(), 0);
        }
        if self.input.is_empty() && self.input.capacity() > KEPT {
            self.input = Vec::new();
        }
        self.input.is_empty() && self.outgoing.is_empty()
    }

    /// Discards the input.
    pub(super) fn forget_input(&mut self) {
        (self.input, self.done) = (Vec::new(), 0);
        (self.decoder, self.next) = (Decoder::default(), None);
    }

    /// Records the durations of the writes and, if the commit failed, replaces their replies by the
    /// error.
    pub(super) fn commit(&mut self, state: &State, committed: Result<(), Fault>) {
        let micros = self.began.micros();
        for (class, _) in self.pending.drain(..) {
            state.statistics.took(class, micros);
        }
        if let Err(fault) = committed {
            let (said, protocol) = (self.reply.take(), self.reply.protocol);
            let (mut reply, mut at) = (Reply::new(protocol), 0);
            for written in &self.written {
                reply.append(&said[at..written.start]);
                reply.error(fault.message());
                state.statistics.count_fault(&fault);
                at = written.end;
            }
            reply.append(&said[at..]);
            self.reply = reply;
        }
        self.written.clear();
    }
}

/// Returns the memory that a command needs while it runs, in bytes: the list of its arguments, and
/// their copies.
fn taken_by(command: &Command) -> usize {
    let (count, bytes) = command.size();
    count * size_of::<&[u8]>() + bytes
}

/// Executes commands until a batch is complete.
///
/// Takes a turn in the store only when a command needs the store. If no turn is free, the command
/// waits for one without holding the thread, so that commands that need no store always find a
/// thread. A command that exceeds the step budget is run again, alone and on a thread of its own,
/// once a turn for that is free.
pub(super) fn carry_out<'a>(
    state: &'a State,
    session: &mut Session,
    work: &mut Work,
    mut turn: Option<SemaphorePermit<'a>>,
    place: Place,
) -> Next {
    let access = state.database.access();
    session.client.has_spoken(access.now);
    let mut next = Next::Batch;
    for _ in 0..if place == Place::Far { 1 } else { BATCH } {
        if work.reply.len() >= BATCH_BYTES {
            break;
        }
        let limits = if session.is_authenticated {
            Limits { argument_bytes: MAX_ARGUMENT_BYTES, ..Limits::default() }
        } else {
            Limits::STRANGER
        };
        let waited = work.next.take();
        let has_room = waited.is_some();
        let command = match waited
            .map_or_else(|| work.decoder.next(&work.input[work.done..], &limits), |c| Ok(Some(c)))
        {
            Ok(Some(command)) if !has_room && taken_by(&command) > KEPT => {
                // The command runs once its memory is reserved. The commands before it get their
                // replies first.
                work.next = Some(command);
                return Next::Batch;
            }
            Ok(Some(command)) => command,
            Ok(None) => {
                next = Next::Read;
                break;
            }
            Err(error) => {
                work.say(state, &Fault::error(error));
                next = Next::End;
                break;
            }
        };
        let arguments = command.arguments(&work.input[work.done..]);
        if turn.is_none() && commands::needs_store(session, arguments[0]) {
            turn = state.in_store.try_acquire().ok();
            if turn.is_none() {
                (work.next, work.waits_for) = (Some(command), Some(Place::Near));
                return Next::Batch;
            }
        }
        let (begin, watch) = (work.reply.len(), Stopwatch::start());
        access.has_written.set(false);
        access.steps.begin(place == Place::Far);
        let spec = commands::run(state, session, &access, &arguments, &mut work.reply);
        if access.steps.are_cut_short() {
            assert!(!access.has_written.get(), "a command is run again that has written");
            (work.next, work.waits_for) = (Some(command), Some(Place::Far));
            return Next::Batch;
        }
        let micros = watch.micros();
        let class = spec.map_or(Class::Other, Spec::class);
        if access.has_written.get() && state.database.is_deferred() {
            work.written.push(begin..work.reply.len());
            work.pending.push((class, micros));
        } else {
            state.statistics.took(class, micros);
        }
        if micros >= state.options.slow_us {
            let (now_s, most) = (access.now / 1_000, state.options.slow_kept);
            state.slowlog.keep(now_s, micros, &arguments, session.client.address(), most);
        }
        if session.is_over {
            next = Next::End;
            break;
        }
    }
    work.take_off_done();
    next
}
