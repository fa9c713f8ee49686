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
    /// Whether its verdict counts.
    pub counted: Counted,
}

/// Whether a verdict counts among those of published claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// It does.
    Yes,
    /// Apart: a parameter of the model was set by the number that is claimed.
    Fitted,
    /// It does not: no paper states it, no run can contradict it, or another row has the same claim.
    No,
}

impl Counted {
    fn words(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Fitted => "fitted",
            Self::No => "no",
        }
    }
}

impl Comparison {
    /// The same as the claim of another row under other conditions.
    #[must_use]
    pub fn again(self) -> Self {
        Self { counted: Counted::No, ..self }
    }

    /// The same as a claim that rests on a fitted parameter.
    #[must_use]
    pub fn fitted(self) -> Self {
        Self { counted: Counted::Fitted, ..self }
    }

    fn counts(&self) -> Counted {
        if self.holds == Verdict::NotApplicable { Counted::No } else { self.counted }
    }

    /// What is to be added to the words of its verdict.
    pub(super) fn remark(&self) -> &'static str {
        match self.counted {
            Counted::Fitted => ", fitted",
            Counted::No if self.holds != Verdict::NotApplicable => ", not counted",
            _ => "",
        }
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
        let verdict = format!("{}{}", one.holds.words(), one.remark());
        table.add_row([&one.what, &one.paper, &one.ours, &verdict, &one.sentence]);
    }
    format!("{table}\n{}\n{RULE}", tally(comparisons))
}

/// How many claims are counted so, and how many of them come to each verdict.
pub(super) fn counts(comparisons: &[Comparison], so: Counted) -> (usize, [(Verdict, usize); 3]) {
    let counted = || comparisons.iter().filter(|one| one.counts() == so);
    let count = |verdict| counted().filter(|one| one.holds == verdict).count();
    (counted().count(), Verdict::OF_CLAIMS.map(|verdict| (verdict, count(verdict))))
}

fn tally(comparisons: &[Comparison]) -> String {
    let verdicts = |counts: [(Verdict, usize); 3]| {
        counts.map(|(verdict, count)| format!("{}: {count}", verdict.words())).join(", ")
    };
    let (claims, counted) = counts(comparisons, Counted::Yes);
    let text = format!("Of {claims} published claims {}.", verdicts(counted));
    match counts(comparisons, Counted::Fitted) {
        (0, _) => text,
        (claims, fitted) => format!("{text} Of {claims} fitted ones besides {}.", verdicts(fitted)),
    }
}

pub(super) fn csv(comparisons: &[Comparison]) -> String {
    let headings = ["id", "what", "paper", "ours", "holds", "counted", "sentence"];
    let mut csv = Csv::new(headings.map(str::to_owned));
    for one in comparisons {
        csv.row(
            [
                &one.id,
                &one.what,
                &one.paper,
                &one.ours,
                one.holds.words(),
                one.counts().words(),
                &one.sentence,
            ]
            .map(|cell: &str| cell.to_owned()),
        );
    }
    csv.text()
}
