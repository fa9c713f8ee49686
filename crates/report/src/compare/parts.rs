//! The division of runs among several figures, if there are too many for one.

use std::collections::BTreeSet;

use super::compared::Compared;
use super::differences::{Difference, SEED};

/// Maximum number of figures of the same quantity.
const MOST_PARTS: usize = 12;

/// Maximum number of lines in a plot; more cannot be told apart.
pub(super) const MOST_LINES: usize = 12;
/// Maximum number of bars in a plot; more would merge into each other.
pub(super) const MOST_BARS: usize = 48;

/// The items of one figure.
pub(super) struct Part<T> {
    /// The names that the runs have in common; `None` if there is no other figure of the same
    /// quantity.
    pub name: Option<String>,
    pub items: Vec<T>,
    /// A sentence about omitted items.
    note: Option<String>,
}

impl<T> Part<T> {
    /// Returns the part with each item converted by `change`.
    pub(super) fn map<U>(self, change: impl FnMut(T) -> U) -> Part<U> {
        let items = self.items.into_iter().map(change).collect();
        Part { name: self.name, items, note: self.note }
    }

    /// Returns a title or an id with the part's name.
    pub(super) fn named(&self, text: &str) -> String {
        self.name.as_ref().map_or(text.to_owned(), |name| format!("{text}, {name}"))
    }

    /// Returns a caption with the sentence about omitted items.
    pub(super) fn captioned(&self, text: &str) -> String {
        self.note.as_ref().map_or(text.to_owned(), |note| format!("{text} {note}"))
    }
}

/// Divides `items` into figures of at most `most` items: by the names of drive, job and so on if
/// these differ, and then by an even selection. `run` returns one of the runs of an item.
pub(super) fn parts<T>(
    of: &Compared,
    items: Vec<T>,
    run: impl Fn(&T) -> usize,
    most: usize,
) -> Vec<Part<T>> {
    if items.len() <= most {
        return vec![Part { name: None, items, note: None }];
    }
    let (items, seed) = of_one_seed(of, items, &run);
    let names = |run: usize, by: &[&Difference]| {
        by.iter().map(|difference| difference.label(run)).collect::<Vec<_>>().join(", ")
    };
    let by = dividing(of, &items, &run, most);
    let mut parts: Vec<Part<T>> = Vec::new();
    for item in items {
        let name = names(run(&item), &by);
        match parts.iter_mut().find(|part| part.name.as_deref() == Some(name.as_str())) {
            Some(part) => part.items.push(item),
            None => parts.push(Part { name: Some(name), items: vec![item], note: None }),
        }
    }
    if by.is_empty() {
        for part in &mut parts {
            part.name = None;
        }
    }
    parts.into_iter().map(|part| thinned(part, most, seed.as_deref())).collect()
}

/// Returns the items of the first seed, with a sentence about this if there are several seeds.
fn of_one_seed<T>(
    of: &Compared,
    items: Vec<T>,
    run: &impl Fn(&T) -> usize,
) -> (Vec<T>, Option<String>) {
    let seeds = of.differences.iter().find(|difference| difference.name == SEED);
    let (Some(seeds), Some(first)) = (seeds, items.first().map(run)) else { return (items, None) };
    let seed = &seeds.values[first];
    let all = items.len();
    let kept: Vec<T> = items.into_iter().filter(|item| seeds.values[run(item)] == *seed).collect();
    let words = (kept.len() < all).then(|| format!("Only runs of seed {seed} are shown."));
    (kept, words)
}

/// Returns the names that divide the items into several figures, but not too many: all names
/// together, or one of them; nothing if none does.
fn dividing<'a, T>(
    of: &'a Compared,
    items: &[T],
    run: &impl Fn(&T) -> usize,
    most: usize,
) -> Vec<&'a Difference> {
    if items.len() <= most {
        return Vec::new();
    }
    let names: Vec<&Difference> = of.differences.iter().filter(|d| d.is_name()).collect();
    let single = names.iter().map(|name| vec![*name]);
    let mut choices = [names.clone()].into_iter().chain(single);
    let is_right = |choice: &Vec<&Difference>| {
        let values = items
            .iter()
            .map(|item| choice.iter().map(|d| &d.values[run(item)]).collect::<Vec<_>>())
            .collect::<BTreeSet<_>>();
        (2..=MOST_PARTS).contains(&values.len())
    };
    choices.find(is_right).unwrap_or_default()
}

/// Reduces a part to at most `most` items, which are evenly selected from the first to the last.
fn thinned<T>(mut part: Part<T>, most: usize, seed: Option<&str>) -> Part<T> {
    let all = part.items.len();
    let mut notes: Vec<String> = seed.map(str::to_owned).into_iter().collect();
    if all > most {
        let last = most.max(2) - 1;
        let kept: BTreeSet<usize> = (0..most).map(|n| n * (all - 1) / last).collect();
        let mut at = 0..;
        part.items.retain(|_| at.next().is_some_and(|at| kept.contains(&at)));
        notes.push(format!("Shown are {} of {all}, evenly chosen.", part.items.len()));
    }
    if !notes.is_empty() {
        notes.push("runs.csv has the numbers of all.".to_owned());
    }
    part.note = (!notes.is_empty()).then(|| notes.join(" "));
    part
}
