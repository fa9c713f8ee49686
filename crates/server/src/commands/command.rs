//! A command: its spec, the table of specs, and one execution of a command.

use super::room::{Items, Room};
use super::session::Session;
use crate::data::access::Access;
use crate::fault::Outcome;
use crate::resp::Reply;
use crate::state::State;
use crate::statistics::Class;

/// The group of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    String,
    Generic,
    Hash,
    SortedSet,
    Connection,
    Server,
    Cluster,
    Transaction,
    Scripting,
}

impl Group {
    /// Returns the name for COMMAND DOCS.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::SortedSet => "sorted-set",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Cluster => "cluster",
            Self::Transaction => "transactions",
            Self::Scripting => "scripting",
        }
    }
}

/// The positions of keys among the arguments of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    Nowhere,
    /// The first argument.
    First,
    /// The second argument.
    Second,
    /// The first two arguments.
    Two,
    /// All arguments.
    All,
    /// Every other argument, from the first on.
    Pairs,
}

/// A command.
pub(crate) struct Spec {
    pub name: &'static str,
    /// Number of arguments, including the name; a minimum if negative.
    pub arity: i32,
    pub group: Group,
    pub is_write: bool,
    pub keys: At,
    pub summary: &'static str,
    pub run: fn(&mut Call<'_>) -> Outcome,
}

impl Spec {
    /// Returns the class in which the command is measured.
    pub(crate) fn class(&self) -> Class {
        match self.group {
            Group::Connection | Group::Server | Group::Cluster | Group::Scripting => Class::Other,
            Group::Transaction if !self.is_write => Class::Other,
            _ if self.is_write => Class::Write,
            _ => Class::Read,
        }
    }

    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Whether the command is allowed before authentication.
    pub(crate) fn is_for_strangers(&self) -> bool {
        matches!(self.name, "AUTH" | "HELLO" | "QUIT" | "RESET")
    }

    /// Whether the command may block in the store or on a lock.
    pub(crate) fn needs_store(&self) -> bool {
        self.is_write || self.keys != At::Nowhere || self.group == Group::Generic
    }

    /// Whether the command works on the keys of a database. EXEC does so only through its queued
    /// commands.
    pub(crate) fn works_on_keys(&self) -> bool {
        match self.name {
            "EXEC" => false,
            "DBSIZE" => true,
            _ => self.needs_store(),
        }
    }

    /// Returns the positions of the first and the last key (negative: from the end), and the step
    /// between keys.
    pub(crate) fn key_places(&self) -> (i64, i64, i64) {
        match self.keys {
            At::Nowhere => (0, 0, 0),
            At::First => (1, 1, 1),
            At::Second => (2, 2, 1),
            At::Two => (1, 2, 1),
            At::All => (1, -1, 1),
            At::Pairs => (1, -1, 2),
        }
    }

    /// Returns the keys among the arguments.
    pub(crate) fn keys<'a>(&self, arguments: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        let (before, most, step) = match self.keys {
            At::Nowhere => (1, 0, 1),
            At::First => (1, 1, 1),
            At::Second => (2, 1, 1),
            At::Two => (1, 2, 1),
            At::All => (1, usize::MAX, 1),
            At::Pairs => (1, usize::MAX, 2),
        };
        arguments.iter().skip(before).step_by(step).take(most).copied()
    }
}

/// All commands, sorted by name.
pub(crate) struct Table(pub(super) &'static [Spec]);

impl Table {
    /// Returns the command of this name; case-insensitive.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Spec> {
        let mut upper = [0; 24];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let place = self.0.binary_search_by(|spec| spec.name.as_bytes().cmp(upper)).ok()?;
        Some(&self.0[place])
    }

    /// Returns the commands in the order of their names.
    pub(crate) fn all(&self) -> &'static [Spec] {
        self.0
    }
}

/// A command that is being executed.
pub(crate) struct Call<'a> {
    /// The command's name and its arguments.
    pub arguments: &'a [&'a [u8]],
    pub access: &'a Access<'a>,
    pub state: &'a State,
    pub session: &'a mut Session,
    /// All commands, for the commands that run or describe others.
    pub table: &'static Table,
    pub reply: &'a mut Reply,
}

impl<'a> Call<'a> {
    /// Returns the argument at an index; index 0 is the name.
    pub(crate) fn argument(&self, place: usize) -> &'a [u8] {
        self.arguments[place]
    }

    /// Returns the key, which is the first argument of most commands.
    pub(crate) fn key(&self) -> &'a [u8] {
        self.arguments[1]
    }

    /// Returns the memory budget of the reply.
    pub(crate) fn room(&self) -> Room<'a> {
        Room::new(self.state, self.session)
    }

    /// Starts a list of items whose number is not known yet.
    pub(crate) fn items(&mut self) -> Items<'_> {
        let room = self.room();
        Items::new(self.reply, room)
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.reply.simple("OK");
        Ok(())
    }
}

/// Replaces the partial reply of a failed command by the error.
pub(super) fn say(state: &State, reply: &mut Reply, begin: usize, outcome: Outcome) {
    if let Err(fault) = outcome {
        reply.truncate(begin);
        reply.error(fault.message());
        state.statistics.count_fault(&fault);
    }
}
