//! Memory for replies. The length of a reply is not known in advance, so memory is reserved while
//! the reply grows, from the budget of all connections. The reservation lasts until the reply is
//! sent. No other connection is ended for it: if no memory is left, the client gets an error and
//! can request smaller parts.

use std::cell::Cell;
use std::sync::Arc;

use super::session::Session;
use crate::client::{Client, Clients};
use crate::fault::{Fault, Outcome};
use crate::resp::{Protocol, Reply};
use crate::state::State;

/// Length of a reply, in bytes, up to which the reservation of the batch suffices.
pub(super) const FREE_REPLY: usize = 1 << 20;

/// See the module's documentation.
pub(crate) struct Room<'a> {
    clients: &'a Clients,
    client: Arc<Client>,
    /// Bytes otherwise reserved for the connection.
    besides: usize,
    /// Maximum length of a reply, in bytes.
    most: usize,
    /// Bytes reserved for the reply.
    taken: Cell<usize>,
}

impl<'a> Room<'a> {
    pub(super) fn new(state: &'a State, session: &Session) -> Self {
        let (client, besides) = (Arc::clone(&session.client), session.set_aside);
        let (most, taken) = (state.options.reply_bytes, Cell::new(0));
        Self { clients: &state.clients, client, besides, most, taken }
    }

    /// Reserves memory for replies of `bytes` bytes, including earlier replies of the batch.
    pub(crate) fn take(&self, bytes: usize) -> Outcome {
        let most = self.most;
        if bytes > most {
            let message =
                format!("the reply would have more than {most} bytes; ask for parts of it");
            return Err(Fault::error(message));
        }
        // The buffer grows by doubling.
        let wanted = (2 * bytes).next_multiple_of(FREE_REPLY);
        if bytes <= FREE_REPLY || wanted <= self.taken.get() {
            return Ok(());
        }
        if !self.clients.take_for_reply(&self.client, self.besides.saturating_add(wanted)) {
            let message =
                "there is no room for so long a reply beside those of others; ask for parts of it";
            return Err(Fault::error(message));
        }
        self.taken.set(wanted);
        Ok(())
    }

    /// Whether a page of `bytes` bytes should end here.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        bytes > self.most / 2 || self.take(bytes).is_err()
    }
}

/// Items of a reply whose number is inserted before them at the end.
pub(crate) struct Items<'a> {
    reply: &'a mut Reply,
    /// Offset of the items in the reply.
    begin: usize,
    pub count: usize,
    pub room: Room<'a>,
}

impl<'a> Items<'a> {
    pub(super) fn new(reply: &'a mut Reply, room: Room<'a>) -> Self {
        Self { begin: reply.len(), reply, count: 0, room }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.reply.protocol
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) -> Outcome {
        self.one(|reply| reply.bulk(bytes))
    }

    /// Adds an item written by `say`.
    pub(crate) fn one(&mut self, say: impl FnOnce(&mut Reply)) -> Outcome {
        say(self.reply);
        self.count += 1;
        self.room.take(self.reply.len())
    }

    /// Adds an item to a page. The caller then checks whether the page is full.
    pub(crate) fn on_page(&mut self, bytes: &[u8]) {
        self.reply.bulk(bytes);
        self.count += 1;
    }

    /// Whether the page should end here.
    pub(crate) fn are_full(&self) -> bool {
        self.room.is_full(self.reply.len())
    }

    /// Completes the items as an array.
    pub(crate) fn end(self) {
        self.end_behind(|_| {});
    }

    /// Completes the items as an array, preceded by the output of `say`.
    pub(crate) fn end_behind(self, say: impl FnOnce(&mut Reply)) {
        let count = self.count;
        self.reply.insert(self.begin, |reply| {
            say(reply);
            reply.array(count);
        });
    }

    /// Completes the items as a map; keys and values alternate.
    pub(crate) fn end_as_map(self) {
        let pairs = self.count / 2;
        self.reply.insert(self.begin, |reply| reply.map(pairs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Concurrent replies share one budget, and the one that exceeds it gets an error.
    #[test]
    fn replies_have_room_together() {
        let clients = Clients::new(22 * MIB);
        let room = || {
            let client = clients.join(String::new(), 0, 9).expect("there is room");
            Room { clients: &clients, client, besides: 1_000, most: 6 * MIB, taken: Cell::new(0) }
        };
        let (one, other) = (room(), room());
        assert!(one.take(6 * MIB).is_ok());
        assert!(one.take(6 * MIB + 1).expect_err("too long").message().contains("more than"));
        assert!(other.take(MIB).is_ok() && clients.bytes() == 12 * MIB + 1_000);
        let refused = other.take(3 * MIB).expect_err("the other one has it");
        assert!(refused.message().contains("no room"));
        assert!(!other.is_full(MIB) && other.is_full(3 * MIB) && one.is_full(4 * MIB));
        assert_eq!(clients.bytes(), 12 * MIB + 1_000, "nothing is held that was not given");
        clients.holds(&one.client, 0);
        assert!(other.take(3 * MIB).is_ok() && clients.bytes() == 6 * MIB + 1_000);
    }

    #[test]
    fn numbers_are_said_in_front() {
        let clients = Clients::new(MIB);
        let client = clients.join(String::new(), 0, 1).expect("there is room");
        let mut reply = Reply::new(Protocol::Resp3);
        reply.simple("OK");
        let room = || {
            let (client, taken) = (Arc::clone(&client), Cell::new(0));
            Room { clients: &clients, client, besides: 0, most: 60, taken }
        };
        let mut items = Items::new(&mut reply, room());
        assert!((0..12).all(|_| items.one(|reply| reply.integer(7)).is_ok()));
        assert!(items.bulk(&[b'v'; 60]).is_err());
        items.end();
        assert!(reply.bytes().starts_with(b"+OK\r\n*13\r\n:7\r\n"));
        Items::new(&mut reply, room()).end_as_map();
        assert!(reply.bytes().ends_with(b"\r\n%0\r\n"));
    }
}
