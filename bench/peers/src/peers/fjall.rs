//! fjall with values apart from their keys (`with_kv_separation`), no compression; writes go to its journal, which is synced once a second.

use std::ops::Bound;
use std::time::Duration;

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, wait_for_quiet, words};

pub struct Fjall {
    db: Database,
    pairs: Keyspace,
}

impl Fjall {
    pub fn open(setup: &Setup) -> anyhow::Result<Self> {
        let db = Database::builder(&setup.directory)
            .cache_size(setup.cache_bytes())
            .worker_threads(2)
            .journal_compression(CompressionType::None)
            .open()?;
        let pairs = db.keyspace("pairs", || {
            let apart = KvSeparationOptions::default()
                .separation_threshold(256)
                .compression(CompressionType::None);
            KeyspaceCreateOptions::default()
                .max_memtable_size(setup.memtable_bytes.unwrap_or(64 << 20))
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
                .with_kv_separation(Some(apart))
        })?;
        let syncing = db.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                if syncing.persist(PersistMode::SyncData).is_err() {
                    return;
                }
            }
        });
        Ok(Self { db, pairs })
    }
}

impl SharedTarget for Fjall {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        Ok(self.pairs.get(key).map_err(words)?.map(|value| value.to_vec()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.pairs.insert(key, value).map_err(words)
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        self.pairs.remove(key).map_err(words)
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        for pair in self.pairs.range::<&[u8], _>((Bound::Included(from), until)) {
            let (key, value) = pair.into_inner().map_err(words)?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

impl Peer for Fjall {
    fn settle(&self) {
        let _ = self.db.persist(PersistMode::SyncData);
        wait_for_quiet(|| self.db.outstanding_flushes() == 0 && self.db.active_compactions() == 0);
    }

    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in pairs {
            batch.insert(&self.pairs, key.as_slice(), value.as_slice());
        }
        batch.commit().map_err(words)
    }
}
