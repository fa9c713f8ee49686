//! Results of the simulations of a reproduction, saved as files, so that an interrupted
//! reproduction can be resumed. Loaded drives are saved too, so that each is loaded only once.

mod drives;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, fs, io};

use drives::{Drives, slug};
use papers::Keeper;
use serde_json::{Value, json};

use crate::output;
use crate::program::program;

/// Which results of an earlier run are reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Take {
    /// None: all simulations run.
    Nothing,
    /// Results of this build of the program.
    OwnBuild,
    /// Results of any build.
    AnyBuild,
}

/// Counts of simulations that are reused from an earlier run.
#[derive(Default, Debug)]
pub(crate) struct Taken {
    /// Reused so far.
    pub(crate) so_far: AtomicUsize,
    /// To be reused in total.
    pub(crate) in_all: AtomicUsize,
}

/// The saved result of a simulation.
#[derive(PartialEq, Debug)]
enum Found {
    Nothing,
    /// The file is incomplete or damaged.
    Torn,
    OfOtherSettings,
    /// The settings are the same.
    OfOtherBuild(String),
    OfThisBuild(String),
}

/// Why a simulation would run again although a result is saved.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lost {
    NotAskedFor,
    OtherSettings,
    OtherBuild,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAskedFor => "--resume takes them",
            Self::OtherSettings => {
                "they are of other settings (another seed or size, or a program with other options)"
            }
            Self::OtherBuild => {
                "they are of another build of this program: --resume=any takes them"
            }
        })
    }
}

/// The form of the files.
const FORM: u32 = 2;

/// Folders with a file for each simulation and each loaded drive, in the directory of the report.
pub(crate) struct Simulations {
    folder: PathBuf,
    drives: Drives,
    takes: Take,
    /// Whether saved results may be overwritten (`--force`).
    may_replace: bool,
    /// Simulations whose results could not be written.
    not_kept: AtomicUsize,
    pub(crate) taken: Arc<Taken>,
    /// Names of the loaded results that another build made.
    others: Mutex<BTreeSet<String>>,
    taken_of_others: AtomicUsize,
}

impl Simulations {
    /// Saves results in `directory` and reuses those that `takes` allows.
    pub(crate) fn in_directory(directory: &Path, takes: Take, may_replace: bool) -> Self {
        Self {
            folder: directory.join("simulations"),
            drives: Drives::in_folder(directory.join("drives")),
            takes,
            may_replace,
            not_kept: AtomicUsize::new(0),
            taken: Arc::default(),
            others: Mutex::default(),
            taken_of_others: AtomicUsize::new(0),
        }
    }

    /// Deletes all loaded drives, which are not needed once the report is written.
    pub(crate) fn drop_drives(&self) {
        self.drives.drop_all();
    }

    /// Returns the number of simulations whose results could not be saved.
    pub(crate) fn not_kept(&self) -> usize {
        self.not_kept.load(Ordering::Relaxed)
    }

    /// Looks up the saved result of a simulation.
    fn found(&self, name: &str, settings: &Value) -> Found {
        let Ok(text) = fs::read_to_string(self.file(name)) else { return Found::Nothing };
        let Ok(all) = serde_json::from_str::<Value>(&text) else { return Found::Torn };
        let result = all["result"].to_string();
        if all["checksum"] != checksum(&result) {
            Found::Torn
        } else if all["form"] != FORM || all["settings"] != *settings {
            Found::OfOtherSettings
        } else if all["program"] == *program() {
            Found::OfThisBuild(result)
        } else {
            Found::OfOtherBuild(result)
        }
    }

