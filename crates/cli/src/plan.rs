//! `levelhead plan`.

use clap::Args;
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
    /// Levels below the memtable
    #[arg(long, default_value_t = 4)]
    levels: u32,
    /// Share of the flash that user data fills
    #[arg(long, default_value_t = 0.7)]
    fill: f64,
}

pub(crate) fn run(arguments: &PlanArguments) -> anyhow::Result<()> {
    let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    if !(arguments.fill > 0.0 && arguments.fill <= 1.0) {
        anyhow::bail!("--fill is a share, more than 0 and at most 1, not {}", arguments.fill);
    }
    let spec = PlanSpec {
        capacity_bytes: arguments.capacity,
        dram_bytes: arguments.dram,
        key_bytes: small(arguments.key),
        value_bytes: small(arguments.value),
        page_bytes: small(arguments.page),
        levels: arguments.levels,
        fill: arguments.fill,
        prefix_bytes: 4,
    };
    let plan = plan(&spec).map_err(anyhow::Error::msg)?;
    println!("{}", render(&plan));
    Ok(())
}
