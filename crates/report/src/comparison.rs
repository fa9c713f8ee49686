//! Published claims beside the measured values.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::csv::Csv;
use crate::verdict::{RULE, Verdict};

/// A claim of a paper and the measured value.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Identifier of the comparison in files: lower-case letters, digits and `-`.
    pub id: String,
    /// The compared quantity.
    pub what: String,
    /// The published value or statement, with its place in the paper.
    pub paper: String,
    /// The measured value.
    pub ours: String,
    /// Whether the claim holds here.
    pub holds: Verdict,
    /// The reason for the verdict, or for the difference.
    pub sentence: String,
    /// Whether the verdict counts.
    pub counted: Counted,
}

/// Whether a verdict counts among the verdicts on published claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// The verdict counts.
    Yes,
    /// The verdict is counted separately, because the claimed number set a parameter of the model.
    Fitted,
    /// The verdict does not count: no paper states the claim, no run can contradict the claim, or
    /// another row has the same claim.
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
    /// Marks the comparison as a claim that another row has under other conditions.
    #[must_use]
    pub fn again(self) -> Self {
        Self { counted: Counted::No, ..self }
    }

    /// Marks the comparison as a claim that depends on a fitted parameter.
    #[must_use]
    pub fn fitted(self) -> Self {
        Self { counted: Counted::Fitted, ..self }
    }

    fn counts(&self) -> Counted {
        if self.holds == Verdict::NotApplicable { Counted::No } else { self.counted }
    }

    /// Returns the text that follows the words of the verdict.
    pub(super) fn remark(&self) -> &'static str {
        match self.counted {
            Counted::Fitted => ", fitted",
            Counted::No if self.holds != Verdict::NotApplicable => ", not counted",
            _ => "",
        }
    }
}

const HEADINGS: [&str; 5] = ["what", "paper", "ours", "verdict", "why"];

/// Width of the terminal, in columns.
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

/// Returns the number of comparisons with this [`Counted`], and their number for each verdict.
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
