//! The command line of Levelhead.

#![forbid(unsafe_code)]

mod bench;
mod bench_spec;
mod device;
mod files;
mod host;
mod interrupt;
mod names;
mod output;
mod plan;
mod progress;
mod reproduce;
mod serve;
mod simulations;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Simulation makes and drops millions of small objects; this allocator keeps them close together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    Bench(bench_spec::BenchArguments),
    /// Run a job of reads and writes on a block drive, in virtual time
    Device(device::DeviceArguments),
    /// Say by arithmetic what a design needs on a drive
    Plan(plan::PlanArguments),
    /// Run a paper's experiments and set what it says beside what comes out
    Reproduce(reproduce::ReproduceArguments),
    /// Serve a store to clients of Redis
    Serve(serve::ServeArguments),
    /// List the built-in designs, devices, workloads, block drives and jobs
    List,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Device(arguments) => device::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::List => output::print(&names::list()).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        output::say(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}
