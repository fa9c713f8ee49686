//! A key-value drive as the workloads see it.

use engine::Value;
use kvssd::{KvDrive, Status, StoreMode};
use workload::KvTarget;

/// Drives a [`KvDrive`]; the host's buffer takes any value.
#[derive(Clone)]
pub(crate) struct DriveTarget(pub KvDrive);

impl KvTarget for DriveTarget {
    type Error = Status;

    async fn get(&self, key: &[u8]) -> Result<Option<Value>, Status> {
        match self.0.retrieve(key, u32::MAX).await {
            Ok(found) => Ok(Some(found.value)),
            Err(Status::KeyDoesNotExist) => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn put(&self, key: &[u8], value: Value) -> Result<(), Status> {
        self.0.store(key, value, StoreMode::Upsert).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, Status> {
        match self.0.delete(key).await {
            Ok(()) => Ok(true),
            Err(Status::KeyDoesNotExist) => Ok(false),
            Err(status) => Err(status),
        }
    }
}
