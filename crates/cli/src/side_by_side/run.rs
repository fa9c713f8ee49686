//! A run of several: its plan, and its results.

use report::compare::Lack;
use serde_json::Value;
use workload::Stop;

use crate::sweep::Combination;

/// The results of a run.
pub(crate) struct Done {
    /// Its files as names and contents, `result.json` and `result.txt` among them.
    pub(crate) files: Vec<(&'static str, String)>,
    /// The failure of the run, if it failed.
    pub(crate) trouble: Option<String>,
}

/// The reason why a run has no result.
pub(crate) struct Nothing {
    pub(crate) lack: Lack,
    pub(crate) reason: String,
}

impl From<String> for Nothing {
    fn from(reason: String) -> Self {
        Self { lack: Lack::Failed, reason }
    }
}

/// Executes a run, which ends early once it is asked to stop.
pub(super) type Doing<'a> = Box<dyn FnOnce(&Stop) -> Result<Done, Nothing> + Send + 'a>;

/// A run that is ready to start.
pub(crate) struct Plan<'a> {
    /// All inputs of the result, as JSON: `inputs` and `seed` as in the result, and further ones.
    pub(super) inputs: Value,
    pub(super) doing: Doing<'a>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        inputs: Value,
        doing: impl FnOnce(&Stop) -> Result<Done, Nothing> + Send + 'a,
    ) -> Self {
        Self { inputs, doing: Box::new(doing) }
    }
}

/// A run to execute, or one that is refused.
pub(crate) type Run<'a> = Combination<Plan<'a>>;
