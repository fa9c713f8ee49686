//! The settings of YCSB's core workload, read from properties and checked.
//!
//! Property names, defaults and meanings are YCSB's (`CoreWorkload`, `Client`); `deleteproportion`,
//! `seeknexts`, `scanbatch`, `scanbound`, `zipfian.theta` and all names that start with
//! `levelhead.` are extensions, and mixgraph's parameters have the names of `db_bench`. A record is
//! one value here: its length is that of `fieldcount` fields of `fieldlength` bytes; reads read all
//! of it and updates rewrite all of it, regardless of `readallfields` and `writeallfields`.
//! Unsupported and unknown properties get a warning.
//!
//! Invariant: a [`CoreWorkload`] can be run as it is, if it has scans on any target that has
//! iterators; every invalid value was refused with its file and line.

mod error;
mod ignored;
mod known;
mod mix;
mod mixgraph;
mod reader;
mod requests;
mod scans;

pub use error::SettingsError;
pub use known::property_names;
pub use mix::Mix;
pub use requests::RequestDistribution;
pub use scans::{LengthDistribution, ScanEnd, ScanLengths, Scans};

use serde::Serialize;

use crate::client::{MAX_OUTSTANDING, RATES};
use crate::generator::is_ycsbs;
use crate::value::{KEY_LIMIT, MAX_VALUE_BYTES};
use crate::{
    FieldLengths, InsertOrder, KeyDigits, KeyFormat, Origin, Properties, ValueForm, ValueRecipe,
};
use reader::Reader;

/// A workload, ready to run. To change it, change its properties, so that the changes are checked.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CoreWorkload {
    /// `recordcount`: records in the store after the load. Inserts of a run follow them.
    #[serde(rename = "recordcount")]
    pub record_count: u64,
    /// `operationcount`: operations of a run.
    #[serde(rename = "operationcount")]
    pub operation_count: u64,
    /// `insertstart`: the number of the first record to load.
    #[serde(rename = "insertstart")]
    pub insert_start: u64,
    /// `insertcount`: records to load.
    #[serde(rename = "insertcount")]
    pub insert_count: u64,
    /// Shares of the operations.
    pub mix: Mix,
    /// `levelhead.updatereads`: whether an update, and the write of a read-modify-write, reads its
    /// pair first, as in YCSB's binding for `RocksDB`.
    pub update_reads: bool,
    /// `requestdistribution`.
    #[serde(rename = "requestdistribution")]
    pub request_distribution: RequestDistribution,
    /// Format of the keys.
    pub keys: KeyFormat,
    /// Contents of the values.
    pub values: ValueRecipe,
    /// Settings of scans.
    pub scans: Scans,
    /// `threadcount`, if set: YCSB's outstanding operations. For the code that starts the clients
    /// ([`crate::ClientOptions`]).
    #[serde(rename = "threadcount")]
    pub thread_count: Option<u64>,
    /// `target`, if set and not 0: YCSB's target operations per second. For the code that starts
    /// the clients.
    #[serde(rename = "target")]
    pub target_rate: Option<f64>,
    /// Warnings about settings without effect, for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Most records and operations of a workload together: the limit of its key numbers.
pub const MAX_RECORDS: u64 = KEY_LIMIT;
/// Longest key in bytes.
const MAX_KEY_BYTES: u64 = 4096;
/// Most records to request from an iterator at a time.
const MAX_SCAN_BATCH: u64 = 1 << 20;
/// Default key length in bytes.
const DEFAULT_KEY_BYTES: u64 = 32;

