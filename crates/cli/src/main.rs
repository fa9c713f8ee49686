//! The command line of Levelhead.

#![forbid(unsafe_code)]

mod allocator;
mod bench;
mod compare;
mod device;
mod files;
mod host;
mod interrupt;
mod memory;
mod names;
mod output;
mod overrides;
mod plan;
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

/// A level-headed key-value store for flash, and a laboratory for drives that do not exist yet.
#[derive(Parser)]
#[command(name = "levelhead", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workload on a design on a device, in virtual time
    Bench(Box<bench::BenchArguments>),
    /// Run a job of reads and writes on a block drive, in virtual time
    Device(Box<device::DeviceArguments>),
    /// Run again what a result is of: all that went in is in it
    Rerun(rerun::RerunArguments),
    /// Set finished results side by side, as a table and a page
    Compare(compare::CompareArguments),
    /// Say by arithmetic what a design needs on a drive
    Plan(plan::PlanArguments),
    /// Run a paper's experiments and set what it says beside what comes out
    Reproduce(reproduce::ReproduceArguments),
    /// Give a key of a store a value. Makes the store where there is none
    Put(store::PutArguments),
    /// Print the value of a key of a store. The exit code is 1 if there is no such key, 2 if it cannot be looked for
    Get(store::GetArguments),
    /// Take the values of keys away
    Delete(store::DeleteArguments),
    /// Print pairs of a store in the order of their keys, as they are at one instant
    Scan(store::ScanArguments),
    /// Put all pairs of a file into a store. Makes the store where there is none
    Load(store::LoadArguments),
    /// Write all pairs of a store, as they are at one instant, in a form that `load` takes back byte for byte
    Dump(store::DumpArguments),
    /// Say how much a store has and where its memory goes
    Stats(store::StatsArguments),
    /// Read and check every pair of a store. The exit code is 1 if something is damaged, 2 if it cannot be looked at
    Verify(store::VerifyArguments),
    /// Save what can be read of a damaged store to a new one, and say what cannot. The exit code is 1 if something is lost, 2 if nothing
    /// could be saved
    Repair(store::RepairArguments),
    /// Copy a store, as it is at one instant, to a store of its own. The exit code is 1 if something is damaged, 2 if it cannot be done
    Backup(store::BackupArguments),
    /// Flush what a store has in memory, compact all levels into the last one, and collect garbage as far as that pays
    Compact(store::CompactArguments),
    /// Serve a store to clients of Redis
    Serve(serve::ServeArguments),
    /// List the built-in designs, devices, workloads, block drives and jobs
    List,
    /// Print a built-in file, to copy and change
    Show(show::ShowArguments),
    /// Print what makes a shell complete this program's arguments
    Completions(shells::CompletionsArguments),
    /// Print a page for `man`: of the program, or of one of its commands
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
        Command::List => output::print(&names::list()).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        output::say(&output::why(&error));
        ExitCode::FAILURE
    })
}
