//! `levelhead plan`.

use anyhow::bail;
use clap::Args;
use kvssd::{Design, IndexOptions};
use lab::parse_bytes;
use lab::plan::{PlanSpec, plan, render};

#[derive(Args)]
pub(crate) struct PlanArguments {
    /// Flash of the drive
    #[arg(long, default_value = "64GiB", value_parser = parse_bytes)]
    capacity: u64,
    /// Memory for the index
    #[arg(long, default_value = "64MiB", value_parser = parse_bytes)]
    dram: u64,
    /// Length of a key
    #[arg(long, default_value = "32", value_parser = parse_bytes)]
    key: u64,
    /// Length of a value
    #[arg(long, default_value = "1KiB", value_parser = parse_bytes)]
    value: u64,
    /// Size of a flash page
    #[arg(long, default_value = "8KiB", value_parser = parse_bytes)]
    page: u64,
    /// Design: a built-in name or a TOML file
    #[arg(long, default_value = "pink")]
    design: String,
    /// Levels below the memtable [default: the design's]
    #[arg(long)]
    levels: Option<u32>,
    /// Share of the flash that user data fills [default: the design's]
    #[arg(long)]
    fill: Option<f64>,
}

pub(crate) fn run(arguments: &PlanArguments) -> anyhow::Result<()> {
    let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let IndexOptions::Lsm(mut design) = Design::load(&arguments.design)?.index() else {
        bail!(
            "{} has a hash table: what is planned here are the levels of LSM-trees",
            arguments.design
        );
    };
    design.levels = arguments.levels.unwrap_or(design.levels);
    design.fill = arguments.fill.unwrap_or(design.fill);
    let spec = PlanSpec {
        capacity_bytes: arguments.capacity,
        dram_bytes: arguments.dram,
        key_bytes: small(arguments.key),
        value_bytes: small(arguments.value),
        page_bytes: small(arguments.page),
        design,
    };
    let plan = plan(&spec).map_err(anyhow::Error::msg)?;
    println!("{}", render(&plan));
    Ok(())
}
