//! Runs without a result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The reason why a run has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lack {
    /// The run was refused before any run began.
    #[serde(rename = "refused")]
    Refused,
    /// The run failed.
    #[serde(rename = "failed")]
    Failed,
    /// The run was not started, or not completed.
    #[serde(rename = "not run")]
    NotRun,
}

impl Lack {
    /// Returns the name of the reason.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::NotRun => "not run",
        }
    }
}

/// A run without a result: the contents of `failure.json`, which is in place of `result.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Version of this program.
    pub levelhead: String,
    /// The kind of the reason.
    pub status: Lack,
    /// The reason as text.
    pub reason: String,
    /// The values that distinguish the run from the other runs of the sweep, by key.
    pub asked: BTreeMap<String, String>,
}

impl Failure {
    /// Returns a run without a result; `asked` has the requested values by key.
    pub fn new(
        status: Lack,
        reason: impl Into<String>,
        asked: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let levelhead = env!("CARGO_PKG_VERSION").to_owned();
        Self { levelhead, status, reason: reason.into(), asked: asked.into_iter().collect() }
    }

    /// Parses `failure.json`.
    ///
    /// # Errors
    /// Returns a text if `text` is not a failure of a run.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("it is no failure of a run: {error}"))
    }

    /// Returns the requested value of a key. A key matches if it is the end of the other's path.
    pub(super) fn asked(&self, key: &str) -> Option<String> {
        let is_end = |whole: &str, end: &str| {
            whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_it = |asked: &str| is_end(key, asked) || is_end(asked, key);
        let without_kind = |asked: &str| asked.split_once('.').is_some_and(|(_, rest)| is_it(rest));
        let found = self.asked.iter().find(|(asked, _)| is_it(asked) || without_kind(asked));
        found.map(|(_, value)| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_found_by_a_part_of_its_path() {
        let asked =
            [("gc_start", "0.1"), ("device.command_us", "5"), ("stream.depth", "4"), ("job", "x")];
        let asked = asked.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let failure = Failure::new(Lack::Refused, "no room", asked);
        let of = |key: &str| failure.asked(key).unwrap_or_default();
        assert_eq!(of("engine.gc_start"), "0.1");
        assert_eq!(of("controller.command_us"), "5");
        assert_eq!(
            (of("stream.depth"), of("depth"), of("job")),
            ("4".into(), "4".into(), "x".into())
        );
        assert_eq!((of("start"), of("stream.rate")), (String::new(), String::new()));
        let text = serde_json::to_string(&failure).expect("it is JSON");
        assert_eq!(Failure::parse(&text), Ok(failure));
        assert!(Failure::parse("{}").is_err());
    }
}
