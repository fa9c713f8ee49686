//! Loaded drives, saved as files.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::output;
use crate::program::program;

/// A folder with a file for each drive.
pub(super) struct Drives {
    folder: PathBuf,
    /// Number of writes started, for distinct names of temporary files.
    writes: AtomicU64,
}

impl Drives {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder, writes: AtomicU64::new(0) }
    }

    /// Opens the saved drive of this name that this build loaded from `inputs`.
    pub(super) fn open(&self, name: &str, settings: &str) -> Option<Box<dyn Read>> {
        let file = File::open(self.file(name, settings)).ok()?;
        Some(Box::new(BufReader::with_capacity(1 << 20, file)))
    }

    /// Saves a drive written by `write`, or prints why it cannot.
    pub(super) fn keep(
        &self,
        name: &str,
        settings: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), String>,
    ) {
        if let Err(error) = self.write(name, settings, write) {
            let folder = self.folder.display();
            output::say(&format!(
                "{name} is not kept in {folder}, and will be loaded again: {error}"
            ));
        }
    }

    /// Returns the file of a drive that this build loads from `inputs`.
    fn file(&self, name: &str, settings: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (program(), settings).hash(&mut hasher);
        self.folder.join(format!("{}-{:016x}.drive", slug(name), hasher.finish()))
    }

    /// Writes a drive, and removes drives of the same name that have other inputs or are of another
    /// build, because drives are large.
    fn write(
        &self,
        name: &str,
        settings: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), String>,
    ) -> Result<(), String> {
        let in_words = |error: io::Error| error.to_string();
        fs::create_dir_all(&self.folder).map_err(in_words)?;
        let file = self.file(name, settings);
        self.take_others_away(name, &file).map_err(in_words)?;
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let part = file.with_extension(format!("part{number}"));
        let written = File::create(&part).map_err(in_words).and_then(|mut file| write(&mut file));
        if let Err(error) = written {
            // A partial file is useless, and removing it may fail too.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        fs::rename(part, file).map_err(in_words)
    }

    fn take_others_away(&self, name: &str, own: &Path) -> io::Result<()> {
        let front = format!("{}-", slug(name));
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let rest = file.strip_prefix(&front).and_then(|rest| rest.split_once('.'));
            let is_one = rest.is_some_and(|(hash, _)| {
                hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            if is_one && path != own {
                output::say(&format!(
                    "{name}: a drive that was kept is of another build or other settings, and goes: {file}"
                ));
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Deletes all loaded drives, which are not needed once the report is written.
    pub(super) fn drop_all(&self) {
        if self.folder.is_dir()
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            output::say(&format!("cannot remove {}: {error}", self.folder.display()));
        }
    }
}

/// Returns a name as a file name.
pub(super) fn slug(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_drive_is_there_for_its_inputs_and_whole_or_not_at_all() {
        let directory =
            std::env::temp_dir().join(format!("levelhead-drives-{}", std::process::id()));
        let kept = Drives::in_folder(directory.join("drives"));
        let read = |settings: &str| {
            let mut bytes = Vec::new();
            kept.open("pink", settings)?.read_to_end(&mut bytes).unwrap();
            Some(bytes)
        };
        assert_eq!(read("seed 1"), None);
        let write = |bytes: &'static [u8]| {
            move |file: &mut dyn Write| file.write_all(bytes).map_err(|error| error.to_string())
        };
        kept.keep("pink", "seed 1", &mut write(b"cells"));
        assert_eq!(read("seed 1").as_deref(), Some(&b"cells"[..]));
        assert_eq!(read("seed 2"), None, "of other settings");
        kept.keep("pink", "seed 2", &mut |file| {
            file.write_all(b"ce").unwrap();
            Err("the disk is full".to_owned())
        });
        assert_eq!((read("seed 1"), read("seed 2")), (None, None), "half a drive is none");
        kept.keep("pink", "seed 2", &mut write(b"others"));
        kept.keep("pink-hw", "seed 2", &mut write(b"of another name"));
        assert_eq!(read("seed 2").as_deref(), Some(&b"others"[..]));
        kept.drop_all();
        assert_eq!(read("seed 2"), None);
        fs::remove_dir_all(&directory).unwrap_or_default();
    }
}
