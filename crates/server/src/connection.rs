//! A connection: reads what a client sends, has it carried out, and sends what comes of it, in order.
//!
//! It reads on only when the replies to what it has read are on their way, so that a client that does not take them stalls nobody
//! but itself, and holds no more than one batch of them. While it has nothing to do it holds no buffer.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{SemaphorePermit, watch};

use crate::client::Client;
use crate::clock::Stopwatch;
use crate::commands::{self, Session};
use crate::fault::Fault;
use crate::resp::{Command, Decoder, Limits, Protocol, Reply};
use crate::state::State;
use crate::statistics::{Class, class_of};

/// The longest argument of a command. Longer ones than a store takes are told so; those beyond this end the connection.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 8 << 20;

/// Commands that are carried out before their replies are sent.
const BATCH: usize = 256;
/// Bytes of replies, likewise.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes of pairs that a command has fetched ahead while it runs: of strings and of collections, a range of each.
const RANGES_BYTES: usize = 2 * levelhead::Range::MOST_FETCHED_BYTES;
/// Bytes that are read at a time.
const READ: usize = 16 << 10;
/// A buffer that was longer once is given back when it is empty.
const KEPT: usize = 64 << 10;

/// How a connection has ended.
type Ended = Result<(), io::Error>;

/// Serves a client until it goes, or the server does.
pub(crate) async fn serve<S>(
    state: &Arc<State>,
    session: Session,
    stream: S,
    stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let client = Arc::clone(&session.client);
    let mut connection = Connection::new(state, session, stream);
    // How it ended, the client knows best.
    let _: Ended = connection.run(stop).await;
    // Nobody gets its memory before it has given it back.
    drop(connection);
    state.clients.leave(&client);
}

struct Connection<'a, S> {
    state: &'a Arc<State>,
    work: Option<Box<Work>>,
    session: Session,
    protocol: Protocol,
    stream: S,
}

/// What a connection holds while it has something to do.
struct Work {
    input: Vec<u8>,
    decoder: Decoder,
    /// A command that waits for the memory that it will take, or for its turn in the store.
    next: Option<Command>,
    /// What it waits for besides.
    waits_for: Option<Place>,
    reply: Reply,
    /// Replies to commands that wrote something.
    written: Vec<Range<usize>>,
    /// What those took that wait to be durable.
    pending: Vec<(Class, u64)>,
    began: Stopwatch,
}

impl Work {
    fn new(protocol: Protocol) -> Self {
        Self {
            input: Vec::new(),
            decoder: Decoder::default(),
            next: None,
            waits_for: None,
            reply: Reply::new(protocol),
            written: Vec::new(),
            pending: Vec::new(),
            began: Stopwatch::start(),
        }
    }

    fn bytes(&self) -> usize {
        let next = self.next.as_ref().map_or(0, Command::held_bytes);
        self.input.capacity() + self.decoder.held_bytes() + next + self.reply.held_bytes()
    }

    /// Bytes that it will hold at most while it makes room for what is read next; none if there is room.
    fn growth(&self) -> usize {
        let (input, decoder) = (self.input_wanted(), self.decoder.growth(READ));
        let input = if self.input.capacity() >= input { 0 } else { input };
        if input + decoder == 0 { 0 } else { self.bytes() + input + decoder }
    }

    /// Makes that room. Little by little: beside it stands what it had.
    fn grow(&mut self) {
        let wanted = self.input_wanted();
        self.input.reserve_exact(wanted - self.input.len());
        self.decoder.grow(READ);
    }

    fn input_wanted(&self) -> usize {
        let len = self.input.len();
        let has_room = self.input.capacity() >= len + READ;
        if has_room { self.input.capacity() } else { len + READ.max(len / 4) }
    }
}

/// Where a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On a thread that serves other connections too, which wait until it has ended.
    Near,
    /// On a thread of its own: a spare one takes over the other connections.
    Far,
}