impl CoreWorkload {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// Returns an error if a known property has an invalid value, several contradict each other, or
    /// a `levelhead.` property is unknown. Other unknown properties are warnings: real files have
    /// those of other bindings.
    pub fn from_properties(properties: &Properties) -> Result<Self, SettingsError> {
        let reader = Reader::new(properties);
        let mut warnings = known::check_names(properties)?;
        warn_of_ignored_settings(&reader, &mut warnings);
        let record_count = reader
            .optional("recordcount", 1..=KEY_LIMIT)?
            .ok_or_else(|| SettingsError::missing("recordcount"))?;
        let operation_count = operation_count(&reader, record_count)?;
        let insert_start = reader.number("insertstart", 0, 0..=record_count - 1)?;
        let to_load = record_count - insert_start;
        let insert_count = reader.number("insertcount", to_load, 1..=to_load)?;
        let mix = mix(&reader)?;
        let inserts = if mix.insert > 0.0 { operation_count } else { 0 };
        Ok(Self {
            record_count,
            operation_count,
            insert_start,
            insert_count,
            mix,
            update_reads: reader.choice(
                "levelhead.updatereads",
                false,
                &[("false", false), ("true", true)],
            )?,
            request_distribution: request_distribution(&reader, insert_count)?,
            keys: key_format(&reader, record_count.saturating_add(inserts))?,
            values: value_recipe(&reader)?,
            scans: scans(&reader)?,
            thread_count: reader.optional("threadcount", 1..=MAX_OUTSTANDING)?,
            target_rate: target_rate(&reader)?,
            warnings,
        })
    }
}

/// Returns the operations of a run. Inserts have numbers after those of the records, so the sum of
/// both is limited.
fn operation_count(reader: &Reader<'_>, record_count: u64) -> Result<u64, SettingsError> {
    let operations = reader.number("operationcount", 0, 0..=KEY_LIMIT)?;
    if operations <= KEY_LIMIT - record_count {
        return Ok(operations);
    }
    let allowed = format!("records ({record_count}) and operations up to {KEY_LIMIT} in all");
    Err(reader.refuse("operationcount", &operations.to_string(), allowed))
}

fn target_rate(reader: &Reader<'_>) -> Result<Option<f64>, SettingsError> {
    let rate = reader.optional("target", 0.0..=*RATES.end())?.filter(|rate| *rate > 0.0);
    match rate {
        Some(rate) if !RATES.contains(&rate) => {
            let allowed = "0 for none, or 0.000001 to 1e12 operations per second";
            Err(reader.refuse("target", reader.text("target").unwrap_or_default(), allowed))
        }
        rate => Ok(rate),
    }
}

/// Properties that compose the length of values from fields.
const FIELDS: [&str; 7] = [
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "minfieldlength",
    "mix_max_value_size",
    "value_k",
    "value_sigma",
];

/// Properties of the length of scans that `seeknexts` overrides.
const SCAN_LENGTHS: [&str; 6] = [
    "iter_k",
    "iter_sigma",
    "maxscanlength",
    "minscanlength",
    "mix_max_scan_len",
    "scanlengthdistribution",
];

/// Returns whether values are composed of fields: unless `levelhead.valuebytes` is set. If a file
/// sets that and the command line sets fields, the command line wins.
fn has_fields(reader: &Reader<'_>) -> bool {
    let bytes = "levelhead.valuebytes";
    let fields_are_typed = FIELDS.iter().any(|field| reader.is_typed(field));
    !reader.is_set(bytes) || (fields_are_typed && !reader.is_typed(bytes))
}

fn warn_of_ignored_settings(reader: &Reader<'_>, warnings: &mut Vec<String>) {
    warnings.extend(ignored::warnings(reader));
    if !has_fields(reader) {
        for field in FIELDS.into_iter().filter(|field| reader.is_set(field)) {
            let origin = reader.origin(field);
            let why = "levelhead.valuebytes sets the value length";
            warnings.push(format!("{origin}: {field} has no effect: {why}"));
        }
    }
    if reader.is_set("seeknexts") {
        for length in SCAN_LENGTHS.into_iter().filter(|length| reader.is_set(length)) {
            let origin = reader.origin(length);
            let why = "seeknexts sets the length of scans";
            warnings.push(format!("{origin}: {length} has no effect: {why}"));
        }
    }
    let request = reader.text("requestdistribution").unwrap_or("uniform");
    if reader.is_set("zipfian.theta") && !["zipfian", "latest"].contains(&request) {
        let origin = reader.origin("zipfian.theta");
        warnings.push(format!("{origin}: zipfian.theta has no effect: requests are {request}"));
    }
    if let Some(class) = reader.text("workload")
        && !class.ends_with("CoreWorkload")
        && class != "core"
    {
        let origin = reader.origin("workload");
        let why = "only the core workload is built in";
        warnings.push(format!("{origin}: workload={class} has no effect: {why}"));
    }
}

