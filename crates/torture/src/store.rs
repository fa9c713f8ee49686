//! A store on either kind of medium, as clients see it.

use engine::{EngineError, LogSync, Value};
use stacks::host::{HostIterator, HostStore};
use testkit::trial::{Complaint, Kind};
use volume::{BlockRange, Volume};

use crate::rack::Rack;

pub(crate) type Sets = Volume<BlockRange<Rack>>;

/// A store on one set or on a volume.
#[derive(Clone)]
pub enum Store {
    /// A store on one set.
    Plain(HostStore<BlockRange<Rack>>),
    /// A store on a volume.
    Volume(HostStore<Volume<BlockRange<Rack>>>, Volume<BlockRange<Rack>>),
}

/// An iterator of a [`Store`].
pub(crate) enum Cursor {
    Plain(HostIterator<BlockRange<Rack>>),
    Volume(HostIterator<Sets>),
}

pub(crate) type Pair = (Box<[u8]>, Value);

/// Calls a method of either variant.
macro_rules! of {
    ($self:expr, $type:ident, $one:ident => $call:expr) => {
        match $self {
            $type::Plain($one) => $call,
            $type::Volume($one, ..) => $call,
        }
    };
}

impl Store {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// Returns the store's error.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        of!(self, Store, store => store.get(key).await)
    }

    /// Puts a value, or deletes the key if `value` is `None`.
    ///
    /// # Errors
    /// Returns the store's error.
    pub async fn write(
        &self,
        key: &[u8],
        value: Option<Value>,
        sync: Option<LogSync>,
    ) -> Result<(), EngineError> {
        match value {
            Some(value) => of!(self, Store, store => store.put(key, value, sync).await),
            None => of!(self, Store, store => store.delete(key, sync).await),
        }
    }

    pub(crate) fn iterate(&self, bound: Option<&[u8]>) -> Result<Option<Cursor>, EngineError> {
        match self {
            Self::Plain(store) => Ok(store.create_iterator(bound)?.map(Cursor::Plain)),
            Self::Volume(store, _) => Ok(store.create_iterator(bound)?.map(Cursor::Volume)),
        }
    }

    pub(crate) fn has_order(&self) -> bool {
        of!(self, Store, store => store.index().lsm().is_some())
    }

    pub(crate) fn max_value_bytes(&self) -> u32 {
        of!(self, Store, store => store.index().max_value_bytes())
    }

    /// Returns the statistics of the store.
    pub fn stats(&self) -> engine::EngineStats {
        of!(self, Store, store => store.index().stats())
    }

    pub(crate) fn background(&self) -> String {
        of!(self, Store, store => store.index().background())
    }

    /// Returns the volume of the store, if any.
    pub fn volume(&self) -> Option<&Sets> {
        match self {
            Self::Plain(_) => None,
            Self::Volume(_, volume) => Some(volume),
        }
    }
}

impl Cursor {
    pub(crate) async fn seek(&mut self, key: &[u8]) -> Result<Option<Pair>, EngineError> {
        of!(self, Cursor, cursor => cursor.seek(key).await)
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Pair>, EngineError> {
        of!(self, Cursor, cursor => cursor.next(1).await)
    }
}

/// Converts the error of an operation that must not fail to a complaint.
pub(crate) fn of_error(error: &EngineError, what: &str) -> Complaint {
    let kind = match error {
        EngineError::Corrupt(..) => Kind::Corrupt,
        _ => Kind::Refused,
    };
    Complaint::new(kind, format!("{what}: {error}"))
}
