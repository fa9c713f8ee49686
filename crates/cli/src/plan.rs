//! `levelhead plan`.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kvbench::plan;
use kvbench::plan::PlanSpec;
use report::units::parse_count_in;
use stacks::design::{Design, IndexOptions};
use stacks::kvssd::DeviceProfile;

use crate::overrides::{Kind, Setting};
use crate::{names, output, overrides, values};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PlanArguments {
    /// KV drive: a built-in name or a TOML file
    ///
    /// Its flash, memory for the index and page size are used, unless --capacity, --dram or --page
    /// is given.
    #[arg(long, default_value = "pink-zcu102")]
    device: String,
    /// Flash capacity in bytes: 64GiB [default: that of the device]
    #[arg(long, value_parser = values::bytes(plan::CAPACITY_BYTES))]
    capacity: Option<u64>,
    /// Memory for the index in bytes: 64MiB [default: that of the device]
    #[arg(long, value_parser = values::bytes(plan::DRAM_BYTES))]
    dram: Option<u64>,
    /// Key length in bytes
    #[arg(long, default_value = "32", value_parser = values::bytes(plan::KEY_BYTES))]
    key: u64,
    /// Value length in bytes
    #[arg(long, default_value = "1KiB", value_parser = values::bytes(plan::VALUE_BYTES))]
    value: u64,
    /// Flash page size in bytes [default: that of the device]
    #[arg(long, value_parser = values::bytes(plan::PAGE_BYTES))]
    page: Option<u64>,
    /// Design: a built-in name or a TOML file
    #[arg(long, default_value = "pink")]
    design: String,
    /// Set a key of the design or device file: `gc_start=0.1`, `index_bytes=1000000`
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    set: Vec<Setting>,
    /// Levels below the memtable [default: that of the design]
    #[arg(long, value_parser = levels)]
    levels: Option<u32>,
    /// Share of the flash that user data fills: 0.7, 70% [default: that of the design]
    #[arg(long, allow_hyphen_values = true, value_parser = report::units::parse_share)]
    fill: Option<f64>,
}

fn levels(text: &str) -> Result<u32, String> {
    parse_count_in(text, plan::LEVELS).map(|levels| levels as u32)
}

pub(crate) fn run(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    if let Some(several) = arguments.set.iter().find(|setting| setting.labels().len() > 1) {
        bail!("a plan takes one value of each key, and not {}", several.labels().join(", "));
    }
    let small = |bytes: u64| u32::try_from(bytes).expect("the argument's range was checked");
    let kinds = [Kind::of::<Design>("design"), Kind::of::<DeviceProfile>("device")];
    let settings = overrides::sort(&arguments.set, &kinds, &[])?;
    let device = names::kv_drive(&arguments.device, &settings.of("device"))?.entry;
    let geometry = &device.flash.geometry;
    let loaded = names::design(&arguments.design, &settings.of("design"))?;
    let IndexOptions::Lsm(mut design) = loaded.entry.index() else {
        bail!(
            "{} has a hash table: what is planned here are the levels of LSM-trees",
            arguments.design
        );
    };
    design.levels = arguments.levels.unwrap_or(design.levels);
    design.fill = arguments.fill.unwrap_or(design.fill);
    let spec = PlanSpec {
        capacity_bytes: arguments.capacity.unwrap_or(geometry.capacity_bytes()),
        dram_bytes: arguments.dram.unwrap_or(device.dram.index_bytes),
        key_bytes: small(arguments.key),
        value_bytes: small(arguments.value),
        page_bytes: arguments.page.map_or(geometry.page_bytes, small),
        design,
    };
    let plan = plan::plan(&spec).map_err(anyhow::Error::msg)?;
    output::print(&plan::render(&plan))?;
    match plan.shortage() {
        Some(words) => bail!("it does not fit: {words}"),
        None => Ok(ExitCode::SUCCESS),
    }
}
