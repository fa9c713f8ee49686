//! How the directories of a store know each other by name, so that one that is lost is told from a name mistyped.

use std::path::{Path, PathBuf};

use super::{Identity, read, write};
use crate::error::Error;

/// Paths in words.
pub(super) fn in_words(paths: &[PathBuf]) -> String {
    let all: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    match all.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// A directory that does not exist is one that was lost.
///
/// # Errors
/// [`Error::Missing`]: the others know none by that name.
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

/// The path from the root on, without links as far as it is there.
pub(super) fn whole_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, real)) = there else { return path };
    real.join(path.strip_prefix(part).unwrap_or(Path::new("")))
}

/// How directories are known from now on: their paths from the root on, with the links that lead there, which stay when a drive behind one goes.
pub(crate) fn known_as(directories: &[PathBuf]) -> Vec<String> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let text = |path: &PathBuf| absolute(path).to_string_lossy().into_owned();
    if directories.len() == 1 { Vec::new() } else { directories.iter().map(text).collect() }
}

/// Notes where the directories are, of which none is lost. It serves to tell a lost one by its name later: where it cannot be written, the store is
/// none the worse.
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
