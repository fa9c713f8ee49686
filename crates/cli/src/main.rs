//! The command line of Levelhead.

#![forbid(unsafe_code)]

mod allocator;
mod bench;
mod command_line;
mod compare;
mod device;
mod files;
mod host;
mod interrupt;
mod list;
mod memory;
mod names;
mod output;
mod overrides;
mod parallel;
mod plan;
mod program;
mod progress;
mod reproduce;
mod rerun;
mod results;
mod serve;
mod shells;
mod show;
mod side_by_side;
mod simulations;
mod store;
mod sweep;
mod values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A key-value store for flash, and a simulator of flash drives
#[derive(Parser)]
#[command(name = "levelhead", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a YCSB-style workload on a simulated drive, or on files with --store
    Bench(Box<bench::BenchArguments>),
    /// Run an fio-style job on a simulated block drive
    Device(Box<device::DeviceArguments>),
    /// Repeat the run of an earlier result from the inputs stored in it
    Rerun(rerun::RerunArguments),
    /// Compare finished results in one table and one page
    Compare(compare::CompareArguments),
    /// Calculate the flash, memory and reads per get that a design needs on a drive
    Plan(plan::PlanArguments),
    /// Repeat a paper's experiments and compare the results with its claims
    Reproduce(reproduce::ReproduceArguments),
    /// Set the value of a key; creates the store if it does not exist
    Put(store::PutArguments),
    /// Get the value of a key
    ///
    /// Exit code: 0 if the key exists, 1 if it does not, 2 on an error.
    Get(store::GetArguments),
    /// Delete keys
    Delete(store::DeleteArguments),
    /// Print pairs in key order, from one snapshot
    Scan(store::ScanArguments),
    /// Import pairs from a TSV, CSV or JSON Lines file; creates the store if it does not exist
    Load(store::LoadArguments),
    /// Export all pairs, from one snapshot, in a format that `load` reads back byte for byte
    Dump(store::DumpArguments),
    /// Show the size of a store and its memory use
    Stats(store::StatsArguments),
    /// Read and check every pair of a store
    ///
    /// Exit code: 0 if the store is intact, 1 if something is damaged, 2 if the store cannot be
    /// checked.
    Verify(store::VerifyArguments),
    /// Recover the readable pairs of a damaged store into a new store
    ///
    /// Reports the pairs that are lost. Exit code: 0 if nothing is lost, 1 if something is lost, 2
    /// if nothing could be recovered.
    Repair(store::RepairArguments),
    /// Copy a snapshot of a store to a new store
    ///
    /// Exit code: 0 if the copy is complete, 1 if the store is damaged, 2 on any other error.
    Backup(store::BackupArguments),
    /// Flush the memtable, compact all levels into the last one, and collect garbage
    ///
    /// Collects garbage only as far as it is worthwhile.
    Compact(store::CompactArguments),
    /// Serve a store to Redis clients
    Serve(serve::ServeArguments),
    /// List the built-in designs, devices, workloads, block drives and jobs
    List,
    /// Print a built-in file, as a template for a new one
    Show(show::ShowArguments),
    /// Print a completion script for a shell
    Completions(shells::CompletionsArguments),
    /// Print the man page of the program or of one of its commands
    Man(shells::ManArguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Device(arguments) => device::run(&arguments),
        Command::Rerun(arguments) => rerun::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Put(arguments) => Ok(store::or_trouble(store::put(&arguments))),
        Command::Get(arguments) => Ok(store::get(&arguments)),
        Command::Delete(arguments) => Ok(store::or_trouble(store::delete(&arguments))),
        Command::Scan(arguments) => Ok(store::or_trouble(store::scan(&arguments))),
        Command::Load(arguments) => store::load(&arguments),
        Command::Dump(arguments) => Ok(store::or_trouble(store::dump(&arguments))),
        Command::Stats(arguments) => Ok(store::or_trouble(store::stats(&arguments))),
        Command::Verify(arguments) => Ok(store::verify(&arguments)),
        Command::Repair(arguments) => Ok(store::repair(&arguments)),
        Command::Backup(arguments) => Ok(store::backup(&arguments)),
        Command::Compact(arguments) => Ok(store::or_trouble(store::compact(&arguments))),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Completions(arguments) => shells::completions(Arguments::command(), &arguments),
        Command::Man(arguments) => shells::man(Arguments::command(), &arguments),
        Command::List => list::run(),
    };
    outcome.unwrap_or_else(|error| {
        output::say(&output::why(&error));
        ExitCode::FAILURE
    })
}
