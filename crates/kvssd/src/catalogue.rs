//! Named TOML files that are built in, and files of the user's.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Why a design or a device could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueError {
    message: String,
}

impl CatalogueError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
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
pub(crate) trait Entry: DeserializeOwned {
    /// What it is called in messages.
    const KIND: &'static str;
    /// Built-in names and their TOML.
    const BUILT_IN: &'static [(&'static str, &'static str)];

    /// Everything that is wrong with it, in words.
    fn problems(&self) -> Vec<String>;
}

/// The built-in entry of that name, or the file at that path.
pub(crate) fn load<T: Entry>(name_or_path: &str) -> Result<T, CatalogueError> {
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
    let text = std::fs::read_to_string(name_or_path)
        .map_err(|error| CatalogueError::new(format!("cannot read {name_or_path}: {error}")))?;
    parse(name_or_path, &text)
}

/// Parses and checks TOML; `origin` says in messages where it came from.
pub(crate) fn parse<T: Entry>(origin: &str, text: &str) -> Result<T, CatalogueError> {
    let kind = T::KIND;
    let entry: T = toml::from_str(text)
        .map_err(|error| CatalogueError::new(format!("{kind} {origin}: {error}")))?;
    let problems = entry.problems();
    if problems.is_empty() {
        return Ok(entry);
    }
    Err(CatalogueError::new(format!("{kind} {origin}: {}", problems.join("; "))))
}
