//! Named built-in TOML files, and files of the user: designs, drives, jobs.

#![forbid(unsafe_code)]

pub mod bounds;
mod keys;
mod lines;
mod mark;
mod nearest;
mod overrides;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

pub use keys::{Holds, Key, keys};
pub use mark::{Unmarked, without_mark};
pub use nearest::{did_you_mean, nearest};
pub use overrides::Override;
pub use toml::Table;

/// Why an entry could not be loaded: the problem and the allowed values, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueError {
    message: String,
}

impl CatalogueError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CatalogueError {}

/// A type that can be loaded from a catalogue.
pub trait Entry: DeserializeOwned {
    /// The name of the type in messages.
    const KIND: &'static str;
    /// Built-in names and their TOML.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Aliases of keys, each with the key that it stands for.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// Returns all problems of the entry, in words. Each begins with its key, as in `timing.read_us
    /// is ...`, so that the line can be reported.
    fn problems(&self) -> Vec<String>;
}

/// Maximum size of a file, in bytes: a hundred times that of our own files.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the text of a settings file, without a byte order mark.
///
/// # Errors
/// Returns an error if the file cannot be read, is longer than [`MAX_FILE_BYTES`] or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let words = "it has more than 1 MiB, which no file of settings has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)"))?;
    Ok(without_mark(&text).to_owned())
}

/// Returns the problem of a name or description: control characters would reach terminals and
/// pictures.
pub fn unprintable(key: &str, text: &str) -> Option<String> {
    if key == "name" && text.trim().is_empty() {
        return Some("name is empty: give one".to_owned());
    }
    let control = text.chars().find(|c| c.is_control())?;
    let code = u32::from(control);
    Some(format!("{key} has the control character U+{code:04X}: leave it out"))
}

/// Whether the file at `path` has `key` at its top level, which distinguishes kinds of files.
pub fn has_key(path: &str, key: &str) -> bool {
    let text = read_text(Path::new(path)).unwrap_or_default();
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key(key))
}

/// Returns the built-in entry of this name, or the file at this path.
///
/// # Errors
/// Returns [`CatalogueError`] if there is no such entry, or it is invalid.
pub fn load<T: Entry>(name_or_path: &str) -> Result<T, CatalogueError> {
    parse(name_or_path, &text_of::<T>(name_or_path)?)
}

/// Returns the text of the built-in entry of this name, or of the file at this path.
///
/// # Errors
/// Returns [`CatalogueError`] if there is no such entry, or the file cannot be read.
pub fn text_of<T: Entry>(name_or_path: &str) -> Result<String, CatalogueError> {
    if let Some((_, text)) = T::BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok((*text).to_owned());
    }
    if Path::new(name_or_path).exists() {
        return read_text(Path::new(name_or_path))
            .map_err(|error| CatalogueError::new(format!("cannot read {name_or_path}: {error}")));
    }
    let names = || T::BUILT_IN.iter().map(|(name, _)| *name);
    let (kind, all) = (T::KIND, names().collect::<Vec<_>>().join(", "));
    Err(CatalogueError::new(format!(
        "there is no {kind} `{name_or_path}`{}: give one of {all}, or the path of a TOML file",
        did_you_mean(name_or_path, names())
    )))
}

/// A file after overrides of its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The entry.
    pub entry: T,
    /// All keys of the file and their values.
    pub table: Table,
}

/// Like [`load`], with keys of the file overridden. The overrides are checked as if they were in
/// the file.
///
/// # Errors
/// Returns [`CatalogueError`] as [`load`] does, or if there is no such key.
pub fn load_with<T: Entry>(
    name_or_path: &str,
    overrides: &[Override],
) -> Result<Loaded<T>, CatalogueError> {
    parse_with(name_or_path, &text_of::<T>(name_or_path)?, overrides)
}

