//! What can be named on the command line.

use anyhow::{Context, bail};
use kvssd::{Design, DeviceProfile};
use lab::device::Job;
use ssd::SsdProfile;
use workload::{BUILTIN_NAMES, CoreWorkload, Properties};

/// Prints every built-in name with what it stands for.
pub(crate) fn list() {
    println!("levelhead bench");
    println!("designs (--design)");
    for name in Design::names() {
        if let Ok(design) = Design::load(name) {
            println!("  {name:24} {}", design.description);
        }
    }
    println!("devices (--device)");
    for name in DeviceProfile::names() {
        if let Ok(device) = DeviceProfile::load(name) {
            println!("  {name:24} {}", device.description);
        }
    }
    println!("workloads (--workload): {}", BUILTIN_NAMES.join(", "));
    println!("levelhead device");
    println!("block drives (--profile)");
    for name in SsdProfile::names() {
        if let Ok(profile) = SsdProfile::load(name) {
            println!("  {name:24} {}", profile.description);
        }
    }
    println!("jobs (--job)");
    for name in Job::names() {
        if let Ok(job) = Job::load(name) {
            println!("  {name:24} {}", job.description);
        }
    }
    println!("each of the five also takes the path of a file");
}

/// The built-in workload of that name, or the YCSB property file at that path, with `overrides`
/// (name, value) on top.
pub(crate) fn workload(name: &str, overrides: &[(String, String)]) -> anyhow::Result<CoreWorkload> {
    let mut properties = if let Some(properties) = workload::builtin(name) {
        properties
    } else if std::path::Path::new(name).exists() {
        let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
        Properties::parse(name, &text)?
    } else {
        bail!(
            "there is no workload `{name}`: give one of {}, or the path of a YCSB property file",
            BUILTIN_NAMES.join(", ")
        );
    };
    for (name, value) in overrides {
        properties.set(name, value);
    }
    let workload = CoreWorkload::from_properties(&properties)?;
    for warning in &workload.warnings {
        eprintln!("levelhead: {warning}");
    }
    Ok(workload)
}
