//! What went into runs differently.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Finished;

/// Something that went in, and what it was in each run.
pub(super) struct Difference {
    pub name: String,
    /// In the order of the runs; `-` where there is none.
    pub values: Vec<String>,
}

impl Difference {
    /// The values as numbers, if all are.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        let number = |text: &String| text.parse().ok().filter(|number: &f64| number.is_finite());
        self.values.iter().map(number).collect()
    }
}

/// What results name beside their inputs.
const NAMES: [&str; 8] =
    ["configuration", "design", "device", "profile", "job", "workload", "records", "seed"];

/// Properties that are among the names or options already.
const SAID: [&str; 3] = ["recordcount", "threadcount", "target"];

/// What differs between runs. Of files with different names the name is told, and not each key.
pub(super) fn between(runs: &[Finished]) -> Vec<Difference> {
    let named = NAMES.into_iter().filter_map(|name| {
        difference(name, runs.iter().map(|run| run.json.get(name).map(text)).collect())
    });
    let inputs: Vec<BTreeMap<String, String>> = runs.iter().map(inputs).collect();
    let names: BTreeSet<&String> = inputs.iter().flat_map(BTreeMap::keys).collect();
    let of_inputs = names.into_iter().filter(|name| !is_told(runs, name)).filter_map(|name| {
        let shown = name.split_once('.').map_or(name.as_str(), |(_, rest)| rest);
        difference(shown, inputs.iter().map(|of| of.get(name).cloned()).collect())
    });
    named.chain(of_inputs).collect()
}

/// Whether the name of its file says so already, or another name.
fn is_told(runs: &[Finished], input: &str) -> bool {
    let (kind, key) = input.split_once('.').unwrap_or((input, ""));
    let name = |run: &Finished| match kind {
        "properties" => run.json.get("workload").cloned(),
        "options" => None,
        kind => run.json["inputs"][kind].get("name").cloned(),
    };
    let has_other_names = runs.iter().any(|run| name(run) != name(&runs[0]));
    let is_text = ["name", "description"].contains(&key);
    has_other_names && key != "operationcount" || is_text || SAID.contains(&key)
}

fn difference(name: &str, values: Vec<Option<String>>) -> Option<Difference> {
    let is_same = values.iter().all(|value| *value == values[0]);
    let values = values.into_iter().map(|value| value.unwrap_or_else(|| "-".to_owned())).collect();
    (!is_same).then(|| Difference { name: name.to_owned(), values })
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
        // Streams of a job: by the key that differs, and by their names where there are several.
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
