//! State of a connection between its commands, with the transaction that it assembles.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::client::Client;
use crate::data::locks::Watched;
use crate::fault::{Fault, Outcome};

/// See the module's documentation.
pub(crate) struct Session {
    pub client: Arc<Client>,
    pub is_authenticated: bool,
    /// Whether the last SELECT was refused. The client asked for a database that does not exist, so
    /// it must not work on database 0 instead.
    pub is_astray: bool,
    /// Whether the connection closes after the replies are sent.
    pub is_over: bool,
    /// The commands queued since MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// Watched keys, by the index of their write counters; EXEC requires them to be unchanged.
    pub watched: BTreeMap<usize, Watched>,
    /// Memory reserved for the connection while commands run, in bytes, without long replies.
    pub set_aside: usize,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        let (transaction, watched) = (None, BTreeMap::new());
        let (is_astray, is_over, set_aside) = (false, false, 0);
        Self { client, is_authenticated, is_astray, is_over, transaction, watched, set_aside }
    }
    /// Breaks the transaction, if there is one: EXEC will fail.
    pub(super) fn give_up_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.give_up();
        }
    }

    /// Returns the memory held for a transaction, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let kept = self.transaction.as_ref().map_or(0, |transaction| transaction.bytes());
        // The nodes of a map are at least half full.
        kept + 2 * self.watched.len() * size_of::<(usize, Watched)>()
    }
}

/// The commands queued for EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(super) commands: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    /// Whether a command could not be queued.
    pub(super) is_broken: bool,
}

impl Transaction {
    /// Marks the transaction as broken because a command was invalid or too large, and drops its
    /// commands.
    pub(super) fn give_up(&mut self) {
        *self = Self { is_broken: true, ..Self::default() };
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.commands.capacity() * size_of::<Vec<Vec<u8>>>()
    }

    /// Queues a command.
    pub(super) fn keep(&mut self, arguments: &[&[u8]], most_bytes: usize) -> Outcome {
        if self.is_broken {
            return Ok(());
        }
        // With the overhead of a vector and of the allocator.
        self.bytes += arguments.iter().map(|argument| argument.len() + 40).sum::<usize>() + 16;
        if self.bytes() > most_bytes {
            let message = format!("a transaction has at most {most_bytes} bytes");
            return Err(Fault::error(message));
        }
        if self.commands.len() == self.commands.capacity() {
            self.commands.reserve_exact(self.commands.len() / 4 + 4);
        }
        self.commands.push(arguments.iter().map(|argument| argument.to_vec()).collect());
        Ok(())
    }
}