    /// Returns why a simulation runs again although a complete result is saved, if it does.
    fn lost(&self, found: &Found) -> Option<Lost> {
        match (found, self.takes) {
            (Found::Nothing | Found::Torn, _)
            | (Found::OfOtherBuild(_), Take::AnyBuild)
            | (Found::OfThisBuild(_), Take::OwnBuild | Take::AnyBuild) => None,
            (Found::OfOtherSettings, _) => Some(Lost::OtherSettings),
            (_, Take::Nothing) => Some(Lost::NotAskedFor),
            (Found::OfOtherBuild(_), Take::OwnBuild) => Some(Lost::OtherBuild),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.json", slug(name)))
    }

    fn keep(&self, name: &str, settings: &Value, result: &str) -> io::Result<()> {
        let result: Value = serde_json::from_str(result)?;
        let program = program();
        let checksum = checksum(&result.to_string());
        let all = json!({
            "form": FORM, "simulation": name, "program": program, "settings": settings, "checksum": checksum,
            "result": result,
        });
        fs::create_dir_all(&self.folder)?;
        let file = self.file(name);
        let part = file.with_extension("part");
        // Renamed once complete, so that an interruption leaves no partial file under the name.
        let written = fs::write(&part, format!("{all}\n")).and_then(|()| fs::rename(&part, file));
        if written.is_err() {
            // A partial file is useless, and removing it may fail too.
            let _ = fs::remove_file(&part);
        }
        written
    }
}

impl Keeper for Simulations {
    fn expect(&self, asked: &[(&str, &Value)]) -> Result<(), String> {
        let (mut lost, mut taken) = (Vec::new(), 0);
        for (name, settings) in asked {
            let found = self.found(name, settings);
            let is_lost = self.lost(&found);
            let is_whole = matches!(found, Found::OfOtherBuild(_) | Found::OfThisBuild(_));
            taken += usize::from(is_lost.is_none() && is_whole);
            lost.extend(is_lost.map(|why| (*name, why)));
        }
        if let (Some((name, why)), false) = (lost.first(), self.may_replace) {
            return Err(format!(
                "{} of these {} simulations would be run again, and what {} has of them be lost (the first is {name:?}): {why}; \
                 --force runs them again, and --out has another directory",
                lost.len(),
                asked.len(),
                self.folder.display()
            ));
        }
        self.taken.in_all.store(taken, Ordering::Relaxed);
        if taken > 0 {
            output::say(&format!(
                "{taken} of {} simulations are taken from an earlier run",
                asked.len()
            ));
        }
        Ok(())
    }

    fn load(&self, name: &str, settings: &Value) -> Option<String> {
        let found = self.found(name, settings);
        if found == Found::Torn {
            output::say(&format!("{name}: what is kept is damaged, so it is run again"));
        }
        if self.lost(&found).is_some() {
            return None;
        }
        match found {
            Found::OfThisBuild(result) => Some(result),
            Found::OfOtherBuild(result) => {
                self.others.lock().expect("nobody panics with it").insert(name.to_owned());
                Some(result)
            }
            Found::Nothing | Found::Torn | Found::OfOtherSettings => None,
        }
    }

    fn taken(&self, name: &str) {
        let is_other = self.others.lock().expect("as above").contains(name);
        self.taken_of_others.fetch_add(usize::from(is_other), Ordering::Relaxed);
        self.taken.so_far.fetch_add(1, Ordering::Relaxed);
        let whose = if is_other { ", of another build of this program" } else { "" };
        output::say(&format!("{name}: taken from an earlier run{whose}"));
    }

    fn taken_of_others(&self) -> usize {
        self.taken_of_others.load(Ordering::Relaxed)
    }

    fn drive(&self, name: &str, settings: &Value) -> Option<Box<dyn Read>> {
        self.drives.open(name, &settings.to_string())
    }

    fn keep_drive(
        &self,
        name: &str,
        settings: &Value,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), String>,
    ) {
        self.drives.keep(name, &settings.to_string(), write);
    }

    fn drive_is_useless(&self, name: &str, why: &str) {
        output::say(&format!("{name}: loaded again, because {why}"));
    }

    fn save(&self, name: &str, settings: &Value, result: &str) {
        if let Err(error) = self.keep(name, settings, result) {
            self.not_kept.fetch_add(1, Ordering::Relaxed);
            let folder = self.folder.display();
            output::say(&format!(
                "{name} is not kept for --resume: cannot write to {folder}: {error}"
            ));
        }
    }
}

