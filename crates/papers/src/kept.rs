//! Saved results of simulations and saved loaded drives: an interrupted reproduction can be
//! resumed, and each drive is loaded only once.

use std::io::{Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::jobs::Job;
use crate::stand::Failure;

/// Saves the results of simulations, and loaded drives. Methods are called from several threads.
pub trait Keeper: Sync {
    /// Receives the names and settings of all simulations, before the first one begins.
    ///
    /// # Errors
    /// Returns the reason, as text, if the simulations must not begin, because saved results would
    /// be lost.
    fn expect(&self, asked: &[(&str, &Value)]) -> Result<(), String>;
    /// Returns the saved result of `name`, if there is one with the same `settings`.
    fn load(&self, name: &str, settings: &Value) -> Option<String>;
    /// Saves the result of `name`, which is JSON.
    fn save(&self, name: &str, settings: &Value, result: &str);
    /// The saved result of `name` could be parsed, and is reused.
    fn taken(&self, name: &str);
    /// Returns the number of reused results that another build of the program saved.
    fn taken_of_others(&self) -> usize;
    /// Returns the loaded drive that this build of the program saved with these `settings`.
    fn drive(&self, name: &str, settings: &Value) -> Option<Box<dyn Read>>;
    /// Saves a loaded drive as a whole, or not at all. `write` writes the drive. Saving is
    /// optional, so a failure is no error.
    fn keep_drive(
        &self,
        name: &str,
        settings: &Value,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), Failure>,
    );
    /// A saved drive cannot be used, for the reason `why`.
    fn drive_is_useless(&self, name: &str, why: &str);
}

/// Returns a job whose result is saved. The job runs only if there is no saved result with the same
/// settings.
///
/// `settings` are everything that the result depends on ([`crate::settings`]).
pub(super) fn kept<'a, T: Serialize + DeserializeOwned>(
    keeper: &'a dyn Keeper,
    name: String,
    settings: Value,
    run: impl FnOnce() -> Result<T, Failure> + Send + 'a,
) -> Job<'a, T> {
    let (title, of) = (name.clone(), settings.clone());
    let job = Job::new(name, move || {
        let earlier = keeper.load(&title, &settings);
        if let Some(result) = earlier.and_then(|text| serde_json::from_str(&text).ok()) {
            keeper.taken(&title);
            return Ok(result);
        }
        let result = run()?;
        let text = serde_json::to_string(&result).map_err(|error| error.to_string())?;
        keeper.save(&title, &settings, &text);
        Ok(result)
    });
    Job { settings: Some(of), ..job }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::jobs::run_all;
    use crate::jobs::tests::Notes;
    use crate::{Paper, Plan, Scale};
    use report::Report;

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
            assert!(
                asked.iter().all(|(_, settings)| !settings.is_null()),
                "each says what it is of"
            );
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

    #[test]
    fn what_was_done_of_the_same_settings_is_not_done_again() {
        let keeper = InMemory::default();
        let run = |settings: &str, result: u32| {
            let job = kept(&keeper, "one".into(), json!(settings), move || Ok(result));
            run_all(vec![job], 1, &Notes::default()).expect("it can be run")[0]
        };
        assert_eq!(run("seed 1", 17), 17);
        assert_eq!(run("seed 1", 18), 17, "it is there");
        assert_eq!(run("seed 2", 19), 19, "that is another one");
    }

    #[test]
    fn what_cannot_be_read_is_done_again() {
        let keeper = InMemory::default();
        keeper.save("one", &json!("seed 1"), "{\"torn");
        let job = kept(&keeper, "one".into(), json!("seed 1"), || Ok(5));
        assert_eq!(run_all(vec![job], 1, &Notes::default()), Ok(vec![5]));
        assert_eq!(keeper.load("one", &json!("seed 1")).as_deref(), Some("5"));
    }
}
