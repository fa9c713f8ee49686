//! What a paper says beside what came out here.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::csv::Csv;
use super::verdict::{RULE, Verdict};

/// A statement of a paper and what came out here.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Names it in files: small letters, digits and `-`.
    pub id: String,
    /// What is compared.
    pub what: String,
    /// What the paper says, a value or a statement, with the place where it says so.
    pub paper: String,
    /// What came out here.
    pub ours: String,
    /// Whether the statement holds here.
    pub holds: Verdict,
    /// Why, or what the difference comes from.
    pub sentence: String,
    /// Whether it counts as a published claim, if it has a verdict: one that another row has too, under other
    /// conditions, counts once.
    pub counted: bool,
}

impl Comparison {
    /// The same as the claim of another row under other conditions.
    #[must_use]
    pub fn again(self) -> Self {
        Self { counted: false, ..self }
    }
}

const HEADINGS: [&str; 5] = ["what", "paper", "ours", "verdict", "why"];

/// Columns of a terminal.
const WIDTH: u16 = 100;

pub(super) fn table(comparisons: &[Comparison]) -> String {
    if comparisons.is_empty() {
        return "nothing to compare with a paper".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_FULL);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(HEADINGS);
    for one in comparisons {
        table.add_row([&one.what, &one.paper, &one.ours, one.holds.words(), &one.sentence]);
    }
    format!("{table}\n{}\n{RULE}", tally(comparisons))
}

/// How many published claims there are, and how many of them come to each verdict.
pub(super) fn counts(comparisons: &[Comparison]) -> (usize, [(Verdict, usize); 3]) {
    let counted = || comparisons.iter().filter(|one| one.counted);
    let count = |verdict| counted().filter(|one| one.holds == verdict).count();
    let counts = Verdict::OF_CLAIMS.map(|verdict| (verdict, count(verdict)));
    (counts.iter().map(|(_, count)| count).sum(), counts)
}

fn tally(comparisons: &[Comparison]) -> String {
    let (claims, counts) = counts(comparisons);
    let counts = counts.map(|(verdict, count)| format!("{}: {count}", verdict.words()));
    format!("Of {claims} published claims {}.", counts.join(", "))
}

pub(super) fn csv(comparisons: &[Comparison]) -> String {
    let headings = ["id", "what", "paper", "ours", "holds", "sentence"];
    let mut csv = Csv::new(headings.map(str::to_owned));
    for one in comparisons {
        csv.row(
            [&one.id, &one.what, &one.paper, &one.ours, one.holds.words(), &one.sentence]
                .map(|cell: &str| cell.to_owned()),
        );
    }
    csv.text()
}