/// What is to come after a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// There may be more commands in what was read, or one waits.
    Batch,
    Read,
    End,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, S> {
    fn new(state: &'a Arc<State>, session: Session, stream: S) -> Self {
        Self { state, work: None, session, protocol: Protocol::default(), stream }
    }

    async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Ended {
        loop {
            let is_there = self.read(&mut stop).await?;
            if !is_there {
                return self.farewell().await;
            }
            loop {
                let next = self.batch().await?;
                match next {
                    Next::Batch => {}
                    Next::Read => break,
                    Next::End => return self.farewell().await,
                }
            }
            if *stop.borrow() {
                return self.farewell().await;
            }
        }
    }

    /// Reads something. False if nothing more is to come.
    async fn read(&mut self, stop: &mut watch::Receiver<bool>) -> Result<bool, io::Error> {
        let client = Arc::clone(&self.session.client);
        if !self.grow().await {
            return Ok(false);
        }
        let mut asked_to_end = pin!(client.end.notified());
        let mut stopped = pin!(stop.wait_for(|is_over| *is_over));
        poll_fn(|context| {
            if asked_to_end.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(false));
            }
            // On the stack: an idle connection has no buffer.
            let mut buffer = [0; READ];
            let mut buffer = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer)? {
                Poll::Ready(()) => {
                    self.take_in(buffer.filled());
                    Poll::Ready(Ok(!buffer.filled().is_empty()))
                }
                Poll::Pending if stopped.as_mut().poll(context).is_ready() => {
                    Poll::Ready(Ok(false))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Makes room for what is read next, if a command has begun: what begins one is little.
    async fn grow(&mut self) -> bool {
        let Some(work) = &mut self.work else { return true };
        let growth = work.growth();
        if growth == 0 {
            return true;
        }
        let besides = self.session.bytes();
        let is_given = self.state.clients.room(&self.session.client, growth + besides, 0).await;
        if is_given {
            work.grow();
            self.state.clients.holds(&self.session.client, work.bytes() + besides);
        }
        is_given
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let protocol = self.protocol;
        let work = self.work.get_or_insert_with(|| Box::new(Work::new(protocol)));
        work.began = Stopwatch::start();
        work.input.extend_from_slice(bytes);
        self.state.statistics.bytes_in.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.state.clients.holds(&self.session.client, work.bytes() + self.session.bytes());
    }

    /// Carries out some commands, waits until what they wrote is durable, and sends the replies.
    async fn batch(&mut self) -> Result<Next, io::Error> {
        let Some(mut work) = self.work.take() else { return Ok(Next::Read) };
        let client = Arc::clone(&self.session.client);
        // The turn comes first: who waits for one has no room set aside. Whoever waits for either can be asked to end.
        let place = work.waits_for.take();
        let turn = if let Some(place) = place {
            let turn = turn_in_store(self.state, &client, place).await;
            if turn.is_none() {
                return Ok(Next::End);
            }
            turn
        } else {
            None
        };
        let bytes = work.bytes() + self.session.bytes() + work.next.as_ref().map_or(0, taken_by);
        let allowance = self.state.clients.allowance(2 * BATCH_BYTES + RANGES_BYTES);
        if !self.state.clients.room(&client, bytes, allowance).await {
            return Ok(Next::End);
        }
        let mut next = if place == Some(Place::Far) {
            let (state, session) = (self.state, &mut self.session);
            tokio::task::block_in_place(|| carry_out(state, session, &mut work, turn, Place::Far))
        } else {
            // Here, on the thread that serves: another one would cost more than the read that may be in it (decision 41).
            carry_out(self.state, &mut self.session, &mut work, turn, Place::Near)
        };
        self.state.clients.holds(&client, work.bytes() + self.session.bytes());
        if !work.written.is_empty() {
            let committed = self.state.commits.wait().await;
            work.commit(self.state, committed);
        }
        self.protocol = work.reply.protocol;
        if !work.reply.is_empty() {
            self.state.statistics.bytes_out.fetch_add(work.reply.len() as u64, Ordering::Relaxed);
            let replies = work.reply.take();
            // Whoever is asked to end need not take them.
            let mut sent = pin!(self.stream.write_all(&replies));
            let mut asked_to_end = pin!(client.end.notified());
            let is_sent = poll_fn(|context| match sent.as_mut().poll(context) {
                Poll::Pending if asked_to_end.as_mut().poll(context).is_ready() => {
                    Poll::Ready(Ok(false))
                }
                sent => sent.map_ok(|()| true),
            })
            .await?;
            if !is_sent {
                return Ok(Next::End);
            }
        }
        if next == Next::Read && work.input.len() > self.state.options.query_bytes {
            next = Next::End;
        }
        if work.input.is_empty() {
            if work.input.capacity() > KEPT {
                work.input = Vec::new();
            }
            // Buffers are given back whenever everything was answered: that costs less than looking whether more has come.
            if next == Next::Read {
                self.state.clients.holds(&client, self.session.bytes());
                return Ok(Next::Read);
            }
        }
        self.state.clients.holds(&client, work.bytes() + self.session.bytes());
        self.work = Some(work);
        Ok(next)
    }

    /// Sends what the stream still holds, and says that nothing more comes; nobody waits for that for long.
    async fn farewell(&mut self) -> Ended {
        self.work = None;
        self.session.transaction = None;
        // What it gave back others may have now, not when it has gone.
        self.state.clients.holds(&self.session.client, self.session.bytes());
        let closed = self.stream.shutdown();
        tokio::time::timeout(Duration::from_secs(1), closed).await.unwrap_or(Ok(()))
    }
}

impl Work {
    /// What was written is durable, or it is not known to be.
    fn commit(&mut self, state: &State, committed: Result<(), Fault>) {
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
                at = written.end;
            }
            reply.append(&said[at..]);
            self.reply = reply;
        }
        self.written.clear();
    }
}

