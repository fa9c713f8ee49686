//! This store.

use std::ops::Bound;

use levelhead::{Batch, Durability, Options, Store};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, words};

pub struct Levelhead(Store);

/// What the store is made with besides.
#[derive(Clone, Copy)]
pub enum Form {
    /// Pages of 4 KiB, values apart.
    Usual,
    /// Pages of 8 KiB, values apart.
    LargerPages,
    /// Pages of 16 KiB, values beside their keys.
    Inline,
}

impl Form {
    fn added_to(self, options: Options, value_bytes: u32) -> Options {
        match self {
            Self::Usual => options,
            Self::LargerPages => Options { page_bytes: 8 << 10, ..options },
            Self::Inline => Options { page_bytes: 16 << 10, inline_up_to: value_bytes, ..options },
        }
    }
}

impl Levelhead {
    pub fn open(setup: &Setup, form: Form) -> anyhow::Result<Self> {
        let options = Options {
            capacity_bytes: (setup.records * (setup.value_bytes + 32) * 4).max(1 << 30),
            // Index and values share what others have as a cache of blocks.
            memory_bytes: setup.cache_bytes(),
            value_cache_bytes: setup.cache_bytes() / 2,
            memtable_bytes: setup.memtable_bytes.unwrap_or(32 << 20),
            expected_value_bytes: setup.value_bytes as u32,
            ..Options::default()
        };
        let options = form.added_to(options, setup.value_bytes as u32);
        Ok(Self(Store::open(&setup.directory, &options)?))
    }
}

impl SharedTarget for Levelhead {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        self.0.get(key).map_err(words)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.0.put_with(key, value, Durability::Interval).map_err(words)
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        self.0.delete_with(key, Durability::Interval).map_err(words)
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        for pair in self.0.range((Bound::Included(from), until)) {
            let (key, value) = pair.map_err(words)?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

impl Peer for Levelhead {
    fn settle(&self) {
        self.0.settle();
    }

    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let mut batch = Batch::new();
        for (key, value) in pairs {
            batch.put(key, value);
        }
        self.0.write_with(&batch, Durability::Each).map_err(words)
    }
}
