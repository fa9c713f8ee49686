//! `RocksDB`: O_DIRECT for reads, flushes and compactions, 10 bits of filter a key, two background jobs, no compression; the calm one
//! has a rate limiter besides, syncs in small pieces and has levels of dynamic size.

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options};
use rocksdb::{ReadOptions, WriteBatch, WriteOptions};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, wait_for_quiet, words};

pub struct RocksDb(DB, Calm);

/// Whether reads come before its background work.
#[derive(Clone, Copy, PartialEq)]
pub enum Calm {
    No,
    /// As long as it is not known how much is written: while it is loaded.
    Unlimited,
    /// So many bytes a second for flushes and compactions.
    Limited(u64),
}

/// What a limiter gives at a time is this long's; `RocksDB`'s own default of 100 ms would let a tenth of a second's writes go at once.
const REFILL_US: i64 = 10_000;
/// Flushes and compactions may write so many times what is put: what levels write, and room for it to come in bursts.
const LIMIT_TIMES: u64 = 12;

impl RocksDb {
    pub fn open(setup: &Setup, calm: Calm) -> anyhow::Result<Self> {
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
        if calm != Calm::No {
            options.set_level_compaction_dynamic_level_bytes(true);
            options.set_bytes_per_sync(256 << 10);
            options.set_wal_bytes_per_sync(256 << 10);
        }
        if let Calm::Limited(bytes) = calm {
            options.set_ratelimiter(bytes as i64, REFILL_US, 10);
        }
        Ok(Self(DB::open(&options, &setup.directory)?, calm))
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
    fn for_writes(self, setup: &Setup, bytes_per_second: u64) -> anyhow::Result<Self> {
        let limited = Calm::Limited(bytes_per_second * LIMIT_TIMES);
        if self.1 == Calm::No || self.1 == limited {
            return Ok(self);
        }
        // The binding gives no limiter whose rate can be changed, nor one that tunes itself.
        drop(self);
        Self::open(setup, limited)
    }

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
