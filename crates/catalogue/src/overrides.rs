//! Keys of files that are overridden on the command line.

use toml::{Table, Value};

use crate::keys::Key;

/// A key and its new value.
#[derive(Clone, PartialEq, Debug)]
pub struct Override {
    /// The key as given: with as many sections as needed, and the number of an element if only that
    /// one is meant (`stream.2.depth`).
    pub key: String,
    /// The value: parsed as TOML if possible, otherwise a string.
    pub value: Value,
    /// The argument as given: `--set gc_start=0.1`.
    given: String,
}

/// The selected elements of an array, and the aliases of keys.
struct Choice<'a> {
    number: Option<usize>,
    aliases: &'a [(&'a str, &'a str)],
}

impl Override {
    /// Creates an override of `key` by `--set`.
    pub fn new(key: &str, text: &str) -> Self {
        Self::by_flag(key, text, format!("--set {key}={text}"))
    }

    /// Creates an override by a flag of its own; `given` is the flag in messages.
    pub fn by_flag(key: &str, text: &str, given: String) -> Self {
        let one_line = format!("value = {text}");
        let parsed =
            (!text.contains(['\n', '\r'])).then(|| one_line.parse::<Table>().ok()).flatten();
        let value = parsed.filter(|table| table.len() == 1).and_then(|mut t| t.remove("value"));
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        Self { key: key.to_owned(), value, given }
    }

    /// Returns the argument as given.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Returns the key without numbers of elements.
    fn plain_key(&self) -> String {
        self.key
            .split('.')
            .filter(|part| part.parse::<usize>().is_err())
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Returns those of `keys` that the override may be for.
    pub fn matches<'a>(&self, keys: &'a [Key]) -> Vec<&'a Key> {
        let plain = self.plain_key();
        if let Some(exact) = keys.iter().find(|key| key.path == plain) {
            return vec![exact];
        }
        let end = format!(".{plain}");
        keys.iter().filter(|key| key.path.ends_with(&end)).collect()
    }

    /// Sets the key at `path` in a file, replacing any of its `aliases` there.
    ///
    /// # Errors
    /// Returns an error in words if there is no such element.
    pub(crate) fn apply(
        &self,
        file: &mut Table,
        path: &str,
        aliases: &[(&str, &str)],
    ) -> Result<(), String> {
        let number = self.key.split('.').find_map(|part| part.parse::<usize>().ok());
        let parts: Vec<&str> = path.split('.').collect();
        self.set(file, &parts, &Choice { number, aliases })
    }

    fn set(&self, table: &mut Table, path: &[&str], choice: &Choice<'_>) -> Result<(), String> {
        let (first, rest) = path.split_first().expect("a path has a key");
        let Choice { number, aliases } = *choice;
        if rest.is_empty() {
            let plain = |key: &str| {
                aliases
                    .iter()
                    .find(|(alias, _)| *alias == key)
                    .map_or(key.to_owned(), |(_, key)| (*key).to_owned())
            };
            let same = plain(first);
            table.retain(|key, _| plain(key) != same);
            table.insert((*first).to_owned(), self.value.clone());
            return Ok(());
        }
        let section = table.entry(*first).or_insert_with(|| Value::Table(Table::new()));
        match section {
            Value::Table(inner) => self.set(inner, rest, choice),
            Value::Array(elements) => {
                let count = elements.len();
                let chosen = elements.iter_mut().enumerate();
                let chosen = chosen.filter(|(i, _)| number.is_none_or(|number| number == i + 1));
                let mut chosen =
                    chosen.filter_map(|(_, element)| element.as_table_mut()).peekable();
                if chosen.peek().is_none() {
                    return Err(format!("there are {count} of [[{first}]], numbered from 1 on"));
                }
                chosen.try_for_each(|element| self.set(element, rest, choice))
            }
            _ => Err(format!("{first} is no section of the file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(file: &str, key: &str, text: &str, path: &str) -> Result<String, String> {
        let mut table: Table = file.parse().unwrap();
        Override::new(key, text).apply(&mut table, path, &[("iodepth", "depth")])?;
        Ok(table.to_string())
    }

    #[test]
    fn values_are_toml_or_texts() {
        for (text, value) in [
            ("0.1", Value::Float(0.1)),
            ("5", Value::Integer(5)),
            ("true", Value::Boolean(true)),
            ("\"a b\"", Value::String("a b".into())),
            ("empty", Value::String("empty".into())),
            ("64MiB", Value::String("64MiB".into())),
            ("", Value::String(String::new())),
            ("1\nb = 2", Value::String("1\nb = 2".into())),
            ("[75.0, 80.0]", Value::Array(vec![Value::Float(75.0), Value::Float(80.0)])),
        ] {
            assert_eq!(Override::new("a", text).value, value, "{text}");
        }
    }

    #[test]
    fn one_element_or_all_of_them_are_changed() {
        let file = "[[stream]]\ndepth = 1\n[[stream]]\ndepth = 2\n";
        let all = applied(file, "depth", "9", "stream.depth").unwrap();
        assert_eq!(all.matches("depth = 9").count(), 2, "{all}");
        let one = applied(file, "stream.2.depth", "9", "stream.depth").unwrap();
        assert!(one.contains("depth = 1") && one.contains("depth = 9"), "{one}");
        let none = applied(file, "stream.3.depth", "9", "stream.depth").unwrap_err();
        assert!(none.contains("there are 2 of [[stream]]"), "{none}");
        let alias = applied("[[stream]]\niodepth = 1\n", "depth", "9", "stream.depth").unwrap();
        assert!(alias.contains("depth = 9") && !alias.contains("iodepth"), "{alias}");
        let new = applied("a = 1\n", "b.c", "x", "b.c").unwrap();
        assert!(new.contains("[b]\nc = \"x\""), "{new}");
        assert!(applied("a = 1\n", "a.c", "x", "a.c").is_err());
    }
}
