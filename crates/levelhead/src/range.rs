//! Pairs in key order, of one instant.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use crate::error::Error;
use crate::store::Store;

/// Pairs that are fetched at a time, to begin with and at most.
const FIRST: usize = 4;
const MOST: usize = 256;

/// Pairs in key order, as they were at the instant at which the first of them was asked for, whatever is written meanwhile.
///
/// After an error it ends. The instant is kept as long as it exists; a store that needs the room lets go of the oldest
/// ([`Error::TooOld`]). Cost: reads for values ahead of the one that is asked for.
pub struct Range {
    store: Store,
    state: State,
    fetched: VecDeque<(Box<[u8]>, Vec<u8>)>,
    batch: usize,
    lower: Bound<Box<[u8]>>,
    upper: Bound<Box<[u8]>>,
}

enum State {
    Begins,
    Reads(u64),
    Over,
}

fn owned(bound: Bound<&[u8]>) -> Bound<Box<[u8]>> {
    bound.map(Into::into)
}

impl Range {
    pub(crate) fn new<'a>(store: &Store, bounds: &impl RangeBounds<&'a [u8]>) -> Self {
        Self {
            store: store.clone(),
            state: State::Begins,
            fetched: VecDeque::new(),
            batch: FIRST,
            lower: owned(bounds.start_bound().map(|key| *key)),
            upper: owned(bounds.end_bound().map(|key| *key)),
        }
    }

    /// Where to seek: the first key that the lower bound lets pass, or one before it.
    fn first_key(&self) -> Box<[u8]> {
        match &self.lower {
            Bound::Included(key) | Bound::Excluded(key) if !key.is_empty() => key.clone(),
            // No key is empty, so that this one is the first there can be.
            _ => Box::new([0]),
        }
    }

    /// A key behind all that the upper bound lets pass, exclusive; nothing if there is no such bound, or if it is longer than keys are:
    /// what comes is looked at as well.
    fn end_key(&self) -> Option<&[u8]> {
        match &self.upper {
            Bound::Excluded(key) if (1..=255).contains(&key.len()) => Some(key),
            _ => None,
        }
    }

    fn is_within(&self, key: &[u8]) -> bool {
        let above = match &self.lower {
            Bound::Excluded(lower) => key > &lower[..],
            Bound::Included(lower) => key >= &lower[..],
            Bound::Unbounded => true,
        };
        above && self.is_below_end(key)
    }

    fn is_below_end(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Excluded(upper) => key < &upper[..],
            Bound::Included(upper) => key <= &upper[..],
            Bound::Unbounded => true,
        }
    }

    /// Fetches more. False at the end.
    fn fetch(&mut self) -> Result<bool, Error> {
        let from = match self.state {
            State::Begins => {
                let number = self.store.begin_range(self.end_key())?;
                self.state = State::Reads(number);
                let first = self.first_key();
                // Longer than any key: what it stands before begins with its first 255 bytes, or comes later.
                Some(if first.len() > 255 { first[..255].into() } else { first })
            }
            State::Reads(_) => None,
            State::Over => return Ok(false),
        };
        let State::Reads(number) = self.state else { unreachable!("it has begun") };
        let pairs = self.store.next_of_range(number, from, self.batch)?;
        let is_last = pairs.len() < self.batch;
        self.batch = (2 * self.batch).min(MOST);
        let is_past = pairs.last().is_some_and(|(key, _)| !self.is_below_end(key));
        let within = pairs.into_iter().filter(|(key, _)| self.is_within(key)).collect::<Vec<_>>();
        self.fetched.extend(within);
        if is_last || is_past {
            self.end();
        }
        Ok(true)
    }

    fn end(&mut self) {
        if let State::Reads(number) = std::mem::replace(&mut self.state, State::Over) {
            self.store.end_range(number);
        }
    }
}

impl Iterator for Range {
    type Item = Result<(Box<[u8]>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.fetched.is_empty() {
            match self.fetch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
        self.fetched.pop_front().map(Ok)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.end();
    }
}
