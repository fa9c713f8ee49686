//! Named TOML files that are built in, and files of the user's: designs, drives, jobs.

#![forbid(unsafe_code)]

pub mod bounds;
mod lines;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

/// Why an entry could not be had: what is wrong and what is allowed, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueError {
    message: String,
}

impl CatalogueError {
    /// An error of these words.
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

/// What can be loaded from a catalogue.
pub trait Entry: DeserializeOwned {
    /// What it is called in messages.
    const KIND: &'static str;
    /// Built-in names and their TOML.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Everything that is wrong with it, in words. Each begins with the key it is about, as
    /// `timing.read_us is ...` does, so that the line can be told.
    fn problems(&self) -> Vec<String>;
}

/// Longest file that is read, in bytes: a hundred times what any of ours has.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The text of a file of settings. What is longer than [`MAX_FILE_BYTES`] is no such file.
///
/// # Errors
/// The system's, or that the file is too long or no text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let words = "it has more than 1 MiB, which no file of settings has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)"))
}

/// What is wrong with a name or description: control characters would reach terminals and pictures.
pub fn unprintable(key: &str, text: &str) -> Option<String> {
    let control = text.chars().find(|c| c.is_control())?;
    let code = u32::from(control);
    Some(format!("{key} has the control character U+{code:04X}: leave it out"))
}

/// Whether the file at that path has `key` at its top, by which kinds of files can be told apart.
pub fn has_key(path: &str, key: &str) -> bool {
    let text = read_text(Path::new(path)).unwrap_or_default();
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key(key))
}

/// The built-in entry of that name, or the file at that path.
///
/// # Errors
/// [`CatalogueError`]: there is no such entry, or something in it is wrong.
pub fn load<T: Entry>(name_or_path: &str) -> Result<T, CatalogueError> {
    if let Some((_, text)) = T::BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return parse(name_or_path, text);
    }
    if !Path::new(name_or_path).exists() {
        let names: Vec<&str> = T::BUILT_IN.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        let kind = T::KIND;
        return Err(CatalogueError::new(format!(
            "there is no {kind} `{name_or_path}`: give one of {names}, or the path of a TOML file"
        )));
    }
    let text = read_text(Path::new(name_or_path))
        .map_err(|error| CatalogueError::new(format!("cannot read {name_or_path}: {error}")))?;
    parse(name_or_path, &text)
}

/// Parses and checks TOML; `origin` says in messages where it came from.
///
/// # Errors
/// [`CatalogueError`]: something in it is wrong.
pub fn parse<T: Entry>(origin: &str, text: &str) -> Result<T, CatalogueError> {
    let kind = T::KIND;
    let entry: T = toml::from_str(text)
        .map_err(|error| CatalogueError::new(format!("{kind} {origin}: {error}")))?;
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

/// Lines of a profile that give a number without a source, or the word "assumed", beside it.
///
/// For tests of built-in profiles: physical parameters say where they come from.
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

    use super::{numbers_without_source, read_text, unprintable};

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
