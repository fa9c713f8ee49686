//! Jobs whose results are saved, so that an interrupted reproduction can be resumed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::jobs::Job;
use crate::keeper::Keeper;

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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doubles::{InMemory, Notes};
    use crate::jobs::run_all;

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
