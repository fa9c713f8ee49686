//! Ids of figures, and names in their titles.

use std::collections::BTreeSet;

use crate::Figure;

/// Maximum length of an id before its suffix; ids are file names.
const MOST_LETTERS: usize = 100;

/// Gives each figure a unique id that is short enough for the name of a file.
pub(super) fn with_own_ids(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut taken = BTreeSet::new();
    for figure in &mut figures {
        let mut own: String = figure.id.chars().take(MOST_LETTERS).collect();
        let short = own.clone();
        for number in 2.. {
            if taken.insert(own.clone()) {
                break;
            }
            own = format!("{short}-{number}");
        }
        figure.id = own;
    }
    figures
}

/// Returns an id of a figure: `prefix`, and `name` in lower case with `-` for all characters but
/// letters and digits.
pub(super) fn id(prefix: &str, name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("{prefix}-{}", name.chars().map(letter).collect::<String>())
}

/// Returns the subject of a number: its name without `end`, such as `reads: read` of
/// `reads: read operations/s`.
pub(super) fn subject<'a>(name: &'a str, end: &str) -> &'a str {
    name.strip_suffix(end).unwrap_or(name).trim_end_matches([' ', ':'])
}
