//! The stores, and the bound.

mod bound;
#[cfg(feature = "fjall")]
mod fjall;
mod levelhead;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use anyhow::bail;

use self::levelhead::{Form, Levelhead};
#[cfg(feature = "rocksdb")]
use self::rocksdb::Calm;
use crate::child::{Setup, serve as serve_peer};

/// All that were built in, the bound first.
pub const NAMES: &[&str] = &[
    "bound",
    "levelhead",
    "levelhead-8k",
    "levelhead-inline",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
    #[cfg(feature = "rocksdb")]
    "rocksdb-limited",
    #[cfg(feature = "fjall")]
    "fjall",
    #[cfg(feature = "redb")]
    "redb",
    #[cfg(feature = "lmdb")]
    "lmdb",
];

/// Those that `run` compares; the calm ones are for `tails`, which says how much is written.
pub fn usual() -> Vec<&'static str> {
    NAMES.iter().copied().filter(|name| *name != "rocksdb-limited").collect()
}

/// Those whose tails are drawn, where they were built in.
pub const TAILS: &[&str] = &[
    "bound",
    "levelhead",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
    #[cfg(feature = "rocksdb")]
    "rocksdb-limited",
    #[cfg(feature = "fjall")]
    "fjall",
    #[cfg(feature = "redb")]
    "redb",
];

/// Opens a peer and does what it is told.
pub fn serve(name: &str, setup: &Setup) -> anyhow::Result<()> {
    std::fs::create_dir_all(&setup.directory)?;
    match name {
        "bound" => serve_peer(bound::Bound::open(setup)?, setup),
        "levelhead" => serve_peer(Levelhead::open(setup, Form::Usual)?, setup),
        "levelhead-8k" => serve_peer(Levelhead::open(setup, Form::LargerPages)?, setup),
        "levelhead-inline" => serve_peer(Levelhead::open(setup, Form::Inline)?, setup),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => serve_peer(rocksdb::RocksDb::open(setup, Calm::No)?, setup),
        #[cfg(feature = "rocksdb")]
        "rocksdb-limited" => serve_peer(rocksdb::RocksDb::open(setup, Calm::Unlimited)?, setup),
        #[cfg(feature = "fjall")]
        "fjall" => serve_peer(fjall::Fjall::open(setup)?, setup),
        #[cfg(feature = "redb")]
        "redb" => serve_peer(redb::Redb::open(setup)?, setup),
        #[cfg(feature = "lmdb")]
        "lmdb" => serve_peer(lmdb::Lmdb::open(setup)?, setup),
        _ => bail!("there is no peer {name}: there are {}", NAMES.join(", ")),
    }
}