/// Like [`load_with`] for a text; `origin` is its source in messages.
///
/// # Errors
/// Returns [`CatalogueError`] as [`load_with`] does.
pub fn parse_with<T: Entry>(
    origin: &str,
    text: &str,
    overrides: &[Override],
) -> Result<Loaded<T>, CatalogueError> {
    let say = |words: String| CatalogueError::new(format!("{} {origin}{words}", T::KIND));
    if overrides.is_empty() {
        let entry = parse(origin, text)?;
        let table = text.parse().expect("it was parsed");
        return Ok(Loaded { entry, table });
    }
    let mut table: Table = text.parse().map_err(|error| say(format!(": {error}")))?;
    let keys = keys::<T>();
    for one in overrides {
        let wrong = |words| say(format!(": {}: {words}", one.given()));
        let path = path_of(one, &keys, &table).map_err(wrong)?;
        one.apply(&mut table, path, T::ALIASES).map_err(wrong)?;
    }
    let given = overrides.iter().map(Override::given).filter(|given| !given.is_empty());
    let given: Vec<&str> = given.collect();
    let with = given.join(" ");
    let with = if with.is_empty() { with } else { format!(" with {with}") };
    of_table(&format!("{origin}{with}"), table)
}

/// Like [`load`] for keys and values that were parsed elsewhere, for example in a result.
///
/// # Errors
/// Returns [`CatalogueError`] as [`load`] does.
pub fn of_table<T: Entry>(origin: &str, table: Table) -> Result<Loaded<T>, CatalogueError> {
    let say = |words: &str| CatalogueError::new(format!("{} {origin}: {words}", T::KIND));
    let entry: T = table.clone().try_into().map_err(|error: toml::de::Error| {
        // The error has several lines: the problem, and its section.
        say(&meant(&error.to_string().trim().replace('\n', " ")))
    })?;
    match entry.problems() {
        problems if problems.is_empty() => Ok(Loaded { entry, table }),
        problems => Err(say(&problems.join("; "))),
    }
}

/// Returns the path of the overridden key. If several keys have its name, those in sections that
/// the file has are preferred.
fn path_of<'a>(one: &Override, keys: &'a [Key], file: &Table) -> Result<&'a str, String> {
    let mut matches = one.matches(keys);
    if matches.len() > 1 {
        let has_section = |key: &&Key| has_section(file, &key.path);
        if matches.iter().any(has_section) {
            matches.retain(has_section);
        }
    }
    match matches[..] {
        [key] => Ok(&key.path),
        [] => {
            let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
            let names = keys.iter().flat_map(|key| [key.path.as_str(), last(&key.path)]);
            Err(format!("there is no key {}{}", one.key, did_you_mean(&one.key, names)))
        }
        ref several => {
            let paths: Vec<&str> = several.iter().map(|key| key.path.as_str()).collect();
            Err(format!(
                "{} may be each of {}: give the one that is meant",
                one.key,
                paths.join(", ")
            ))
        }
    }
}

/// Whether a file has the section of a key.
fn has_section(file: &Table, path: &str) -> bool {
    let mut sections: Vec<&str> = path.split('.').collect();
    sections.pop();
    let mut table = Some(file);
    for section in sections {
        table = match table.and_then(|table| table.get(section)) {
            Some(toml::Value::Table(inner)) => Some(inner),
            // The elements of an array are sections.
            Some(toml::Value::Array(elements)) => elements.first().and_then(toml::Value::as_table),
            _ => None,
        };
    }
    table.is_some()
}

/// Parses and checks TOML; `origin` is its source in messages.
///
/// # Errors
/// Returns [`CatalogueError`] if the text is invalid.
pub fn parse<T: Entry>(origin: &str, text: &str) -> Result<T, CatalogueError> {
    let kind = T::KIND;
    let entry: T = toml::from_str(text).map_err(|error| {
        CatalogueError::new(format!("{kind} {origin}: {}", meant(&error.to_string())))
    })?;
    let problems = entry.problems();
    if problems.is_empty() {
        return Ok(entry);
    }
    let place = |problem: String| match lines::line_of(text, &problem) {
        Some(line) => format!("{origin}:{line}: {problem}"),
        None => format!("{origin}: {problem}"),
    };
    let problems: Vec<String> = problems.into_iter().map(place).collect();
    Err(CatalogueError::new(format!("{kind} {}", problems.join("; "))))
}

/// Adds to an error of serde the most similar of the names that it lists, if a name is unknown.
fn meant(error: &str) -> String {
    let quoted: Vec<&str> = ["unknown field `", "unknown variant `"]
        .iter()
        .find_map(|start| error.split_once(start))
        .map(|(_, rest)| rest.split('`').step_by(2).collect())
        .unwrap_or_default();
    let Some((word, names)) = quoted.split_first() else { return error.to_owned() };
    format!("{}{}", error.trim_end(), did_you_mean(word, names.iter().copied()))
}

