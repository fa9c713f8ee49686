//! Runs that are compared, and the inputs that differ between them.

use std::collections::BTreeSet;

use super::differences::{self, Difference};
use super::finished::Finished;
use super::numbers::Number;

/// Runs that are compared.
pub(super) struct Compared {
    /// At least two runs, all of benches or all of jobs.
    pub runs: Vec<Finished>,
    /// The inputs that differ.
    pub differences: Vec<Difference>,
    /// Whether the names of the runs contain their differences.
    pub names_tell: bool,
}

impl Compared {
    /// Compares the inputs of runs. `names_tell` is whether the names of the runs contain their
    /// differences.
    ///
    /// # Errors
    /// As [`SideBySide::new`](super::SideBySide::new).
    pub(super) fn new(runs: Vec<Finished>, names_tell: bool) -> Result<Self, String> {
        if runs.len() < 2 {
            return Err("there is nothing to compare: give two results and more".to_owned());
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = runs.iter().find(|run| !names.insert(&run.name)) {
            return Err(format!("{} is named twice", twice.name));
        }
        let mut with_results = runs.iter().filter(|run| run.has_result());
        let of_kind = |is_job| with_results.clone().find(|run| run.is_job == is_job);
        if let (Some(bench), Some(job)) = (of_kind(false), of_kind(true)) {
            return Err(format!(
                "{} is of levelhead bench and {} of levelhead device: they have no numbers in common",
                bench.name, job.name
            ));
        }
        if !names_tell && with_results.next().is_none() {
            return Err("none of these runs has a result: there is nothing to compare".to_owned());
        }
        let differences = differences::between(&runs);
        Ok(Self { runs, differences, names_tell })
    }

    /// Returns a line for each run that was refused or failed, and a line with the number of runs
    /// that were not run.
    pub(super) fn failures(&self) -> Vec<String> {
        let words = |run: &Finished| {
            let (name, reason) = (&run.name, run.reason()?);
            match run.status() {
                "not run" => None,
                "refused" => Some(format!("{name} was refused: {reason}")),
                _ if run.has_result() => Some(format!(
                    "{name} failed, its numbers are of what was done until then: {reason}"
                )),
                _ => Some(format!("{name} failed: {reason}")),
            }
        };
        let failed = self.runs.iter().filter_map(words);
        let missing = self.runs.iter().filter(|run| run.status() == "not run").count();
        let missing = (missing > 0).then(|| format!("runs that were not run: {missing}"));
        failed.chain(missing).collect()
    }

    /// Returns the names of the numbers of all runs, in order. Omits counters that are zero in
    /// every run.
    pub(super) fn number_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for run in &self.runs {
            // Most runs have the same names.
            if run.numbers.iter().map(|number| &number.name).eq(&names) {
                continue;
            }
            let mut at = 0;
            for number in &run.numbers {
                let place = names.iter().position(|name| *name == number.name);
                if place.is_none() {
                    names.insert(at, number.name.clone());
                }
                at = place.unwrap_or(at) + 1;
            }
        }
        let says_something = |number: &Number| !number.is_count || number.value > 0.0;
        names.retain(|name| {
            self.runs.iter().any(|run| run.number(name).is_some_and(says_something))
        });
        names
    }

    /// Whether the summary includes the number.
    pub(super) fn is_key(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.number(name).is_some_and(|number| number.is_key))
    }

    /// Returns the groups of runs that differ only in the differences with the indices `across`,
    /// with a name for each group. Numeric values are in ascending order.
    pub(super) fn groups(&self, across: &[usize]) -> Vec<(String, Vec<usize>)> {
        let others: Vec<&Difference> = self
            .differences
            .iter()
            .enumerate()
            .filter_map(|(at, other)| (!across.contains(&at)).then_some(other))
            .collect();
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let ranks: Vec<Vec<usize>> = others.iter().map(|other| other.ranks()).collect();
        for run in 0..self.runs.len() {
            let place: Vec<usize> = ranks.iter().map(|ranks| ranks[run]).collect();
            match groups.iter_mut().find(|(of, _)| *of == place) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((place, vec![run])),
            }
        }
        groups.sort();
        let name = |runs: &[usize]| {
            let labels: Vec<String> =
                others.iter().filter_map(|other| other.label_if_any(runs[0])).collect();
            if labels.is_empty() { "all runs".to_owned() } else { labels.join(", ") }
        };
        groups.into_iter().map(|(_, runs)| (name(&runs), runs)).collect()
    }
}
