//! Job files of fio: each section becomes a stream of a job's file in TOML.
//!
//! A stream does to the drive what fio's job would do. An option that nothing depends on here is passed
//! over, and told; one that something would depend on and that is not read is an error, so that no
//! job is another one than its author meant. fio's documentation says what each option means.

mod ini;
mod section;
mod units;
mod words;

use std::fmt::Write;

use catalogue::{CatalogueError, Loaded, Override};
use serde_json::json;

use super::Job;
use section::Passed;

/// A job, and what is to be said of how it was read.
#[derive(Clone, Debug)]
pub struct LoadedJob {
    /// It.
    pub job: Loaded<Job>,
    /// What of fio's job file was passed over, a line each.
    pub notes: Vec<String>,
}

/// A built-in job by name, or one from a file, of TOML or of fio's, by path; keys of it are
/// overridden, and checked as if they stood in it.
///
/// # Errors
/// What is wrong and what is allowed, in words.
pub fn load_with(name_or_path: &str, overrides: &[Override]) -> Result<LoadedJob, CatalogueError> {
    let text = catalogue::text_of::<Job>(name_or_path)?;
    if ini::is_ini(&text) {
        return parse_with(name_or_path, &text, overrides);
    }
    let job = catalogue::parse_with(name_or_path, &text, overrides)?;
    Ok(LoadedJob { job, notes: Vec::new() })
}

/// The text of a job file of fio's; `origin` says in messages where it came from, and names the job.
///
/// # Errors
/// What is wrong, in which line, and what to do, in words.
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
    // With an override nothing is said of lines, which are none of the file's.
    let name = Override::by_flag("name", &json!(name).to_string(), String::new());
    let overrides: Vec<Override> = std::iter::once(name).chain(overrides.iter().cloned()).collect();
    let mut job: Loaded<Job> = catalogue::parse_with(origin, &toml, &overrides)?;
    for stream in &mut job.entry.streams {
        stream.ends_with_set = true;
    }
    Ok(LoadedJob { job, notes: passed.notes(origin) })
}

#[cfg(test)]
mod tests;
