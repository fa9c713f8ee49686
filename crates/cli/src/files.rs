//! Writes results into a directory.

pub(crate) mod replaced;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::output;
use replaced::SWEEP;

/// Checks, before long work, that files can be written into `directory`. Leaves nothing behind, so
/// that interrupted work leaves no empty directory.
pub(crate) fn check_directory(directory: &Path) -> anyhow::Result<()> {
    let missing: Vec<PathBuf> = directory
        .ancestors()
        .filter(|path| !path.as_os_str().is_empty())
        .take_while(|path| !path.exists())
        .map(Path::to_owned)
        .collect();
    let made = fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .and_then(|()| check(&directory.join(format!(".levelhead-{}", std::process::id()))));
    for path in missing {
        // Fails if another process has put files there in the meantime, and the directory stays.
        let _ = fs::remove_dir(path);
    }
    made
}

/// Files that mark a directory as one with results.
const RESULTS: [&str; 4] = ["result.json", "report.json", "index.html", SWEEP];

/// Checks the directory as above, and refuses to overwrite results unless allowed.
pub(crate) fn check_results(directory: &Path, may_write_over: bool) -> anyhow::Result<()> {
    refuse_results(directory, may_write_over)?;
    check_directory(directory)
}

fn refuse_results(directory: &Path, may_write_over: bool) -> anyhow::Result<()> {
    let there = RESULTS.into_iter().find(|name| directory.join(name).exists());
    if let (Some(name), false) = (there, may_write_over) {
        bail!(
            "{} has results already ({name}): give another directory, or --force to write over them",
            directory.display()
        );
    }
    Ok(())
}

/// Which results in a directory are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// The page of several runs; the runs are kept.
    Page,
    /// All runs, and their page.
    Runs,
}

/// Writes results into `directory` and removes the old results that they replace. `write` returns
/// the paths of its files. Results that appeared since [`check_results`] are refused, too.
pub(crate) fn replace(
    directory: &Path,
    may_write_over: bool,
    replaced: Replaced,
    write: impl FnOnce() -> anyhow::Result<Vec<PathBuf>>,
) -> anyhow::Result<()> {
    refuse_results(directory, may_write_over)?;
    let mut old = replaced::page(directory);
    if replaced == Replaced::Runs {
        old.extend(replaced::runs(directory));
    }
    let new = write()?;
    replaced::remove(directory, &old, &new);
    Ok(())
}

/// Removes the results in `directory`, including those of an interrupted sweep.
pub(crate) fn remove_results(directory: &Path) {
    let mut old = replaced::page(directory);
    old.extend(replaced::runs(directory));
    replaced::remove(directory, &old, &[]);
}

/// Checks, before long work, that `file` can be written. Leaves its content unchanged, and creates
/// no file.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let is_there = file.exists();
    let opened = fs::File::options().create(true).append(true).open(file);
    opened.map(drop).with_context(|| format!("cannot write {}", file.display()))?;
    if !is_there {
        let _ = fs::remove_file(file);
    }
    Ok(())
}

/// Writes the results of a run into `directory` and prints their names. `files` are names and
/// contents.
pub(crate) fn write_results(
    directory: &Path,
    may_write_over: bool,
    files: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> anyhow::Result<()> {
    let files: Vec<_> = files.into_iter().collect();
    let names: Vec<String> =
        files.iter().map(|(name, _)| name.as_ref().display().to_string()).collect();
    replace(directory, may_write_over, Replaced::Runs, || write(directory, files))?;
    output::say(&format!("wrote {} into {}", names.join(", "), directory.display()));
    Ok(())
}

/// Writes files, given as names and contents, into `directory`, which is created if needed. Returns
/// their paths. All files are written under temporary names before the first rename, so a failed
/// write leaves the old files unchanged.
pub(crate) fn write(
    directory: &Path,
    files: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut parts = Vec::new();
    let written = files.into_iter().try_for_each(|(name, contents)| {
        let path = directory.join(name);
        let part = part_of(&path);
        parts.push((part.clone(), path.clone()));
        fs::write(part, contents).with_context(|| format!("cannot write {}", path.display()))
    });
    let named = written.and_then(|()| {
        parts.iter().try_for_each(|(part, path)| {
            fs::rename(part, path).with_context(|| format!("cannot write {}", path.display()))
        })
    });
    if named.is_err() {
        for (part, _) in &parts {
            // Fails for files that were not started or are already renamed.
            let _ = fs::remove_file(part);
        }
    }
    named.map(|()| parts.into_iter().map(|(_, path)| path).collect())
}

/// Returns the path at which a file is written before its rename: an interruption or a full disk
/// leaves no partial file under the final name.
pub(crate) fn part_of(file: &Path) -> PathBuf {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_came_meanwhile_are_not_written_over() {
        let directory =
            std::env::temp_dir().join(format!("levelhead-results-{}", std::process::id()));
        let files = |text: &str| [("result.json", text.to_owned())];
        let text = || fs::read_to_string(directory.join("result.json")).unwrap();
        // Two runs, both of which found no results when they started.
        check_results(&directory, false).unwrap();
        check_results(&directory, false).unwrap();
        write_results(&directory, false, files("first")).unwrap();
        let refused = write_results(&directory, false, files("second")).unwrap_err().to_string();
        assert!(refused.contains("has results already") && text() == "first", "{refused}");
        write_results(&directory, true, files("second")).unwrap();
        assert_eq!(text(), "second");
        fs::remove_dir_all(directory).unwrap();
    }
}
