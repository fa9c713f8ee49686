//! A connection: reads commands, executes them, and sends the replies in order.
//!
//! It reads and sends concurrently because many clients send a whole pipeline before they read the
//! first reply. While a batch of replies is unsent, no further command runs: a client that does not
//! read its replies delays only itself, and its replies do not accumulate. Its further input is
//! buffered up to `Options::query_bytes`, if there is memory that no other connection needs. Beyond
//! that nothing more is read. If the client then still reads no reply for a while, both sides wait
//! for each other; the connection gets an error and is closed (decision 54). An idle connection
//! holds no buffer.

mod work;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{SemaphorePermit, watch};

use crate::client::Client;
use crate::clock::Stopwatch;
use crate::commands::session::Session;
use crate::fault::Fault;
use crate::resp::Protocol;
use crate::state::State;
use work::{BATCH_BYTES, KEPT, Next, Place, READ, Work, carry_out};

/// Memory that a running command may use for prefetched pairs, in bytes: one range over strings and
/// one over collections.
const RANGES_BYTES: usize = 2 * levelhead::Range::MOST_FETCHED_BYTES;
/// How long a dismissed client has to read the error that explains why.
const LINGER: Duration = Duration::from_mins(1);

/// The result of a connection.
type Ended = Result<(), io::Error>;

/// Serves a client until it disconnects or the server stops.
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
    // An error is only of interest to the client, which sees it itself.
    let _: Ended = connection.run(stop).await;
    // The memory is freed before its reservation is released to other connections.
    drop(connection);
    state.clients.leave(&client);
}