/// Returns the checksum that detects a damaged or edited result.
fn checksum(result: &str) -> u32 {
    crc32c::crc32c(result.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_taken_by_those_who_resume_with_the_same_inputs() {
        let directory = std::env::temp_dir().join(format!("levelhead-kept-{}", std::process::id()));
        let (first, again) = (
            Simulations::in_directory(&directory, Take::Nothing, false),
            Simulations::in_directory(&directory, Take::OwnBuild, false),
        );
        assert_eq!(again.load("A, b/c", &json!("seed 1")), None, "nothing is there");
        first.save("A, b/c", &json!("seed 1"), r#"{"mean":[907.3038322028689,2]}"#);
        assert_eq!(first.load("A, b/c", &json!("seed 1")), None, "it begins anew");
        assert_eq!(
            again.load("A, b/c", &json!("seed 1")).as_deref(),
            Some(r#"{"mean":[907.3038322028689,2]}"#)
        );
        assert_eq!(again.load("A, b/c", &json!("seed 2")), None, "of other settings");
        let other = fs::read_to_string(again.file("A, b/c")).unwrap();
        fs::write(again.file("A, b/c"), other.replace("levelhead ", "another ")).unwrap();
        assert_eq!(again.load("A, b/c", &json!("seed 1")), None, "of another build");
        let any = Simulations::in_directory(&directory, Take::AnyBuild, false);
        assert!(any.load("A, b/c", &json!("seed 1")).is_some(), "whoever wants it has it");
        any.taken("A, b/c");
        assert_eq!(any.taken_of_others(), 1, "and it is counted");
        fs::write(again.file("A, b/c"), other.replace("907.3", "7.5")).unwrap();
        assert_eq!(any.found("A, b/c", &json!("seed 1")), Found::Torn, "a number was changed");
        fs::write(again.file("A, b/c"), "{\"torn").unwrap();
        assert_eq!(again.load("A, b/c", &json!("seed 1")), None, "it is torn");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_kept_is_lost_only_if_somebody_says_so() {
        let directory = std::env::temp_dir().join(format!("levelhead-lost-{}", std::process::id()));
        let kept = |takes, may_replace| Simulations::in_directory(&directory, takes, may_replace);
        kept(Take::Nothing, false).save("A", &json!("seed 1"), "[1]");
        let words = |takes, settings: &Value| {
            kept(takes, false).expect(&[("A", settings), ("B", settings)]).unwrap_err()
        };
        let none = words(Take::Nothing, &json!("seed 1"));
        assert!(none.contains("1 of these 2") && none.contains("--resume takes them"), "{none}");
        for takes in [Take::Nothing, Take::OwnBuild, Take::AnyBuild] {
            let other = words(takes, &json!("seed 2"));
            assert!(other.contains("of other settings") && other.contains("\"A\""), "{other}");
            assert_eq!(kept(takes, true).expect(&[("A", &json!("seed 2"))]), Ok(()));
            assert_eq!(
                kept(takes, false).expect(&[("B", &json!("seed 2"))]),
                Ok(()),
                "nothing is there"
            );
        }
        let own = kept(Take::OwnBuild, false);
        assert_eq!(own.expect(&[("A", &json!("seed 1")), ("B", &json!("seed 1"))]), Ok(()));
        assert_eq!(own.taken.in_all.load(Ordering::Relaxed), 1);
        let file = own.file("A");
        let other = fs::read_to_string(&file).unwrap().replace("levelhead ", "another ");
        fs::write(&file, other).unwrap();
        let build = words(Take::OwnBuild, &json!("seed 1"));
        assert!(build.contains("--resume=any takes them"), "{build}");
        assert_eq!(kept(Take::AnyBuild, false).expect(&[("A", &json!("seed 1"))]), Ok(()));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_cannot_be_kept_is_counted_and_leaves_nothing() {
        let directory = std::env::temp_dir().join(format!("levelhead-full-{}", std::process::id()));
        let kept = Simulations::in_directory(&directory, Take::Nothing, false);
        // A directory takes the place of the result's file.
        fs::create_dir_all(kept.file("A").join("in the way")).unwrap();
        kept.save("A", &json!("seed 1"), "[1]");
        assert_eq!(kept.not_kept(), 1);
        assert!(!kept.file("A").with_extension("part").exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}
