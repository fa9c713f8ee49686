//! A key-value drive as the workloads see it.

use std::fmt;

use engine::Value;
use kvssd::{Index, KvDrive, Status, StoreMode};
use workload::{KvTarget, NoIterators};

/// Drives a [`KvDrive`]; the host's buffer takes any value.
#[derive(Clone)]
pub(crate) struct DriveTarget(pub KvDrive);

/// Why a drive has not done what was asked.
#[derive(Debug)]
pub(crate) enum DriveError {
    /// A command ended with this status.
    Command(Status),
    /// There is no command for it.
    NoIterators,
}

impl From<Status> for DriveError {
    fn from(status: Status) -> Self {
        Self::Command(status)
    }
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(status) => status.fmt(f),
            Self::NoIterators => f.write_str(NO_ITERATORS),
        }
    }
}

const NO_ITERATORS: &str = "the drive has no iterator commands yet";
const NO_KEY_ORDER: &str = "the hash design keeps no key order";

impl KvTarget for DriveTarget {
    type Error = DriveError;
    type Iterator = NoIterators<DriveError>;

    async fn get(&self, key: &[u8]) -> Result<Option<Value>, DriveError> {
        match self.0.retrieve(key, u32::MAX).await {
            Ok(found) => Ok(Some(found.value)),
            Err(Status::KeyDoesNotExist) => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    async fn put(&self, key: &[u8], value: Value) -> Result<(), DriveError> {
        Ok(self.0.store(key, value, StoreMode::Upsert).await?)
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, DriveError> {
        match self.0.delete(key).await {
            Ok(()) => Ok(true),
            Err(Status::KeyDoesNotExist) => Ok(false),
            Err(status) => Err(status.into()),
        }
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        match self.0.engine() {
            Index::Lsm(_) => Some(NO_ITERATORS),
            Index::Hash(_) => Some(NO_KEY_ORDER),
        }
    }

    async fn create_iterator(
        &self,
        _upper_bound: Option<&[u8]>,
    ) -> Result<Self::Iterator, DriveError> {
        Err(DriveError::NoIterators)
    }
}