struct Connection<'a, S> {
    state: &'a Arc<State>,
    work: Option<Box<Work>>,
    session: Session,
    protocol: Protocol,
    stream: S,
    /// Whether more input is read.
    reads: bool,
    /// Whether the stream may still buffer some of the data written to it.
    is_unflushed: bool,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, S> {
    fn new(state: &'a Arc<State>, session: Session, stream: S) -> Self {
        let protocol = Protocol::default();
        Self { state, work: None, session, protocol, stream, reads: true, is_unflushed: false }
    }

    async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Ended {
        let mut has_more = false;
        loop {
            self.settle(has_more);
            let may_go_on = has_more && self.unsent() == 0;
            let next = if may_go_on {
                self.batch().await?
            } else {
                self.wait(has_more, &mut stop).await?
            };
            has_more = next == Next::Batch;
            match next {
                Next::Batch => {}
                Next::Read => self.reads &= !(may_go_on && *stop.borrow()),
                Next::End => self.reads = false,
                Next::Dismissal => return self.dismiss(&mut stop).await,
                Next::Over => return self.farewell().await,
            }
        }
    }

    /// Returns the bytes of unsent replies.
    fn unsent(&self) -> usize {
        self.work.as_ref().map_or(0, |work| work.unsent().len())
    }

    /// Frees buffers that are not needed. Buffers are freed whenever everything is answered, which
    /// is cheaper than checking for more input.
    fn settle(&mut self, has_more: bool) {
        let Some(work) = &mut self.work else { return };
        if work.give_back() && !has_more {
            self.work = None;
        }
        self.count_bytes();
    }

    fn count_bytes(&self) {
        let work = self.work.as_ref().map_or(0, |work| work.bytes());
        self.state.clients.holds(&self.session.client, work + self.session.bytes());
    }

    /// Sends and reads until there is input to execute or all replies are sent.
    async fn wait(
        &mut self,
        has_more: bool,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Next, io::Error> {
        let may_read = self.reads && if has_more { self.grow_ahead() } else { self.grow().await };
        if self.reads && !may_read && !has_more {
            return Ok(Next::Over);
        }
        let as_before = if has_more { Next::Batch } else { Next::Read };
        let is_stuck = self.reads && !may_read;
        let patience = Duration::from_millis(self.state.options.patience_ms);
        let mut out_of_patience = is_stuck.then(|| Box::pin(tokio::time::sleep(patience)));
        let client = Arc::clone(&self.session.client);
        let mut asked_to_end = pin!(client.end.notified());
        let mut stopped = pin!(stop.wait_for(|is_over| *is_over));
        let next: Result<Next, io::Error> = poll_fn(|context| {
            let before = self.unsent();
            let is_sent = self.poll_send(context)?.is_ready();
            // A client that was asked to end does not get the remaining replies.
            if asked_to_end.as_mut().poll(context).is_ready()
                || (is_sent && !self.reads && !has_more)
            {
                return Poll::Ready(Ok(Next::Over));
            }
            if self.unsent() < before {
                return Poll::Ready(Ok(as_before));
            }
            if may_read && self.poll_read(context)?.is_ready() {
                return Poll::Ready(Ok(if self.reads { Next::Batch } else { as_before }));
            }
            if self.reads && stopped.as_mut().poll(context).is_ready() {
                self.reads = false;
                return Poll::Ready(Ok(as_before));
            }
            match &mut out_of_patience {
                Some(time) => time.as_mut().poll(context).map(|()| Ok(Next::Dismissal)),
                None => Poll::Pending,
            }
        })
        .await;
        if matches!(next, Ok(Next::Dismissal)) {
            self.say_that_it_is_stuck();
        }
        next
    }

    /// Reads some input, or notes the end of the input.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        // On the stack, so that an idle connection holds no buffer.
        let mut buffer = [0; READ];
        let mut buffer = ReadBuf::new(&mut buffer);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        match buffer.filled() {
            [] => self.reads = false,
            bytes => self.take_in(bytes),
        }
        Poll::Ready(Ok(()))
    }

    /// Sends as much as the socket accepts; ready once everything is sent.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        if let Some(work) = &mut self.work {
            while !work.unsent().is_empty() {
                let sent = ready!(Pin::new(&mut self.stream).poll_write(context, work.unsent()))?;
                if sent == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                work.has_sent(sent);
                self.is_unflushed = true;
            }
        }
        if self.is_unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Makes room for the next read in the middle of a command. The beginning of a command needs
    /// little room and no reservation.
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
            self.count_bytes();
        }
        is_given
    }

    /// Makes room to read ahead while replies are unsent. The amount is limited, and no other
    /// connection is ended for it.
    fn grow_ahead(&mut self) -> bool {
        let Some(work) = &mut self.work else { return true };
        let most = self.state.options.query_bytes;
        let most = if self.session.is_authenticated { most } else { most.min(KEPT) };
        if work.unanswered() >= most {
            return false;
        }
        let growth = work.growth();
        if growth == 0 {
            return true;
        }
        let is_given = self.state.clients.take(&self.session.client, growth + self.session.bytes());
        if is_given {
            work.grow();
            self.count_bytes();
        }
        is_given
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let protocol = self.protocol;
        let work = self.work.get_or_insert_with(|| Box::new(Work::new(protocol)));
        work.began = Stopwatch::start();
        work.take_in(bytes);
        self.state.statistics.bytes_in.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.count_bytes();
    }

    /// Executes a batch of commands, waits until their writes are durable, and sends as many
    /// replies as the socket accepts.
    async fn batch(&mut self) -> Result<Next, io::Error> {
        // Yields now and then, because a connection whose input never runs dry would keep the
        // thread.
        tokio::task::coop::consume_budget().await;
        let Some(mut work) = self.work.take() else { return Ok(Next::Read) };
        let client = Arc::clone(&self.session.client);
        // The turn comes before the memory, so that a connection waiting for a turn has no memory
        // reserved. Both waits end if the connection is asked to end.
        let place = work.waits_for.take();
        let turn = if let Some(place) = place {
            let turn = turn_in_store(self.state, &client, place).await;
            if turn.is_none() {
                return Ok(Next::Over);
            }
            turn
        } else {
            None
        };
        let bytes = work.bytes() + self.session.bytes() + work.wanted_by_next();
        let allowance = self.state.clients.allowance(2 * BATCH_BYTES + RANGES_BYTES);
        if !self.state.clients.room(&client, bytes, allowance).await {
            return Ok(Next::Over);
        }
        self.session.set_aside = bytes + allowance;
        let mut next = if place == Some(Place::Far) {
            let (state, session) = (self.state, &mut self.session);
            tokio::task::block_in_place(|| carry_out(state, session, &mut work, turn, Place::Far))
        } else {
            // On the serving thread: handing over to another thread would cost more than a possible
            // read of the drive (decision 41).
            carry_out(self.state, &mut self.session, &mut work, turn, Place::Near)
        };
        self.state.clients.holds(&client, work.bytes() + self.session.bytes());
        if !work.written.is_empty() {
            let committed = self.state.commits.wait().await;
            work.commit(self.state, committed);
        }
        let most = self.state.options.query_bytes;
        if next == Next::Read && work.unanswered() > most {
            let message = format!("a command has at most {most} bytes (client-query-buffer-limit)");
            work.say(self.state, &Fault::error(message));
            next = Next::Dismissal;
        }
        self.protocol = work.reply.protocol;
        let said = work.queue();
        self.state.statistics.bytes_out.fetch_add(said as u64, Ordering::Relaxed);
        self.work = Some(work);
        poll_fn(|context| match self.poll_send(context) {
            Poll::Pending => Poll::Ready(Ok(())),
            sent @ Poll::Ready(_) => sent,
        })
        .await?;
        Ok(next)
    }

    /// Queues the error for a client that reads no replies and for whose input there is no room.
    fn say_that_it_is_stuck(&mut self) {
        self.state.statistics.stuck.fetch_add(1, Ordering::Relaxed);
        let Some(work) = &mut self.work else { return };
        let message = format!(
            "no reply was taken for {} ms, and {} bytes of commands behind them wait, for more of which there is no room \
             (client-query-buffer-limit, maxmemory-clients): read replies while you send",
            self.state.options.patience_ms,
            work.unanswered(),
        );
        work.say(self.state, &Fault::error(message));
        work.queue();
    }

    /// Ends a client after sending it the reason. Discards further input: a client that is blocked
    /// in sending would never read the reason.
    async fn dismiss(&mut self, stop: &mut watch::Receiver<bool>) -> Ended {
        self.session.transaction = None;
        if let Some(work) = &mut self.work {
            work.forget_input();
        }
        self.count_bytes();
        let client = Arc::clone(&self.session.client);
        let mut asked_to_end = pin!(client.end.notified());
        let mut stopped = pin!(stop.wait_for(|is_over| *is_over));
        let mut says_more = true;
        let heard = poll_fn(|context| {
            if asked_to_end.as_mut().poll(context).is_ready()
                || stopped.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            if says_more && self.poll_send(context)?.is_ready() {
                says_more = Pin::new(&mut self.stream).poll_shutdown(context)?.is_pending();
            }
            while self.reads {
                let mut buffer = [0; READ];
                let mut buffer = ReadBuf::new(&mut buffer);
                if Pin::new(&mut self.stream).poll_read(context, &mut buffer)?.is_pending() {
                    return Poll::Pending;
                }
                self.reads = !buffer.filled().is_empty();
            }
            if says_more { Poll::Pending } else { Poll::Ready(Ok(())) }
        });
        let heard: Result<Ended, _> = tokio::time::timeout(LINGER, heard).await;
        heard.unwrap_or(Ok(()))?;
        self.farewell().await
    }

    /// Flushes the stream and closes it, within a second.
    async fn farewell(&mut self) -> Ended {
        self.work = None;
        self.session.transaction = None;
        // Releases the memory to other connections now, before the close completes.
        self.count_bytes();
        let closed = self.stream.shutdown();
        tokio::time::timeout(Duration::from_secs(1), closed).await.unwrap_or(Ok(()))
    }
}

/// Waits for a turn in the store. Returns `None` if the client is asked to end.
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
