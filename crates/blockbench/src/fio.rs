//! Job files of fio: each section becomes a stream of a TOML job file.
//!
//! A stream acts on the drive as the fio job would. An option without effect on the simulation is
//! ignored, with a note. An option that would have an effect, and that is not supported, is an
//! error: a job never differs silently from its file. The documentation of fio defines the options.

mod ini;
mod section;
#[cfg(test)]
mod tests;
mod units;
mod words;

use std::fmt::Write;

use catalogue::{CatalogueError, Loaded, Override};
use section::Passed;
use serde_json::json;

use crate::job::Job;

/// A job, and notes about options of its file.
#[derive(Clone, Debug)]
pub struct LoadedJob {
    /// The job.
    pub job: Loaded<Job>,
    /// Notes about ignored or different options of a fio job file, one line each.
    pub notes: Vec<String>,
}

/// Loads the built-in job of this name, or the TOML or fio file at this path, with keys overridden.
/// The overrides are checked as if they were in the file.
///
/// # Errors
/// Returns an error with the problem and the allowed values.
pub fn load_with(name_or_path: &str, overrides: &[Override]) -> Result<LoadedJob, CatalogueError> {
    let text = catalogue::text_of::<Job>(name_or_path)?;
    if ini::is_ini(&text) {
        return parse_with(name_or_path, &text, overrides);
    }
    let job = catalogue::parse_with(name_or_path, &text, overrides)?;
    Ok(LoadedJob { job, notes: Vec::new() })
}

/// Parses the text of a fio job file; `origin` is its source in messages, and gives the name of the
/// job.
///
/// # Errors
/// Returns an error with the problem, its line, and a remedy.
pub fn parse_with(
    origin: &str,
    text: &str,
    overrides: &[Override],
) -> Result<LoadedJob, CatalogueError> {
    let wrong = |wrong: ini::Wrong| {
        CatalogueError::new(format!("job {origin}:{}: {}", wrong.line, wrong.words))
    };
    let sections = ini::sections(text).map_err(wrong)?;
    if sections.is_empty() {
        let words = "it has no job: give a section, [name], besides [global]";
        return Err(CatalogueError::new(format!("job {origin}: {words}")));
    }
    let file = origin.rsplit(['/', '\\']).next().unwrap_or(origin);
    let name = file.strip_suffix(".fio").unwrap_or(file);
    let mut toml = String::new();
    let mut passed = Passed::default();
    let mut names: Vec<String> = Vec::new();
    for section in &sections {
        let name = if names.contains(&section.name) {
            format!("{} (line {})", section.name, section.line)
        } else {
            section.name.clone()
        };
        let keys = section::keys(section, &mut passed).map_err(wrong)?;
        writeln!(toml, "[[stream]]\nname = {}\n{keys}", json!(name)).expect("a string takes it");
        names.push(name);
    }
    // With an override, messages have no line numbers: lines of the generated TOML are not lines of
    // the file.
    let name = Override::by_flag("name", &json!(name).to_string(), String::new());
    let overrides: Vec<Override> = std::iter::once(name).chain(overrides.iter().cloned()).collect();
    let mut job: Loaded<Job> = catalogue::parse_with(origin, &toml, &overrides)?;
    for stream in &mut job.entry.streams {
        stream.ends_with_set = true;
    }
    Ok(LoadedJob { job, notes: passed.notes(origin) })
}