fn mix(reader: &Reader<'_>) -> Result<Mix, SettingsError> {
    let share = |name, default| reader.number(name, default, 0.0..=1e9);
    let mix = Mix {
        read: share("readproportion", 0.95)?,
        update: share("updateproportion", 0.05)?,
        insert: share("insertproportion", 0.0)?,
        scan: share("scanproportion", 0.0)?,
        read_modify_write: share("readmodifywriteproportion", 0.0)?,
        delete: share("deleteproportion", 0.0)?,
    };
    if mix.sum() > 0.0 {
        return Ok(mix);
    }
    let allowed = "a sum of all proportions above 0";
    Err(reader.refuse("readproportion", "0", allowed))
}

/// Returns the distribution over `records` loaded records.
fn request_distribution(
    reader: &Reader<'_>,
    records: u64,
) -> Result<RequestDistribution, SettingsError> {
    let hotspot = RequestDistribution::Hotspot {
        data_fraction: reader.number("hotspotdatafraction", 0.2, 0.0..=1.0)?,
        operation_fraction: reader.number("hotspotopnfraction", 0.8, 0.0..=1.0)?,
    };
    let exponential = RequestDistribution::Exponential {
        percentile: reader.number("exponential.percentile", 95.0, 0.01..=99.9999)?,
        fraction: reader.number("exponential.frac", 0.857_142_857_1, 1e-9..=1.0)?,
    };
    let (zipfian, latest) = match theta(reader)? {
        None => (RequestDistribution::Zipfian, RequestDistribution::Latest),
        Some(theta) => {
            (RequestDistribution::ZipfianOf { theta }, RequestDistribution::LatestOf { theta })
        }
    };
    let allowed = [
        ("uniform", RequestDistribution::Uniform),
        ("zipfian", zipfian),
        ("latest", latest),
        ("sequential", RequestDistribution::Sequential),
        ("hotspot", hotspot),
        ("exponential", exponential),
        ("keyranges", RequestDistribution::KeyRanges(mixgraph::key_ranges(reader)?)),
    ];
    let chosen = reader.choice("requestdistribution", RequestDistribution::Uniform, &allowed)?;
    if let RequestDistribution::KeyRanges(ranges) = &chosen {
        mixgraph::check_key_ranges(reader, ranges, records)?;
    }
    Ok(chosen)
}

/// Returns a skew that is not YCSB's. 1 is invalid for this form of the power law.
fn theta(reader: &Reader<'_>) -> Result<Option<f64>, SettingsError> {
    let theta = reader.optional("zipfian.theta", 0.01..=10.0)?;
    if theta.is_some_and(|theta| (theta - 1.0_f64).abs() < 1e-6) {
        let text = reader.text("zipfian.theta").unwrap_or_default();
        return Err(reader.refuse("zipfian.theta", text, "a number beside 1, such as 0.999"));
    }
    Ok(theta.filter(|theta| !is_ycsbs(*theta)))
}

