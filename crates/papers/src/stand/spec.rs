//! Specification of a stand.

use serde_json::{Value, json};
use stacks::design::IndexOptions;
use stacks::kvssd::{DeviceProfile, DriveOptions};
use workload::{ClientOptions, CoreWorkload};

use crate::failure::Failure;
use crate::settings::{of_file, plain};

/// Specification of a stand: a drive, its design and its records.
#[derive(Clone, Debug)]
pub(crate) struct StandSpec {
    pub index: IndexOptions,
    pub device: DeviceProfile,
    /// Keys, values and number of the records.
    pub records: CoreWorkload,
    /// Number of outstanding operations.
    pub outstanding: usize,
    pub seed: u64,
}

impl StandSpec {
    /// Returns a failure on this stand.
    pub(super) fn say(&self, what: impl std::fmt::Display) -> Failure {
        format!("on {}: {what}", self.device.name)
    }

    /// Returns the clients: a closed loop.
    pub(super) fn clients(&self) -> ClientOptions {
        ClientOptions::closed(self.outstanding)
    }

    /// Returns the options of the drive.
    pub(super) fn options(&self) -> DriveOptions {
        let mut options = DriveOptions::new(self.index.clone());
        options.expected_key_bytes = self.records.keys.key_bytes() as u32;
        options.expected_value_bytes = self.records.values.longest_bytes();
        options.iterators = options.iterators.max(self.outstanding as u32);
        options
    }

    /// Returns the settings of a drive that is loaded as specified.
    pub(crate) fn settings(&self) -> Value {
        let Self { index, device, records, outstanding, seed } = self;
        let index = match index {
            IndexOptions::Lsm(options) => json!({ "engine": of_file(options) }),
            IndexOptions::Hash(options) => json!({ "hash": of_file(options) }),
        };
        json!({
            "design": index, "device": of_file(device), "records": plain(records),
            "outstanding": outstanding, "seed": seed,
        })
    }
}
