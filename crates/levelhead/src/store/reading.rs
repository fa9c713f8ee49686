//! The calls of snapshots and ranges, which refer to their state in the runtime by number.

use engine::{EngineError, IndexPart};

use super::Store;
use crate::error::Error;
use crate::reading::{Beginning, Fetched, Instant, Limits, Most, Pair};

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
            root.reading.end_snapshot(number);
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

    /// Opens a range and fetches its first pairs, in one call. Returns its number and the pairs.
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

    /// Returns the next pair of a range that is read past damage. On an error, also returns the
    /// damaged part of the index, if the error is due to one.
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