/// Returns the format of keys. `zeropadding` sets the digits; it matters only if
/// `levelhead.keybytes` is not set.
fn key_format(reader: &Reader<'_>, keys: u64) -> Result<KeyFormat, SettingsError> {
    let prefix = reader.text("keyprefix").unwrap_or("user");
    let padding = reader.number("zeropadding", 1, 0..=MAX_KEY_BYTES / 2)?;
    let order = [("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)];
    let order = reader.choice("insertorder", InsertOrder::Hashed, &order)?;
    let shortest = prefix.len() as u64 + padding.max(1);
    if shortest > MAX_KEY_BYTES {
        let allowed = format!("a prefix that leaves keys within {MAX_KEY_BYTES} bytes");
        return Err(reader.refuse("keyprefix", prefix, allowed));
    }
    check_padding(reader, prefix, padding)?;
    let default = DEFAULT_KEY_BYTES.max(shortest);
    let key_bytes = reader.number("levelhead.keybytes", default, shortest..=MAX_KEY_BYTES)?;
    let digits = [("decimal", KeyDigits::Decimal), ("binary", KeyDigits::Binary)];
    let digits = reader.choice("levelhead.keydigits", KeyDigits::Decimal, &digits)?;
    let format = KeyFormat::with_digits(prefix, key_bytes as usize, order, digits);
    let format = format.expect("the length was checked to hold the prefix and a digit");
    if format.capacity() < keys {
        let room = format.capacity();
        let allowed = format!("a length with digits for {keys} keys; this one has them for {room}");
        return Err(reader.refuse("levelhead.keybytes", &key_bytes.to_string(), allowed));
    }
    Ok(format)
}

/// Checks that padding set on the command line fits the key length set by a file. The message then
/// points to the command line, not to the file.
fn check_padding(reader: &Reader<'_>, prefix: &str, padding: u64) -> Result<(), SettingsError> {
    let is_in_file = |name: &str| matches!(reader.set_at(name), Some(Origin::File { .. }));
    let key_bytes = reader.text("levelhead.keybytes").and_then(|text| text.parse::<u64>().ok());
    let room = key_bytes.and_then(|bytes| bytes.checked_sub(prefix.len() as u64));
    let Some(room) = room.filter(|_| is_in_file("levelhead.keybytes")) else { return Ok(()) };
    if padding <= room || reader.set_at("zeropadding").is_none() || is_in_file("zeropadding") {
        return Ok(());
    }
    let allowed = format!(
        "up to {room} digits, for keys of levelhead.keybytes={}",
        room + prefix.len() as u64
    );
    Err(reader.refuse("zeropadding", &padding.to_string(), allowed))
}

fn value_recipe(reader: &Reader<'_>) -> Result<ValueRecipe, SettingsError> {
    let forms = [("synthetic", ValueForm::Synthetic), ("bytes", ValueForm::Bytes)];
    let form = reader.choice("levelhead.values", ValueForm::Synthetic, &forms)?;
    let fields = reader.number("fieldcount", 10, 1..=1 << 20)?;
    let max = reader.number("fieldlength", 100, 0..=MAX_VALUE_BYTES / fields)?;
    let (max, fields) = (max as u32, fields as u32);
    let min = reader.number("minfieldlength", 1.min(max), 0..=max)?;
    let allowed = [
        ("constant", FieldLengths::Constant(max)),
        ("uniform", FieldLengths::Uniform { min, max }),
        ("zipfian", FieldLengths::Zipfian { min, max }),
        ("pareto", mixgraph::value_lengths(reader, fields)?),
    ];
    let default = FieldLengths::Constant(max);
    let lengths = reader.choice("fieldlengthdistribution", default, &allowed)?;
    let bytes = reader.optional("levelhead.valuebytes", 0..=MAX_VALUE_BYTES)?;
    Ok(match bytes.filter(|_| !has_fields(reader)) {
        Some(bytes) => ValueRecipe::new(1, FieldLengths::Constant(bytes as u32), form),
        None => ValueRecipe::new(fields, lengths, form),
    })
}

fn scans(reader: &Reader<'_>) -> Result<Scans, SettingsError> {
    let ends = [("false", ScanEnd::Length), ("true", ScanEnd::Bound)];
    Ok(Scans {
        lengths: scan_lengths(reader)?,
        batch: reader.number("scanbatch", 1, 0..=MAX_SCAN_BATCH)?.max(1),
        end: reader.choice("scanbound", ScanEnd::Length, &ends)?,
    })
}

fn scan_lengths(reader: &Reader<'_>) -> Result<ScanLengths, SettingsError> {
    let max = reader.number("maxscanlength", 1000, 1..=KEY_LIMIT)?;
    let min = reader.number("minscanlength", 1, 1..=max)?;
    let between = |distribution| ScanLengths { min, max, distribution };
    let uniform = between(LengthDistribution::Uniform);
    let allowed = [
        ("uniform", uniform),
        ("zipfian", between(LengthDistribution::Zipfian)),
        ("pareto", mixgraph::scan_lengths(reader)?),
    ];
    let lengths = reader.choice("scanlengthdistribution", uniform, &allowed)?;
    Ok(match reader.optional("seeknexts", 0..=KEY_LIMIT - 1)? {
        // The Seek also returns a record.
        Some(nexts) => ScanLengths { min: nexts + 1, max: nexts + 1, ..uniform },
        None => lengths,
    })
}

#[cfg(test)]
mod tests;
