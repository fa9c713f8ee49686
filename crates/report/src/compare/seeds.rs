//! Runs that differ only in the seed: the mean of each number, and its confidence interval.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::compared::Compared;
use super::differences::{self, Difference};
use super::numbers::number_text;
use crate::Table;
use crate::resolution::MARK;
use crate::statistics::Estimate;

/// Runs that differ only in the seed.
pub(super) struct OverSeeds {
    name: String,
    /// The values of the other differences, in the order of these.
    values: Vec<String>,
    /// Number of runs that were completed without errors.
    seeds: usize,
    numbers: BTreeMap<String, OfNumber>,
}

struct OfNumber {
    estimate: Estimate,
    /// Whether the number is a percentile of too few samples in any of the runs.
    is_thin: bool,
}

impl OverSeeds {
    /// Returns the mean and its interval as text for people.
    fn text(&self, number: &str) -> String {
        let Some(OfNumber { estimate, is_thin }) = self.numbers.get(number) else {
            return differences::NONE.to_owned();
        };
        let mark = if *is_thin { MARK } else { "" };
        let interval = estimate.ci95.map(|ci95| format!(" \u{b1} {}", number_text(ci95)));
        format!("{}{}{mark}", number_text(estimate.mean), interval.unwrap_or_default())
    }
}

/// Returns all differences except the seed.
fn others(of: &Compared) -> impl Iterator<Item = &Difference> {
    of.differences.iter().filter(|difference| difference.name != differences::SEED)
}

/// Returns the groups of runs that differ only in their seeds; nothing if no group has two runs.
pub(super) fn over_seeds(of: &Compared) -> Vec<OverSeeds> {
    let is_seed = |difference: &Difference| difference.name == differences::SEED;
    let Some(seed) = of.differences.iter().position(is_seed) else { return Vec::new() };
    let names = of.number_names();
    let groups = of.groups(&[seed]).into_iter().filter_map(|(name, runs)| {
        let whole: Vec<usize> = runs.into_iter().filter(|run| of.runs[*run].is_whole()).collect();
        let first = *whole.first()?;
        let values = others(of).map(|difference| difference.values[first].clone()).collect();
        let numbers = numbers(of, &names, &whole);
        Some(OverSeeds { name, values, seeds: whole.len(), numbers })
    });
    let groups: Vec<OverSeeds> = groups.collect();
    if groups.iter().all(|group| group.seeds < 2) { Vec::new() } else { groups }
}

fn numbers(of: &Compared, names: &[String], runs: &[usize]) -> BTreeMap<String, OfNumber> {
    let estimate = |name: &String| {
        let found: Vec<_> = runs.iter().filter_map(|run| of.runs[*run].number(name)).collect();
        // A mean over some of the seeds would cover only the runs that happen to have the number.
        if found.len() < runs.len() {
            return None;
        }
        let values: Vec<f64> = found.iter().map(|number| number.value).collect();
        let is_thin = found.iter().any(|number| number.is_thin);
        Some((name.clone(), OfNumber { estimate: Estimate::of(&values)?, is_thin }))
    };
    names.iter().filter_map(estimate).collect()
}

/// Returns a table with a row per group and the numbers of the summary; `None` without groups.
pub(super) fn table(of: &Compared, groups: &[OverSeeds]) -> Option<Table> {
    let names: Vec<String> = of.number_names().into_iter().filter(|name| of.is_key(name)).collect();
    let headings = ["over seeds", "seeds"].into_iter().map(str::to_owned);
    let row = |group: &OverSeeds| {
        let numbers = names.iter().map(|name| group.text(name));
        [group.name.clone(), group.seeds.to_string()].into_iter().chain(numbers).collect()
    };
    (!groups.is_empty()).then(|| Table {
        id: "seeds".to_owned(),
        title: "Means over the seeds, with 95 % confidence intervals (Student's t)".to_owned(),
        headings: headings.chain(names.iter().cloned()).collect(),
        rows: groups.iter().map(row).collect(),
    })
}

/// Returns a CSV with a row per group and all numbers: the mean, and half the width of its
/// interval.
pub(super) fn csv(of: &Compared, groups: &[OverSeeds]) -> Option<String> {
    let names = of.number_names();
    let headings = [String::from("runs")]
        .into_iter()
        .chain(others(of).map(|difference| difference.name.clone()))
        .chain([String::from("seeds")])
        .chain(names.iter().flat_map(|name| [format!("{name} mean"), format!("{name} ci95")]));
    let rows = groups.iter().map(|group| {
        let text = |number: Option<f64>| number.map_or(String::new(), |n| n.to_string());
        let numbers = names.iter().flat_map(|name| {
            let estimate = group.numbers.get(name).map(|number| number.estimate);
            [estimate.map(|of| of.mean), estimate.and_then(|of| of.ci95)].map(text)
        });
        [group.name.clone()]
            .into_iter()
            .chain(group.values.iter().cloned())
            .chain([group.seeds.to_string()])
            .chain(numbers)
            .collect()
    });
    (!groups.is_empty()).then(|| crate::csv::csv(headings, rows))
}

/// Returns the same numbers for programs.
pub(super) fn json(of: &Compared, groups: &[OverSeeds]) -> Value {
    let one = |group: &OverSeeds| {
        let inputs = others(of).map(|difference| difference.name.as_str()).zip(&group.values);
        let number = |(name, of): (&String, &OfNumber)| {
            let mut number = json!(of.estimate);
            if of.is_thin {
                number["too_few_samples"] = true.into();
            }
            (name.clone(), number)
        };
        json!({
            "runs": group.name,
            "inputs": inputs.collect::<BTreeMap<_, _>>(),
            "seeds": group.seeds,
            "numbers": group.numbers.iter().map(number).collect::<serde_json::Map<_, _>>(),
        })
    };
    groups.iter().map(one).collect()
}
