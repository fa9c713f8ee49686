//! Writing results into a directory.

use std::path::Path;

use anyhow::Context;

/// Writes files, given as names and contents, into `directory`, which is made if need be.
pub(crate) fn write(
    directory: &Path,
    files: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for (name, contents) in files {
        let path = directory.join(name);
        std::fs::write(&path, contents)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
