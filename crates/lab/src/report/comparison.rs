//! What a paper says beside what came out here.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::csv::Csv;

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
}

/// Whether what a paper says holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// Its direction does, its size does not.
    Deviates,
    /// It does not.
    DoesNotHold,
    /// The experiment cannot tell.
    NotApplicable,
}

impl Verdict {
    /// All, from best to none.
    pub(super) const ALL: [Self; 4] =
        [Self::Holds, Self::Deviates, Self::DoesNotHold, Self::NotApplicable];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Deviates => "deviates",
            Self::DoesNotHold => "does not hold",
            Self::NotApplicable => "not applicable",
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
        table.add_row([
            Cell::new(&one.what),
            value(&one.paper),
            value(&one.ours),
            Cell::new(one.holds.words()),
            Cell::new(&one.sentence),
        ]);
    }
    table.to_string()
}

/// Numbers to the right.
fn value(text: &str) -> Cell {
    let alignment = if is_number(text) { CellAlignment::Right } else { CellAlignment::Left };
    Cell::new(text).set_alignment(alignment)
}

/// Whether a text is a number with at most a unit of one word, as in `3 900 us` or `+12 %`.
pub(super) fn is_number(text: &str) -> bool {
    let number = text.trim_start_matches(['+', '-', '<', '>', '~', ' ']);
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || " .,".contains(c));
    number.starts_with(|c: char| c.is_ascii_digit()) && !unit.trim().contains(' ')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_sentences() {
        for number in ["2", "3 900 us", "+12 %", "< 0.1 %", "1.9x", "-4.5"] {
            assert!(is_number(number), "{number}");
        }
        for sentence in ["73 % lower (Fig. 8)", "-", "", "rises", "2 of 3 reads"] {
            assert!(!is_number(sentence), "{sentence}");
        }
    }
}
