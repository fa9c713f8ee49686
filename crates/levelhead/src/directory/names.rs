//! The names by which a store's directories know each other. They tell a lost directory from a
//! mistyped name.

use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::record::{read, write};
use crate::error::Error;

/// Joins paths to an English list.
pub(super) fn in_words(paths: &[PathBuf]) -> String {
    let all: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    match all.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Checks that each directory that does not exist is one that was lost.
///
/// # Errors
/// Returns [`Error::Missing`] if the other directories do not know its name.
pub(crate) fn check_names(directories: &[PathBuf]) -> Result<(), Error> {
    for (member, directory) in directories.iter().enumerate() {
        if directory.try_exists().unwrap_or(true) {
            continue;
        }
        let said = directories.iter().filter_map(|other| read(other).ok().flatten());
        let known: Vec<String> =
            said.filter_map(|said| said.directories.get(member).cloned()).collect();
        let is_it = |known: &String| whole_path(Path::new(known)) == whole_path(directory);
        if !known.iter().any(is_it) {
            let was = match known.first() {
                Some(known) => format!(" The store's directory in its place was {known}."),
                None => String::new(),
            };
            return Err(Error::Missing(format!(
                "{} does not exist: is the name right?{was} If it is lost, the option `degraded` goes on without it",
                directory.display()
            )));
        }
    }
    Ok(())
}

/// Returns the absolute path. Links are resolved as far as the path exists.
pub(super) fn whole_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, real)) = there else { return path };
    real.join(path.strip_prefix(part).unwrap_or(Path::new("")))
}

/// Returns the names under which the directories are recorded: absolute paths with unresolved
/// links, because a link remains when its drive is removed.
pub(crate) fn known_as(directories: &[PathBuf]) -> Vec<String> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let text = |path: &PathBuf| absolute(path).to_string_lossy().into_owned();
    if directories.len() == 1 { Vec::new() } else { directories.iter().map(text).collect() }
}

/// Records the paths of the directories, all of which are present. Ignores errors: the names only
/// serve to identify a lost directory later, and the store works without them.
pub(crate) fn note_names(directories: &[PathBuf], identity: &Identity) {
    let now = known_as(directories);
    if identity.directories.is_empty() || identity.directories == now {
        return;
    }
    for directory in directories {
        if let Ok(Some(said)) = read(directory) {
            let _ = write(directory, &Identity { directories: now.clone(), ..said });
        }
    }
}
