//! Failures of experiments.

/// The reason why an experiment failed, as text.
pub(super) type Failure = String;
