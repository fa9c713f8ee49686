//! Several runs as one JSON object.

use anyhow::anyhow;
use report::compare::{Finished, SideBySide};
use serde_json::{Value, json};

/// A run in JSON output.
pub(crate) struct OneJson(serde_json::Result<Value>);

impl OneJson {
    /// Creates it from a run. `result` is its `result.json`, if it has one.
    pub(crate) fn new(run: &Finished, result: Option<impl AsRef<str>>) -> Self {
        let mut one = json!({ "name": run.name, "status": run.status() });
        if let Some(reason) = run.reason() {
            one["reason"] = reason.into();
        }
        let result = result.map(|text| serde_json::from_str::<Value>(text.as_ref()));
        Self(result.transpose().map(|result| {
            if let Some(result) = result {
                one["result"] = result;
            }
            one
        }))
    }
}

/// Returns the results as one JSON object.
pub(crate) fn json_of(runs: &[OneJson], of: Option<&SideBySide>) -> anyhow::Result<String> {
    let mut all = json!({ "runs": [] });
    for OneJson(one) in runs {
        match (one, all["runs"].as_array_mut()) {
            (Ok(one), Some(list)) => list.push(one.clone()),
            (Err(error), _) => return Err(anyhow!("a result is no JSON: {error}")),
            (Ok(_), None) => {}
        }
    }
    if let Some(seeds) = of.and_then(SideBySide::seeds_json) {
        all["seeds"] = seeds;
    }
    Ok(serde_json::to_string_pretty(&all)?)
}
