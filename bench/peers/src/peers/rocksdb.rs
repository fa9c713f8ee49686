//! `RocksDB`: O_DIRECT for reads, flushes and compactions, 10 bits of filter a key, memtables of 64 MiB, two background jobs, no
//! compression.

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options};
use rocksdb::{ReadOptions, WriteBatch, WriteOptions};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, wait_for_quiet, words};

pub struct RocksDb(DB);

/// What bounds flushes and compactions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Background {
    Free,
    /// A rate limiter that finds its rate by itself, up to [`MOST_BACKGROUND`], and levels sized from the last one up.
    Limited,
}

/// Bytes a second: four times what the fastest writer of `peers tails` puts, ten times with what levels cost.
const MOST_BACKGROUND: i64 = 200 << 20;
/// Refilled so often, in microseconds, so that a burst is small: `RocksDB`'s default is 100 ms.
const REFILL_US: i64 = 10_000;
/// `RocksDB`'s default: one in ten requests of low priority goes before one of high.
const FAIRNESS: i32 = 10;

impl RocksDb {
    pub fn open(setup: &Setup, background: Background) -> anyhow::Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(setup.cache_bytes() as usize)?);
        blocks.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_compression_type(DBCompressionType::None);
        options.set_use_direct_reads(true);
        options.set_use_direct_io_for_flush_and_compaction(true);
        options.set_write_buffer_size(setup.memtable_bytes.unwrap_or(64 << 20) as usize);
        options.set_max_background_jobs(2);
        if background == Background::Limited {
            options.set_ratelimiter(MOST_BACKGROUND, REFILL_US, FAIRNESS);
            options.set_level_compaction_dynamic_level_bytes(true);
        }
        Ok(Self(DB::open(&options, &setup.directory)?))
    }

    fn number(&self, property: &str) -> u64 {
        self.0.property_int_value(property).ok().flatten().unwrap_or(0)
    }
}

impl SharedTarget for RocksDb {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        self.0.get(key).map_err(words)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.0.put(key, value).map_err(words)
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        self.0.delete(key).map_err(words)
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let mut options = ReadOptions::default();
        if let Some(until) = until {
            options.set_iterate_upper_bound(until);
        }
        let mode = IteratorMode::From(from, Direction::Forward);
        for pair in self.0.iterator_opt(mode, options) {
            let (key, value) = pair.map_err(words)?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

impl Peer for RocksDb {
    fn settle(&self) {
        let _ = self.0.flush();
        let busy = [
            "rocksdb.mem-table-flush-pending",
            "rocksdb.num-running-flushes",
            "rocksdb.compaction-pending",
            "rocksdb.num-running-compactions",
        ];
        wait_for_quiet(|| busy.iter().all(|property| self.number(property) == 0));
    }

    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        let mut batch = WriteBatch::default();
        pairs.iter().for_each(|(key, value)| batch.put(key, value));
        self.0.write_opt(batch, &options).map_err(words)
    }
}
