//! LMDB by heed: mapped memory without reading ahead, a transaction for each put that is not synced, and a sync every second.

use std::ops::Bound;
use std::time::Duration;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions};
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, words};

pub struct Lmdb {
    env: &'static Env,
    pairs: Database<'static, Bytes, Bytes>,
}

impl Lmdb {
    pub fn open(setup: &Setup) -> anyhow::Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(
            ((setup.records * (setup.value_bytes + 32) * 8) as usize).max(8 << 30) / 4096 * 4096,
        );
        // SAFETY: the directory is this process's alone. What is not synced may be lost with the power, and is written anew by every
        // comparison.
        let env = unsafe {
            options.flags(EnvFlags::NO_READ_AHEAD | EnvFlags::NO_SYNC);
            options.open(&setup.directory)?
        };
        // It lives as long as the process: databases borrow from it.
        let env: &'static Env = Box::leak(Box::new(env));
        let begun = env.write_txn()?;
        let pairs = env
            .create_databases_and_commit(begun, |opener, begun| {
                opener.create_database(begun, None).map(CommitOrAbort::<_, ()>::Commit)
            })?
            .unwrap_commit();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let _ = env.force_sync();
            }
        });
        Ok(Self { env, pairs })
    }

    fn write(&self, pairs: &[(&[u8], Option<&[u8]>)]) -> Result<(), String> {
        let mut begun = self.env.write_txn().map_err(words)?;
        for (key, value) in pairs {
            match value {
                Some(value) => self.pairs.put(&mut begun, key, value).map_err(words)?,
                None => {
                    self.pairs.delete(&mut begun, key).map_err(words)?;
                }
            }
        }
        begun.commit().map_err(words)
    }
}

impl SharedTarget for Lmdb {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let begun = self.env.read_txn().map_err(words)?;
        Ok(self.pairs.get(&begun, key).map_err(words)?.map(<[u8]>::to_vec))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.write(&[(key, Some(value))])
    }

    fn delete(&self, key: &[u8]) -> Result<(), String> {
        self.write(&[(key, None)])
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let begun = self.env.read_txn().map_err(words)?;
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        for pair in self.pairs.range(&begun, &(Bound::Included(from), until)).map_err(words)? {
            let (key, value) = pair.map_err(words)?;
            if !take(key, value) {
                break;
            }
        }
        Ok(())
    }
}

impl Peer for Lmdb {
    fn settle(&self) {
        let _ = self.env.force_sync();
    }

    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], Some(&value[..]))).collect();
        self.write(&pairs)?;
        self.env.force_sync().map_err(words)
    }
}
