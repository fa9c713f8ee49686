//! What simulations of a reproduction gave, kept as files: one that was stopped goes on where it was.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use lab::reproduce::Keeper;
use serde_json::{Value, json};

use crate::output;

/// A folder with a file for each simulation, in the directory of the report.
pub(crate) struct Simulations {
    folder: PathBuf,
    /// Tells builds of this program apart; worked out when it is first asked for, because it takes the whole file.
    program: OnceLock<String>,
    /// Whether what is there is taken.
    resumes: bool,
    /// Those that were loaded and that another build made, by name.
    others: Mutex<BTreeSet<String>>,
    taken_of_others: AtomicUsize,
}

impl Simulations {
    /// Keeps them in `directory`; those that are there already are taken only if it `resumes`.
    pub(crate) fn in_directory(directory: &Path, resumes: bool) -> Self {
        Self {
            folder: directory.join("simulations"),
            program: OnceLock::new(),
            resumes,
            others: Mutex::default(),
            taken_of_others: AtomicUsize::new(0),
        }
    }

    fn program(&self) -> &str {
        self.program.get_or_init(program)
    }

    fn file(&self, name: &str) -> PathBuf {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let slug: String = name.chars().map(letter).collect();
        self.folder.join(format!("{slug}.json"))
    }

    fn keep(&self, name: &str, inputs: &str, result: &str) -> io::Result<()> {
        let result: Value = serde_json::from_str(result)?;
        let program = self.program();
        let all =
            json!({ "simulation": name, "program": program, "inputs": inputs, "result": result });
        fs::create_dir_all(&self.folder)?;
        let file = self.file(name);
        let part = file.with_extension("part");
        // Whoever is ended in the middle leaves no half a file under the name.
        fs::write(&part, format!("{all}\n"))?;
        fs::rename(part, file)
    }
}

impl Keeper for Simulations {
    fn load(&self, name: &str, inputs: &str) -> Option<String> {
        if !self.resumes {
            return None;
        }
        let text = fs::read_to_string(self.file(name)).ok()?;
        let all: Value = serde_json::from_str(&text).ok()?;
        if all["inputs"] != inputs {
            return None;
        }
        if all["program"] != *self.program() {
            self.others.lock().expect("nobody panics with it").insert(name.to_owned());
        }
        Some(all["result"].to_string())
    }

    fn taken(&self, name: &str) {
        let is_other = self.others.lock().expect("as above").contains(name);
        self.taken_of_others.fetch_add(usize::from(is_other), Ordering::Relaxed);
        let whose = if is_other { ", of another build of this program" } else { "" };
        output::say(&format!("{name}: taken from an earlier run{whose}"));
    }

    fn taken_of_others(&self) -> usize {
        self.taken_of_others.load(Ordering::Relaxed)
    }

    fn save(&self, name: &str, inputs: &str, result: &str) {
        if let Err(error) = self.keep(name, inputs, result) {
            let folder = self.folder.display();
            output::say(&format!(
                "{name} is not kept for --resume: cannot write to {folder}: {error}"
            ));
        }
    }
}

/// A number that tells builds of this program apart: a hash of its file.
fn program() -> String {
    let bytes = std::env::current_exe().and_then(fs::read).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("levelhead {} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_taken_by_those_who_resume_with_the_same_inputs() {
        let directory = std::env::temp_dir().join(format!("levelhead-kept-{}", std::process::id()));
        let (first, again) = (
            Simulations::in_directory(&directory, false),
            Simulations::in_directory(&directory, true),
        );
        assert_eq!(again.load("A, b/c", "seed 1"), None, "nothing is there");
        first.save("A, b/c", "seed 1", r#"{"mean":[907.3038322028689,2]}"#);
        assert_eq!(first.load("A, b/c", "seed 1"), None, "it begins anew");
        assert_eq!(
            again.load("A, b/c", "seed 1").as_deref(),
            Some(r#"{"mean":[907.3038322028689,2]}"#)
        );
        assert_eq!(again.load("A, b/c", "seed 2"), None, "of other inputs");
        fs::write(again.file("A, b/c"), "{\"torn").unwrap();
        assert_eq!(again.load("A, b/c", "seed 1"), None, "it is torn");
        fs::remove_dir_all(&directory).unwrap();
    }
}