/// Waits for a turn in the store; none for a client that is asked to end.
async fn turn_in_store<'a>(
    state: &'a State,
    client: &Client,
    place: Place,
) -> Option<SemaphorePermit<'a>> {
    let turns = if place == Place::Far { &state.far } else { &state.in_store };
    let mut turn = pin!(turns.acquire());
    let mut asked_to_end = pin!(client.end.notified());
    poll_fn(|context| match turn.as_mut().poll(context) {
        Poll::Ready(turn) => Poll::Ready(turn.ok()),
        Poll::Pending => asked_to_end.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Bytes that a command takes while it runs: its arguments in a list, and what becomes of them.
fn taken_by(command: &Command) -> usize {
    let (count, bytes) = command.size();
    count * size_of::<&[u8]>() + bytes
}

/// Carries out commands until there are enough of them for one batch.
///
/// As long as nothing needs the store it has no turn there. If all turns are taken a command waits for one without holding the thread, so that there
/// is a thread for what needs none. One that walks too far to be near is run again, alone, when there is a turn for it far from others.
fn carry_out<'a>(
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
        let command =
            match waited.map_or_else(|| work.decoder.next(&work.input, &limits), |c| Ok(Some(c))) {
                Ok(Some(command)) if !has_room && taken_by(&command) > KEPT => {
                    // It runs when there is room for what it takes; not now, with others in front of it that want their replies.
                    work.next = Some(command);
                    return Next::Batch;
                }
                Ok(Some(command)) => command,
                Ok(None) => {
                    next = Next::Read;
                    break;
                }
                Err(error) => {
                    work.reply.error(Fault::error(error).message());
                    next = Next::End;
                    break;
                }
            };
        let arguments = command.arguments(&work.input);
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
        let class = spec.map_or(Class::Other, |spec| class_of(spec.group, spec.is_write));
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
    let done = work.decoder.take_done();
    work.input.drain(..done);
    next
}
