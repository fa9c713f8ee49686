//! The same workloads on this store and on others, on one directory, interleaved, under one memory limit, beside the bound of
//! one read for each Get. README.md says how to run it.
//!
//! ```text
//!  parent ..... `run`: has the peers work in turns, collects                                (parent.rs)
//!  tails ...... `tails`: long reads beside writes at several rates; `draw`                  (tails.rs)
//!  picture .... their curves                                                                (picture.rs)
//!  stores ..... a process for each peer, with a directory and a memory limit                (stores.rs)
//!  jail ....... the memory limit of a process, and the page cache                            (jail.rs)
//!  child ...... one peer: does what it is told, a line each                                  (child.rs)
//!  task ....... what a peer may be told, and what it answers                                 (task.rs)
//!  peer ....... what a store has to be able to do                                            (peer.rs)
//!  peers ...... the stores, and the bound                                                    (peers/)
//!  warm ....... what is stored comes into the cache of the drive                             (warm.rs)
//!  report ..... tables and ratios                                                            (report.rs)
//! ```

mod child;
mod jail;
mod parent;
mod peer;
mod peers;
mod picture;
mod report;
mod stores;
mod tails;
mod task;
mod warm;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "peers", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare stores
    Run(parent::RunArguments),
    /// Measure the longest reads beside writes at several rates
    Tails(tails::TailsArguments),
    /// Draw again what `tails` measured
    Draw(tails::DrawArguments),
    /// One of the stores; started by the others
    #[command(hide = true)]
    Child {
        #[arg(long)]
        peer: String,
        #[arg(long)]
        directory: PathBuf,
        #[arg(long)]
        memory: u64,
        #[arg(long)]
        records: u64,
        #[arg(long)]
        value_bytes: u64,
        #[arg(long)]
        memtable_bytes: Option<u64>,
        #[arg(long)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run(arguments) => parent::run(&arguments),
        Command::Tails(arguments) => tails::run(&arguments),
        Command::Draw(arguments) => tails::draw(&arguments),
        Command::Child { peer, directory, memory, records, value_bytes, memtable_bytes, seed } => {
            let setup =
                child::Setup { directory, memory, records, value_bytes, memtable_bytes, seed };
            peers::serve(&peer, &setup)
        }
    }
}
