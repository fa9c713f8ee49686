//! Watchers and keepers for tests, and a check that a reproduction can be resumed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use report::Report;
use serde_json::Value;

use crate::failure::Failure;
use crate::keeper::Keeper;
use crate::plan::{Paper, Plan, Scale};
use crate::watcher::{Simulation, Watcher};

/// Records the events.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// Returns the events, in order.
    pub(crate) fn heard(self) -> Vec<String> {
        self.0.into_inner().unwrap()
    }
}

impl Watcher for Notes {
    fn begins(&self, simulation: Simulation<'_>) {
        let Simulation { name, number, total } = simulation;
        self.0.lock().unwrap().push(format!("{number}/{total} {name}"));
    }

    fn ended(&self, simulation: Simulation<'_>, succeeded: bool) {
        let how = if succeeded { "done" } else { "failed" };
        self.0.lock().unwrap().push(format!("{} {how}", simulation.name));
    }
}

/// Saves nothing.
pub(crate) struct Forgetful;

/// Saves results and drives in memory.
#[derive(Default)]
pub(crate) struct InMemory {
    results: Mutex<BTreeMap<(String, String), String>>,
    drives: Mutex<BTreeMap<(String, String), Vec<u8>>>,
    pub(crate) complaints: Mutex<Vec<String>>,
    taken: AtomicUsize,
}

impl InMemory {
    /// Returns the number of saved results, and the number of times that a result was reused.
    fn counts(&self) -> (usize, usize) {
        (self.results.lock().unwrap().len(), self.taken.load(Ordering::Relaxed))
    }

    /// Returns the number of saved drives.
    pub(crate) fn drives(&self) -> usize {
        self.drives.lock().unwrap().len()
    }

    /// Applies `damage` to each saved drive.
    pub(crate) fn damage(&self, damage: impl Fn(&mut Vec<u8>)) {
        self.drives.lock().unwrap().values_mut().for_each(damage);
    }
}

impl Keeper for Forgetful {
    fn expect(&self, _: &[(&str, &Value)]) -> Result<(), String> {
        Ok(())
    }

    fn load(&self, _: &str, _: &Value) -> Option<String> {
        None
    }

    fn save(&self, _: &str, _: &Value, _: &str) {}

    fn taken(&self, _: &str) {}

    fn taken_of_others(&self) -> usize {
        0
    }

    fn drive(&self, _: &str, _: &Value) -> Option<Box<dyn Read>> {
        None
    }

    fn keep_drive(
        &self,
        _: &str,
        _: &Value,
        _: &mut dyn FnMut(&mut dyn Write) -> Result<(), Failure>,
    ) {
    }

    fn drive_is_useless(&self, _: &str, _: &str) {}
}

impl Keeper for InMemory {
    fn expect(&self, asked: &[(&str, &Value)]) -> Result<(), String> {
        assert!(asked.iter().all(|(_, settings)| !settings.is_null()), "each says what it is of");
        Ok(())
    }

    fn load(&self, name: &str, settings: &Value) -> Option<String> {
        self.results.lock().unwrap().get(&(name.to_owned(), settings.to_string())).cloned()
    }

    fn save(&self, name: &str, settings: &Value, result: &str) {
        let key = (name.to_owned(), settings.to_string());
        self.results.lock().unwrap().insert(key, result.to_owned());
    }

    fn taken(&self, _: &str) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    fn taken_of_others(&self) -> usize {
        0
    }

    fn drive(&self, name: &str, settings: &Value) -> Option<Box<dyn Read>> {
        let drives = self.drives.lock().unwrap();
        let bytes = drives.get(&(name.to_owned(), settings.to_string()))?.clone();
        Some(Box::new(std::io::Cursor::new(bytes)))
    }

    fn keep_drive(
        &self,
        name: &str,
        settings: &Value,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), Failure>,
    ) {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        let key = (name.to_owned(), settings.to_string());
        self.drives.lock().unwrap().insert(key, bytes);
    }

    fn drive_is_useless(&self, _: &str, why: &str) {
        self.complaints.lock().unwrap().push(why.to_owned());
    }
}

/// Checks that a run that was interrupted after the simulations with `part` in their name can
/// be resumed, and that its report is the same, to the last byte, as that of an uninterrupted
/// run. Checks the same for a run that reuses all simulations.
pub(crate) fn assert_goes_on(
    paper: Paper,
    part: &str,
    report: impl Fn(&Plan<'_>) -> Result<Option<Report>, Failure>,
) {
    let files = |keeper: &dyn Keeper, only| {
        let (scale, threads, watcher) = (Scale::Quick, 2, &Notes::default());
        let plan =
            Plan { paper, scale, threads, seed: 1, watcher, keeper, only, fresh_loads: false };
        let report = report(&plan).expect("all can be run");
        report.map(|report| report.files().expect("it can be shown"))
    };
    let whole = files(&Forgetful, None).expect("nothing is left out");
    let keeper = InMemory::default();
    assert!(files(&keeper, Some(part)).is_none(), "a report needs all of them");
    let (first, _) = keeper.counts();
    assert!(first > 0, "they are kept");
    assert!(files(&keeper, None).as_ref() == Some(&whole), "it went on to another report");
    let (all, taken) = keeper.counts();
    assert!(taken == first && all > first, "{taken} of {first} were taken, {all} are there");
    assert!(files(&keeper, None).as_ref() == Some(&whole), "what is kept is not what was run");
    assert_eq!(keeper.counts(), (all, first + all), "none was run again");
}
