//! Snapshots and ranges that are being read: they stay within the runtime, and have numbers outside.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use engine::{EngineIterator, EngineSnapshot, IndexPart, Step};
use pages::EngineError;
use runtime::{Handle, Nanos};

use crate::error::Error;
use crate::file_engine::{FileEngine, Files};
use crate::store::Store;

/// Bytes of keys and values that a range gives at a time, but for the last pair.
pub(crate) const MOST_BYTES: usize = 256 << 10;

/// A key and its value.
pub(crate) type Pair = (Box<[u8]>, Vec<u8>);

/// A part of a range, as it is fetched.
#[derive(Default)]
pub(crate) struct Fetched {
    pub pairs: Vec<Pair>,
    /// Deletions that lay between them and before them.
    pub stepped_over: u64,
    /// Whether there are no more.
    pub is_end: bool,
}

/// Of which instant a range is.
#[derive(Clone, Copy)]
pub(crate) enum Instant {
    Present,
    OfSnapshot(u64),
    /// That of another range.
    OfRange(u64),
}

/// The least key of a range, its end, which is not among its keys, and what it gives.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub from: Box<[u8]>,
    pub to: Option<Box<[u8]>>,
    pub gives: Gives,
}

/// What a range gives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Gives {
    #[default]
    Pairs,
    /// Keys; values are not read, and empty.
    Keys,
}

/// How much is fetched at a time.
#[derive(Clone, Copy)]
pub(crate) struct Most {
    /// Pairs.
    pub pairs: usize,
    /// Deletions, but for those of the last step.
    pub deletions: u64,
}

/// Where a range begins to be read, and which way.
pub(crate) enum Beginning {
    /// At this key or behind it, upwards.
    Key(Box<[u8]>),
    /// At its end, downwards.
    Last,
}

/// What is being read, by number.
pub(crate) struct Reading {
    handle: Handle,
    last: Cell<u64>,
    snapshots: RefCell<BTreeMap<u64, FileSnapshot>>,
    ranges: RefCell<BTreeMap<u64, FileIterator>>,
}

type FileSnapshot = EngineSnapshot<Files>;
type FileIterator = EngineIterator<Files>;

fn iterator(snapshot: &FileSnapshot, limits: &Limits) -> Result<FileIterator, EngineError> {
    let iterator = snapshot.iterator(Some(&limits.from[..]), limits.to.as_deref())?;
    Ok(if limits.gives == Gives::Keys { iterator.of_keys() } else { iterator })
}

/// The pair to begin at, or the next one, with `ahead` more to be asked for behind it.
async fn step(
    iterator: &mut FileIterator,
    beginning: Option<Beginning>,
    ahead: usize,
) -> Result<Step, EngineError> {
    match beginning {
        Some(Beginning::Key(key)) => iterator.seek(&key, Nanos::ZERO).await,
        Some(Beginning::Last) => iterator.seek_before(None, Nanos::ZERO).await,
        None => iterator.next(ahead as u32, Nanos::ZERO).await,
    }
}

impl Reading {
    pub(crate) fn new(handle: &Handle) -> Self {
        let (snapshots, ranges) = (RefCell::default(), RefCell::default());
        Self { handle: handle.clone(), last: Cell::default(), snapshots, ranges }
    }

    fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn begin_snapshot(&self, engine: &FileEngine) -> Result<u64, EngineError> {
        let snapshot = engine.snapshot()?;
        let number = self.number();
        self.snapshots.borrow_mut().insert(number, snapshot);
        Ok(number)
    }

    fn snapshot(&self, number: u64) -> FileSnapshot {
        self.snapshots.borrow().get(&number).expect("a snapshot that is read lives").clone()
    }

    /// Begins to read a range; its number.
    fn begin(
        &self,
        engine: &FileEngine,
        instant: Instant,
        limits: &Limits,
    ) -> Result<u64, EngineError> {
        let snapshot = match instant {
            Instant::Present => engine.snapshot()?,
            Instant::OfSnapshot(number) => self.snapshot(number),
            Instant::OfRange(number) => {
                let ranges = self.ranges.borrow();
                ranges.get(&number).expect("a range that is read has not ended").snapshot()
            }
        };
        let iterator = iterator(&snapshot, limits)?;
        let number = self.number();
        self.ranges.borrow_mut().insert(number, iterator);
        Ok(number)
    }

