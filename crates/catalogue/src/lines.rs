//! Finds the line of the key that a problem is about in a TOML file.
//!
//! By convention a problem begins with its key, with as many sections as needed to be unambiguous
//! (`timing.read_us is ...`, `sets must ...`). For an array of tables the number of the element and
//! a colon precede the key (`stream 2 (writes): depth = 0: ...`).

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns the line, counted from 1, of the key that `problem` begins with; `None` if there is no
/// such key, or several.
pub(crate) fn line_of(text: &str, problem: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let offset = match element(&root, problem) {
        Some((table, offset, rest)) => first_key(table, rest).unwrap_or(offset),
        None => first_key(&root, problem)?,
    };
    Some(text[..offset].matches('\n').count() + 1)
}

/// Returns the table that `stream 2 (writes): ...` is about, its offset, and the text after the
/// colon.
fn element<'t, 'p>(
    root: &'t DeTable<'_>,
    problem: &'p str,
) -> Option<(&'t DeTable<'t>, usize, &'p str)> {
    let (place, rest) = problem.split_once(": ")?;
    let mut words = place.split(' ');
    let (name, number) = (words.next()?, words.next()?.parse::<usize>().ok()?);
    let (_, value) = root.iter().find(|(key, _)| key.get_ref() == name)?;
    let element = value.get_ref().as_array()?.get(number.checked_sub(1)?)?;
    Some((element.get_ref().as_table()?, element.span().start, rest))
}

/// Returns the offset of the only key whose dotted path ends with the first word of `problem`.
fn first_key(root: &DeTable<'_>, problem: &str) -> Option<usize> {
    let word = problem.split([' ', ':', '=']).next()?;
    let path: Vec<&str> = word.split('.').collect();
    let mut found = Vec::new();
    search(root, &mut Vec::new(), &path, &mut found);
    match found[..] {
        [offset] => Some(offset),
        _ => None,
    }
}

fn search<'t>(
    table: &'t DeTable<'_>,
    above: &mut Vec<&'t str>,
    path: &[&str],
    found: &mut Vec<usize>,
) {
    for (key, value) in table {
        above.push(key.get_ref());
        if above.ends_with(path) {
            found.push(key.span().start);
        }
        let value: &Spanned<DeValue<'_>> = value;
        if let DeValue::Table(inner) = value.get_ref() {
            search(inner, above, path, found);
        }
        above.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn a_key_is_found_by_the_end_of_its_path() {
        let text =
            "sets = 1\n[timing]\nread_us = 1\ncommand_us = 2\n\n[a.controller]\ncommand_us = 3";
        let table = [
            ("sets must divide channels", Some(1)),
            ("timing.read_us is 0, must be 1", Some(3)),
            ("read_us: no", Some(3)),
            ("timing.command_us is 9", Some(4)),
            ("a.controller.command_us is 9", Some(7)),
            ("controller.command_us is 9", Some(7)),
            ("command_us is ambiguous", None),
            ("the drive is too small", None),
        ];
        for (problem, line) in table {
            assert_eq!(line_of(text, problem), line, "{problem}");
        }
    }

    #[test]
    fn elements_of_an_array_are_found_by_their_number() {
        let text = "name = \"x\"\n[[stream]]\nrw = 1\n[[stream]]\nname = \"w\"\ndepth = 0\n";
        assert_eq!(line_of(text, "stream 2 (w): depth = 0: allowed is 1"), Some(6));
        assert_eq!(line_of(text, "stream 1: it never ends"), Some(2));
        assert_eq!(line_of(text, "name: no"), Some(1));
    }
}
