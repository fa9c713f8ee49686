//! The settings of `db_bench`'s mixgraph, with its names. The defaults are the published fit of
//! `ZippyDB` (Cao et al., FAST 2020). `db_bench`'s own defaults differ: they draw keys uniformly.

use super::error::SettingsError;
use super::reader::Reader;
use super::scans::{LengthDistribution, ScanLengths};
use crate::value::{KEY_LIMIT, MAX_VALUE_BYTES};
use crate::{FieldLengths, KeyRanges, Pareto, PowerLaw, TwoTermExponential};

/// Length to which mixgraph extends shorter values, in bytes.
const SHORTEST_VALUE: u32 = 10;

/// Most ranges of keys: each has a number in memory.
const MAX_RANGES: u64 = 1 << 20;

/// Returns the lengths of the fields of values.
pub(super) fn value_lengths(
    reader: &Reader<'_>,
    fields: u32,
) -> Result<FieldLengths, SettingsError> {
    let pareto = pareto(reader, ("value_k", 0.2615), ("value_sigma", 25.45))?;
    let longest = MAX_VALUE_BYTES / u64::from(fields);
    let max = reader.number("mix_max_value_size", 1_024, 1..=longest)? as u32;
    Ok(FieldLengths::Pareto { pareto, min: SHORTEST_VALUE.min(max), max })
}

/// Returns the lengths of scans. The distribution is that of the Nexts; the Seek also returns a
/// record.
pub(super) fn scan_lengths(reader: &Reader<'_>) -> Result<ScanLengths, SettingsError> {
    let pareto = pareto(reader, ("iter_k", 2.517), ("iter_sigma", 14.236))?;
    let max = reader.number("mix_max_scan_len", 10_000, 1..=KEY_LIMIT)?;
    Ok(ScanLengths { min: 1, max, distribution: LengthDistribution::Pareto(pareto) })
}

fn pareto(
    reader: &Reader<'_>,
    (k, usual_k): (&str, f64),
    (sigma, usual_sigma): (&str, f64),
) -> Result<Pareto, SettingsError> {
    Ok(Pareto {
        k: reader.number(k, usual_k, 1e-3..=10.0)?,
        sigma: reader.number(sigma, usual_sigma, 1e-3..=1e6)?,
    })
}

/// Returns the hotness of key ranges, and of the keys within them.
pub(super) fn key_ranges(reader: &Reader<'_>) -> Result<KeyRanges, SettingsError> {
    let height = |name, usual| reader.number(name, usual, -1e9..=1e9);
    let slope = |name, usual| reader.number(name, usual, -1e3..=1e3);
    // In db_bench, 0 means uniform keys, in all ranges; here that is requestdistribution=uniform.
    let power = |name, usual| reader.number(name, usual, 1e-9..=1e3);
    Ok(KeyRanges {
        count: reader.number("keyrange_num", 30, 1..=MAX_RANGES)?,
        hotness: TwoTermExponential {
            a: height("keyrange_dist_a", 14.18)?,
            b: slope("keyrange_dist_b", -2.917)?,
            c: height("keyrange_dist_c", 0.0164)?,
            d: slope("keyrange_dist_d", -0.08082)?,
        },
        keys: PowerLaw { a: power("key_dist_a", 0.002_312)?, b: power("key_dist_b", 0.3467)? },
    })
}

/// Checks that keys can be drawn by `ranges` if `records` are loaded.
pub(super) fn check_key_ranges(
    reader: &Reader<'_>,
    ranges: &KeyRanges,
    records: u64,
) -> Result<(), SettingsError> {
    if ranges.count > records {
        let allowed = format!("as many ranges as records are loaded ({records}) at most");
        return Err(reader.refuse("keyrange_num", &ranges.count.to_string(), allowed));
    }
    let sum = ranges.sum();
    if sum.is_finite() && sum > 0.0 {
        return Ok(());
    }
    let allowed = "keyrange_dist_a to keyrange_dist_d by which a e^(b x) + c e^(d x) is above 0 for some x \
                   from 1 to keyrange_num, and finite for all";
    Err(reader.refuse("keyrange_dist_a", &ranges.hotness.a.to_string(), allowed))
}
