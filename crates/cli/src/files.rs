//! Writing results into a directory.

use std::path::Path;

use anyhow::Context;

/// Makes `directory` if need be. Before work that takes long, so that a place where nothing can be
/// made is found out first.
pub(crate) fn make(directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))
}

/// Finds out whether `file` can be written, before work that takes long. Leaves what is in it.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let opened = std::fs::File::options().create(true).append(true).open(file);
    opened.map(drop).with_context(|| format!("cannot write {}", file.display()))
}

/// Writes files, given as names and contents, into `directory`, which is there.
pub(crate) fn write(
    directory: &Path,
    files: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> anyhow::Result<()> {
    for (name, contents) in files {
        let path = directory.join(name);
        std::fs::write(&path, contents)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
