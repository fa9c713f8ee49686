//! The names of properties that have a meaning here or in YCSB itself.

use catalogue::{did_you_mean, nearest};

use super::SettingsError;
use crate::{Origin, Properties};

/// Properties of this crate.
const OURS: [&str; 5] = [
    "levelhead.keybytes",
    "levelhead.keydigits",
    "levelhead.updatereads",
    "levelhead.valuebytes",
    "levelhead.values",
];

/// Properties of YCSB's core workload and client, this crate's additions to its operations
/// (`deleteproportion`, `scanbatch`, `scanbound`, `seeknexts`) and distributions (`zipfian.theta`),
/// and `db_bench`'s parameters of mixgraph. Not all have an effect here: there is no table, there
/// are no fields to choose from, and results are reported differently.
const CORE: &[&str] = &[
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "db",
    "deleteproportion",
    "dotransactions",
    "exponential.frac",
    "exponential.percentile",
    "exporter",
    "exportfile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "iter_k",
    "iter_sigma",
    "iter_theta",
    "key_dist_a",
    "key_dist_b",
    "keyprefix",
    "keyrange_dist_a",
    "keyrange_dist_b",
    "keyrange_dist_c",
    "keyrange_dist_d",
    "keyrange_num",
    "label",
    "latencytrackederrors",
    "maxexecutiontime",
    "maxscanlength",
    "measurementtype",
    "minfieldlength",
    "minscanlength",
    "mix_get_ratio",
    "mix_max_scan_len",
    "mix_max_value_size",
    "mix_put_ratio",
    "mix_seek_ratio",
    "operationcount",
    "readallfields",
    "readallfieldsbyname",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "reportlatencyforeacherror",
    "requestdistribution",
    "scanbatch",
    "scanbound",
    "scanlengthdistribution",
    "scanproportion",
    "seeknexts",
    "sine_a",
    "sine_b",
    "sine_c",
    "sine_d",
    "sine_mix_rate",
    "sine_mix_rate_interval_milliseconds",
    "sine_mix_rate_noise",
    "status",
    "status.interval",
    "table",
    "target",
    "threadcount",
    "updateproportion",
    "value_k",
    "value_sigma",
    "value_theta",
    "workload",
    "writeallfields",
    "zeropadding",
    "zipfian.theta",
];

/// YCSB's measurement properties; this crate always keeps full histograms.
const MEASUREMENT_PREFIXES: [&str; 4] =
    ["hdrhistogram.", "histogram.", "measurement.", "timeseries."];

/// Returns all known properties, except those of YCSB's measurements.
pub fn property_names() -> impl Iterator<Item = &'static str> {
    OURS.iter().chain(CORE).copied()
}

/// Returns warnings about unknown properties. An unknown `levelhead.` property is an error, because
/// it must be a typing mistake, and so is a property on the command line that nearly matches a
/// known one. A file may have properties of other bindings.
pub(super) fn check_names(properties: &Properties) -> Result<Vec<String>, SettingsError> {
    let mut warnings = Vec::new();
    for (name, property) in properties.iter() {
        if name.starts_with("levelhead.") && !OURS.contains(&name) {
            return Err(SettingsError {
                origin: Some(property.origin.clone()),
                property: name.to_owned(),
                value: property.value.clone(),
                allowed: format!(
                    "the levelhead properties are {}{}",
                    OURS.join(", "),
                    did_you_mean(name, OURS)
                ),
            });
        }
        if is_known(name) {
            continue;
        }
        let meant = nearest(name, property_names());
        let is_typed = !matches!(property.origin, Origin::File { .. });
        if let (true, Some(meant)) = (is_typed, meant) {
            return Err(SettingsError {
                origin: Some(property.origin.clone()),
                property: name.to_owned(),
                value: property.value.clone(),
                allowed: format!("known properties (did you mean {meant}?)"),
            });
        }
        let hint = did_you_mean(name, meant);
        warnings.push(format!("{}: {name} is not known and has no effect{hint}", property.origin));
    }
    Ok(warnings)
}

fn is_known(name: &str) -> bool {
    OURS.contains(&name)
        || CORE.binary_search(&name).is_ok()
        || MEASUREMENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_that_was_typed_is_refused_and_one_in_a_file_is_told() {
        let in_file = Properties::parse("w", "readpropotion=1").unwrap();
        let warnings = check_names(&in_file).unwrap();
        assert_eq!(
            warnings,
            ["w:1: readpropotion is not known and has no effect (did you mean readproportion?)"]
        );
        let mut typed = Properties::default();
        typed.set("readpropotion", "1");
        let error = check_names(&typed).unwrap_err().to_string();
        assert!(error.ends_with("(did you mean readproportion?)"), "{error}");
        let mut other = Properties::default();
        other.set("rocksdb.dir", "/x");
        assert_eq!(check_names(&other).unwrap().len(), 1, "of another binding");
        let mut ours = Properties::default();
        ours.set("levelhead.valuebyte", "1");
        let error = check_names(&ours).unwrap_err().to_string();
        assert!(error.contains("(did you mean levelhead.valuebytes?)"), "{error}");
    }

    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(CORE.is_sorted());
    }
}