    /// The next pairs of a range, from its beginning on if that is given: as many as `most` says, or as take [`MOST_BYTES`]. However
    /// many deletions lie before them, others have the store in between.
    async fn next(
        &self,
        number: u64,
        beginning: Option<Beginning>,
        most: Most,
    ) -> Result<Fetched, EngineError> {
        // Whoever reads it is alone with it: it is taken out meanwhile.
        let taken = self.ranges.borrow_mut().remove(&number);
        let mut iterator = taken.expect("a range that is read has begun and not ended");
        let (mut pairs, mut bytes, mut beginning) = (Vec::new(), 0, beginning);
        let before = iterator.stepped_over();
        let outcome = loop {
            let stepped_over = iterator.stepped_over() - before;
            let is_much = bytes >= MOST_BYTES || stepped_over > most.deletions;
            if pairs.len() == most.pairs || is_much {
                break Ok(Fetched { pairs, stepped_over, is_end: false });
            }
            let ahead = most.pairs - pairs.len() - 1;
            self.handle.give_way().await;
            match step(&mut iterator, beginning.take(), ahead).await {
                Ok(Step::Pair(key, value)) => {
                    let value = Vec::from(value);
                    bytes += key.len() + value.len();
                    pairs.push((key, value));
                }
                Ok(Step::Again) => {}
                Ok(Step::End) => {
                    let stepped_over = iterator.stepped_over() - before;
                    break Ok(Fetched { pairs, stepped_over, is_end: true });
                }
                Err(error) => break Err(error),
            }
        };
        self.ranges.borrow_mut().insert(number, iterator);
        outcome
    }

    /// The part of the index that cannot be read, if that is what is wrong with a range.
    fn damaged_part(&self, number: u64, error: &EngineError) -> Option<IndexPart> {
        let EngineError::Corrupt(page, _) = error else { return None };
        let ranges = self.ranges.borrow();
        let iterator = ranges.get(&number).expect("a range that is read has not ended");
        iterator.part_in(*page).ok().flatten()
    }

    fn end(&self, number: u64) {
        let ended = self.ranges.borrow_mut().remove(&number);
        drop(ended);
    }
}

impl Store {
    pub(crate) fn begin_snapshot(&self) -> Result<u64, Error> {
        let begun = self.call(|root| {
            let begun = root.reading.begin_snapshot(&root.engine);
            async move { begun }
        });
        begun.map_err(|error| self.error(&error))
    }

    pub(crate) fn end_snapshot(&self, number: u64) {
        if self.is_broken() {
            return;
        }
        self.call(|root| {
            let ended = root.reading.snapshots.borrow_mut().remove(&number);
            drop(ended);
            async {}
        });
    }

    pub(crate) fn get_of_snapshot(
        &self,
        number: u64,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let found: Result<_, EngineError> = self.call(|root| {
            let (snapshot, key) = (root.reading.snapshot(number), Box::<[u8]>::from(key));
            async move { Ok(snapshot.get(&key).await?.map(Vec::from)) }
        });
        found.map_err(|error| self.error(&error))
    }

    pub(crate) fn exists_in_snapshot(&self, number: u64, key: &[u8]) -> Result<bool, Error> {
        let found = self.call(|root| {
            let (snapshot, key) = (root.reading.snapshot(number), Box::<[u8]>::from(key));
            async move { snapshot.exists(&key).await }
        });
        found.map_err(|error| self.error(&error))
    }

    pub(crate) fn begin_range(&self, instant: Instant, limits: &Limits) -> Result<u64, Error> {
        let begun = self.call(|root| {
            let begun = root.reading.begin(&root.engine, instant, limits);
            async move { begun }
        });
        begun.map_err(|error| self.error(&error))
    }

    /// Begins to read a range and fetches its first pairs, in one go; its number, and the pairs.
    pub(crate) fn first_of_range(
        &self,
        instant: Instant,
        limits: &Limits,
        beginning: Beginning,
        most: Most,
    ) -> Result<(u64, Fetched), Error> {
        let first = self.call(|root| {
            let reading = root.reading.clone();
            let begun = reading.begin(&root.engine, instant, limits);
            async move {
                let number = begun?;
                let pairs = reading.next(number, Some(beginning), most).await;
                if pairs.is_err() {
                    reading.end(number);
                }
                Ok((number, pairs?))
            }
        });
        first.map_err(|error: EngineError| self.error(&error))
    }

    pub(crate) fn next_of_range(
        &self,
        number: u64,
        beginning: Option<Beginning>,
        most: Most,
    ) -> Result<Fetched, Error> {
        let pairs = self.call(|root| {
            let reading = root.reading.clone();
            async move { reading.next(number, beginning, most).await }
        });
        pairs.map_err(|error| self.error(&error))
    }

    /// The next pair of a range that is walked through damage, or what is wrong, and the part of the index that cannot be read, if it is that.
    pub(crate) fn next_of_walk(
        &self,
        number: u64,
        beginning: Option<Beginning>,
    ) -> Result<Option<Pair>, (Error, Option<IndexPart>)> {
        let pairs = self.call(|root| {
            let reading = root.reading.clone();
            async move {
                let most = Most { pairs: 1, deletions: u64::MAX };
                let pairs = reading.next(number, beginning, most).await;
                pairs.map_err(|error| {
                    let part = reading.damaged_part(number, &error);
                    (error, part)
                })
            }
        });
        let pairs = pairs.map_err(|(error, part)| (self.error(&error), part))?;
        Ok(pairs.pairs.into_iter().next())
    }

    pub(crate) fn end_ranges(&self, numbers: &[u64]) {
        if self.is_broken() {
            return;
        }
        self.call(|root| {
            for number in numbers {
                root.reading.end(*number);
            }
            async {}
        });
    }
}
