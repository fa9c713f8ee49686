//! The inputs that differ between runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::finished::Finished;

/// An input and its value in each run.
pub(super) struct Difference {
    pub name: String,
    /// The values in the order of the runs; `-` for a missing value. A run without a result has the
    /// requested values.
    pub values: Vec<String>,
}

impl Difference {
    /// Returns the values as numbers, `None` for a missing value; returns `None` if any value is
    /// not a number.
    pub(super) fn numbers(&self) -> Option<Vec<Option<f64>>> {
        let number = |text: &String| match text.as_str() {
            NONE => Some(None),
            text => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Some),
        };
        self.values.iter().map(number).collect()
    }

    /// Returns a rank for each run, the same for the same value. Numbers are ranked by size, other
    /// values by first occurrence.
    pub(super) fn ranks(&self) -> Vec<usize> {
        let mut values: Vec<&String> = Vec::new();
        for value in &self.values {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if self.numbers().is_some() {
            let number = |text: &String| text.parse().unwrap_or(f64::NEG_INFINITY);
            values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        let rank = |value| values.iter().position(|other| *other == value).unwrap_or(0);
        self.values.iter().map(rank).collect()
    }

    /// Whether the value is a name, such as that of a drive or of a job.
    pub(super) fn is_name(&self) -> bool {
        NAMES.contains(&self.name.as_str()) && ![RECORDS, SEED].contains(&self.name.as_str())
    }

    /// Returns the label of a run; `None` for a key that the run does not have.
    pub(super) fn label_if_any(&self, run: usize) -> Option<String> {
        (self.is_name() || self.values[run] != NONE).then(|| self.label(run))
    }

    /// Returns the value of a run as it appears in a legend.
    pub(super) fn label(&self, run: usize) -> String {
        let value = &self.values[run];
        if self.is_name() { value.clone() } else { format!("{}={value}", self.name) }
    }
}

/// The text for a missing value.
pub(super) const NONE: &str = "-";

pub(super) const SEED: &str = "seed";
const RECORDS: &str = "records";

/// The fields of a result that are compared besides its inputs.
const NAMES: [&str; 8] =
    ["configuration", "design", "device", "profile", "job", "workload", RECORDS, SEED];

/// Properties that repeat a name or an option.
const SAID: [&str; 3] = ["recordcount", "threadcount", "target"];

/// Returns the inputs that differ between runs. Omits the keys of a file that its name determines:
/// no two runs have files of the same name with different values of such a key.
pub(super) fn between(runs: &[Finished]) -> Vec<Difference> {
    let named = NAMES.into_iter().filter_map(|name| {
        difference(runs, name, runs.iter().map(|run| run.json.get(name).map(text)).collect())
    });
    let inputs: Vec<BTreeMap<String, String>> = runs.iter().map(inputs).collect();
    let names: BTreeSet<&String> = inputs.iter().flat_map(BTreeMap::keys).collect();
    let told: Vec<&String> =
        names.into_iter().filter(|name| !is_told(runs, &inputs, name)).collect();
    let columns = columns(&told, &inputs);
    let of_inputs = columns.iter().filter_map(|paths| {
        let name = column_name(paths, &columns);
        let value = |of: &BTreeMap<String, String>| {
            paths.iter().find_map(|path| of.get(path.as_str()).cloned())
        };
        difference(runs, name, inputs.iter().map(value).collect())
    });
    named.chain(of_inputs).collect()
}

/// Groups the paths of inputs that share a column: designs and drives of different kinds have the
/// same key at different paths (`engine.gc_start`, `hash.gc_start`), and no run has two of these
/// paths.
fn columns<'a>(told: &[&'a String], inputs: &[BTreeMap<String, String>]) -> Vec<Vec<&'a String>> {
    let excludes = |a: &str, b: &str| {
        kind(a) == kind(b)
            && last(a) == last(b)
            && inputs.iter().all(|of| !(of.contains_key(a) && of.contains_key(b)))
    };
    let mut columns: Vec<Vec<&String>> = Vec::new();
    for path in told {
        let fitting = columns.iter_mut().find(|column| column.iter().all(|o| excludes(o, path)));
        match fitting {
            Some(column) => column.push(path),
            None => columns.push(vec![path]),
        }
    }
    columns
}

/// Returns the key without the kind of its file, or the whole path if several columns would have
/// this name.
fn column_name<'a>(paths: &[&'a String], columns: &[Vec<&String>]) -> &'a str {
    let name = short(paths);
    let same = columns.iter().filter(|other| short(other) == name);
    if same.count() == 1 { name } else { paths[0] }
}

fn short<'a>(paths: &[&'a String]) -> &'a str {
    match paths {
        [only] => after_kind(only),
        several => last(several[0]),
    }
}

fn kind(input: &str) -> &str {
    input.split_once('.').map_or(input, |(kind, _)| kind)
}

fn last(input: &str) -> &str {
    input.rsplit_once('.').map_or(input, |(_, last)| last)
}

/// Returns the path of a key without the kind of its file.
fn after_kind(input: &str) -> &str {
    input.split_once('.').map_or(input, |(_, rest)| rest)
}

/// Whether an input needs no column of its own, because a name or another input determines its
/// value.
fn is_told(runs: &[Finished], inputs: &[BTreeMap<String, String>], input: &str) -> bool {
    let (kind, key) = input.split_once('.').unwrap_or((input, ""));
    if ["name", "description"].contains(&key) || SAID.contains(&key) {
        return true;
    }
    let name = |run: &Finished| match kind {
        "properties" => run.json.get("workload").map(text),
        "options" => None,
        kind => run.json["inputs"][kind].get("name").map(text),
    };
    let mut by_name: BTreeMap<Option<String>, Option<&String>> = BTreeMap::new();
    let runs = runs.iter().zip(inputs).filter(|(run, _)| run.has_result());
    let is_varied = runs
        .map(|(run, of)| (name(run), of.get(input)))
        .any(|(name, value)| *by_name.entry(name).or_insert(value) != value);
    let has_other_names = by_name.len() > 1;
    has_other_names && !is_varied && key != "operationcount"
}

/// Returns the values of an input, unless all runs have the same. A run without a result has the
/// requested value.
fn difference(runs: &[Finished], name: &str, values: Vec<Option<String>>) -> Option<Difference> {
    let values = runs.iter().zip(values).map(|(run, value)| match value {
        None if !run.has_result() => run.asked(name).map(Some),
        value => Some(value),
    });
    let values: Vec<Option<Option<String>>> = values.collect();
    let known: BTreeSet<&Option<String>> = values.iter().flatten().collect();
    let values = values.iter().map(|value| value.clone().flatten());
    let values = values.map(|value| value.unwrap_or_else(|| NONE.to_owned())).collect();
    (known.len() > 1).then(|| Difference { name: name.to_owned(), values })
}

fn inputs(run: &Finished) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    flatten(&run.json["inputs"], "", &mut all);
    all
}

fn flatten(value: &Value, path: &str, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(value, &path, all);
            }
        }
        // Streams of a job: the path has the name of the stream only if there are several.
        Value::Array(tables) if !tables.is_empty() && tables.iter().all(Value::is_object) => {
            for (table, number) in tables.iter().zip(1..) {
                let name = table["name"].as_str().map_or_else(|| number.to_string(), str::to_owned);
                let is_only = tables.len() == 1;
                let path = if is_only { path.to_owned() } else { format!("{path}.{name}") };
                flatten(table, &path, all);
            }
        }
        Value::Null => {}
        value => {
            all.insert(path.to_owned(), text(value));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
