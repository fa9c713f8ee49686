//! redb: a transaction for each put without durability, and one with it at most a second later.

use std::ops::Bound;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, words};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

pub struct Redb {
    db: Database,
    synced: Mutex<Instant>,
}

impl Redb {
    pub fn open(setup: &Setup) -> anyhow::Result<Self> {
        let mut options = Database::builder();
        options.set_cache_size(setup.cache_bytes() as usize);
        let db = options.create(setup.directory.join("redb"))?;
        let begun = db.begin_write()?;
        begun.open_table(PAIRS)?;
        begun.commit()?;
        Ok(Self { db, synced: Mutex::new(Instant::now()) })
    }

    fn write(&self, pairs: &[(&[u8], Option<&[u8]>)], is_durable: bool) -> Result<(), String> {
        let mut begun = self.db.begin_write().map_err(words)?;
        let durability = if is_durable { Durability::Immediate } else { Durability::None };
        begun.set_durability(durability).map_err(words)?;
        {
            let mut table = begun.open_table(PAIRS).map_err(words)?;
            for (key, value) in pairs {
                match value {
                    Some(value) => table.insert(*key, *value).map_err(words)?,
                    None => table.remove(*key).map_err(words)?,
                };
            }
        }
        begun.commit().map_err(words)
    }

    fn is_due(&self) -> bool {
        let mut synced = self.synced.lock().expect("nobody panics with it");
        let is_due = synced.elapsed() >= Duration::from_secs(1);
        if is_due {
            *synced = Instant::now();
        }
        is_due
    }
}

impl SharedTarget for Redb {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let begun = self.db.begin_read().map_err(words)?;
        let table = begun.open_table(PAIRS).map_err(words)?;
        Ok(table.get(key).map_err(words)?.map(|value| value.value().to_vec()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.write(&[(key, Some(value))], self.is_due())
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        self.write(&[(key, None)], self.is_due())
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let begun = self.db.begin_read().map_err(words)?;
        let table = begun.open_table(PAIRS).map_err(words)?;
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        for pair in table.range::<&[u8]>((Bound::Included(from), until)).map_err(words)? {
            let (key, value) = pair.map_err(words)?;
            if !take(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }
}

impl Peer for Redb {
    fn settle(&self) {
        let _ = self.write(&[], true);
    }

    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], Some(&value[..]))).collect();
        self.write(&pairs, true)
    }
}
