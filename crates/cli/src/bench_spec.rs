//! What `levelhead bench` is asked to do: flags, `-p`, and the properties of a workload, put together.
//!
//! Four flags are properties under another name (`--records` is `recordcount`). A flag wins over a
//! property file; a flag and a `-p` that contradict each other are refused.

use std::path::Path;

use anyhow::bail;
use lab::bench::BenchSpec;
use lab::printable;
use workload::{ClientOptions, CoreWorkload, Properties};

use crate::bench::BenchArguments;
use crate::names;
use crate::output::say;

const DEFAULT_RECORDS: u64 = 4_000_000;
const DEFAULT_QUEUE_DEPTH: u64 = 64;

/// Operations of a built-in workload. One that scans reads up to 100 pairs in each (e) or 128.
fn default_operations(workload: &str) -> u64 {
    match workload.to_ascii_lowercase().as_str() {
        "e" | "workloade" => 100_000,
        "seekrandom" => 2_000,
        _ => 1_000_000,
    }
}

/// A flag that stands for a property, and what was given to it.
struct Flag {
    name: &'static str,
    property: &'static str,
    value: Option<String>,
}

fn flags(arguments: &BenchArguments) -> [Flag; 4] {
    let flag = |name, property, value| Flag { name, property, value };
    [
        flag("--records", "recordcount", arguments.records.map(|n| n.to_string())),
        flag("--operations", "operationcount", arguments.operations.map(|n| n.to_string())),
        flag("--queue-depth", "threadcount", arguments.queue_depth.map(|n| n.to_string())),
        flag("--rate", "target", arguments.rate.map(|n| n.to_string())),
    ]
}

/// What to run; says aloud what has no effect.
pub(crate) fn spec(arguments: &BenchArguments) -> anyhow::Result<BenchSpec> {
    let design = names::design(&arguments.design)?;
    let device = names::device(&arguments.device)?;
    let workload = CoreWorkload::from_properties(&properties(arguments)?)?;
    for warning in &workload.warnings {
        say(warning);
    }
    let depth = workload.thread_count.unwrap_or(DEFAULT_QUEUE_DEPTH) as usize;
    let clients = match workload.target_rate {
        None => ClientOptions::closed(depth),
        Some(rate) => ClientOptions::open(rate, depth),
    };
    let stem = Path::new(&arguments.workload).file_stem();
    let workload_name = stem.map_or("?".to_owned(), |name| printable(&name.to_string_lossy()));
    Ok(BenchSpec { design, device, workload_name, workload, clients, seed: arguments.seed })
}

fn properties(arguments: &BenchArguments) -> anyhow::Result<Properties> {
    let name = &arguments.workload;
    let mut properties = names::workload(name)?;
    if workload::builtin(name).is_some() {
        let (records, operations) = (DEFAULT_RECORDS, default_operations(name));
        properties.set_by_flag("--records (default)", "recordcount", &records.to_string());
        properties.set_by_flag("--operations (default)", "operationcount", &operations.to_string());
    }
    for (name, value) in &arguments.property {
        properties.set(name.trim(), value.trim());
    }
    for Flag { name, property, value } in flags(arguments) {
        let Some(value) = value else { continue };
        let assignments = arguments.property.iter().rev();
        let same = assignments.into_iter().find(|(name, _)| name.trim() == property);
        if let Some((_, other)) = same
            && !is_same_number(other.trim(), &value)
        {
            bail!(
                "{name} {value} and -p {property}={other} contradict each other: give one of them"
            );
        }
        properties.set_by_flag(name, property, &value);
    }
    Ok(properties)
}

fn is_same_number(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    number(a).is_some_and(|a| number(b).is_some_and(|b| a.total_cmp(&b).is_eq()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_scan_run_fewer_operations() {
        for name in workload::BUILTIN_NAMES {
            let mix = CoreWorkload::from_properties(&workload::builtin(name).unwrap());
            let scans = mix.unwrap().mix.scan > 0.0;
            assert_eq!(default_operations(name) < 1_000_000, scans, "workload {name}");
        }
        assert_eq!(default_operations("WorkloadE"), default_operations("e"));
    }
}
