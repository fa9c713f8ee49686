//! Suggestions for mistyped names.

/// Returns the candidate that is most similar to `word`, if one is similar enough: at most one edit
/// (a letter omitted, inserted, changed or swapped with its neighbour) per three letters, but at
/// least one. Of two equally similar candidates the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    let distances = candidates.into_iter().map(|name| (distance(word, name), name));
    let near = distances.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns ` (did you mean NAME?)`, or an empty string.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

/// Returns the edit distance of two words (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let names = ["readproportion", "recordcount", "gc_start", "fill", "pink", "hash"];
        for (word, meant) in [
            ("readpropotion", Some("readproportion")),
            ("recordcuont", Some("recordcount")),
            ("gc_strat", Some("gc_start")),
            ("GC_START", Some("gc_start")),
            ("fil", Some("fill")),
            ("plink", Some("pink")),
            ("windows", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        assert_eq!(did_you_mean("pnik", names), " (did you mean pink?)");
    }
}