/// Returns the lines of a profile with a number that has neither a source nor the word "assumed"
/// next to it.
///
/// For tests of built-in profiles: physical parameters need a source.
pub fn numbers_without_source(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
    let is_bare = |line: &&str| {
        let value = line.split_once('=').map_or("", |(_, value)| value.trim_start());
        let is_number = value.starts_with(|c: char| c.is_ascii_digit() || c == '[');
        let has_source = line.split_once('#').is_some_and(|(_, why)| why.trim().len() >= 3);
        is_number && !has_source
    };
    lines.filter(is_bare).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::{
        Entry, Override, load, load_with, numbers_without_source, parse_with, read_text,
        unprintable,
    };

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Tree {
        engine: Engine,
        #[expect(dead_code, reason = "its keys are asked for")]
        other: Option<Engine>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Engine {
        gc_start: f64,
        #[serde(default)]
        #[expect(dead_code, reason = "as above")]
        levels: u32,
    }

    impl Entry for Tree {
        const KIND: &'static str = "tree";
        const BUILT_IN: &'static [(&'static str, &'static str)] =
            &[("oak", "[engine]\ngc_start = 0.05\n"), ("typo", "[engine]\ngc_strat = 0.05\n")];

        fn problems(&self) -> Vec<String> {
            let gc_start = super::bounds::range("gc_start", self.engine.gc_start, 0.0..=1.0);
            gc_start.into_iter().collect()
        }
    }

    #[test]
    fn keys_are_overridden_and_checked_as_in_the_file() {
        let with = |key, text| load_with::<Tree>("oak", &[Override::new(key, text)]);
        let loaded = with("engine.gc_start", "0.1").expect("it is allowed");
        assert!((loaded.entry.engine.gc_start - 0.1).abs() < 1e-9);
        assert_eq!(loaded.table["engine"]["gc_start"].as_float(), Some(0.1));
        let words = |key, text| with(key, text).expect_err("it is wrong").to_string();
        assert_eq!(
            words("engine.gc_start", "2"),
            "tree oak with --set engine.gc_start=2: gc_start is 2, must be 0 to 1"
        );
        assert!(words("engine.gc_start", "much").contains("invalid type: string"));
        assert!(words("gc_strat", "1").ends_with("no key gc_strat (did you mean gc_start?)"));
        let levels = with("levels", "7").expect("only [engine] is there");
        assert_eq!(levels.table["engine"]["levels"].as_integer(), Some(7));
        let text = "[engine]\ngc_start = 0.1\n[other]\ngc_start = 0.1\n";
        let both = parse_with::<Tree>("x", text, &[Override::new("levels", "1")]);
        let both = both.expect_err("both are there").to_string();
        assert!(both.contains("each of engine.levels, other.levels"), "{both}");
        assert!(words("other.levels", "1").contains("missing field `gc_start`"));
    }

    #[test]
    fn slips_in_names_and_keys_are_told() {
        let words = |name| load::<Tree>(name).expect_err("it is wrong").to_string();
        assert!(words("aok").contains("no tree `aok` (did you mean oak?): give one of oak, typo"));
        let typo = words("typo");
        assert!(typo.contains("gc_strat") && typo.ends_with("(did you mean gc_start?)"), "{typo}");
    }

    #[test]
    fn endless_files_are_read_no_further_than_settings_go() {
        let error = read_text(Path::new("/dev/zero")).expect_err("it has no end").to_string();
        assert!(error.contains("more than 1 MiB"), "{error}");
    }

    #[test]
    fn control_characters_are_no_part_of_a_name() {
        assert_eq!(unprintable("name", "a name\u{e9}"), None);
        let words = unprintable("name", "a\u{1b}[2J").expect("it is no name");
        assert!(words.starts_with("name has the control character U+001B"), "{words}");
    }

    #[test]
    fn numbers_need_a_source() {
        let text = "# a = 1\nname = \"x\"\ngood = 1.5 # assumed\nbad = [1, 2]\nshort = 3 # ?";
        assert_eq!(numbers_without_source(text), ["bad = [1, 2]", "short = 3 # ?"]);
    }
}
