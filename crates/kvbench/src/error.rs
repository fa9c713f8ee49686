//! Failures of a bench.

use std::fmt;

use engine::OpenError;
use report::units::{count_text, rate_text, three_digits};
use stacks::host::StorageError;
use stacks::kvssd::SetupError;
use workload::{LatencySummary, OpKind, RunReport, StartError};

use crate::fit;

/// The reason why a bench failed.
#[derive(Debug)]
pub enum BenchError {
    /// The design cannot be set up on the drive.
    Setup(SetupError),
    /// The host's store cannot be placed on the drive.
    Storage(StorageError),
    /// The design cannot be set up on the host.
    Open(OpenError),
    /// The workload cannot be run.
    Start(StartError),
    /// The bench certainly cannot end, for instance because the data do not fit; the text is the
    /// reason. Nothing was run.
    DoesNotFit(String),
    /// The load failed; the text has the progress and the error.
    Load(String),
    /// Ageing failed; the text has the progress and the error.
    Ageing(String),
    /// The drive could not be saved, or a saved drive cannot be used; the text is the reason.
    Kept(String),
    /// A stop was requested before the run had results.
    Interrupted {
        /// Number of pairs loaded before the stop.
        loaded: u64,
        /// Number of pairs to load.
        of: u64,
        /// Throughput and latencies of the load until the stop, as text.
        so_far: String,
    },
}

impl BenchError {
    /// Whether the bench was refused: another attempt would have the same outcome.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Load(_) | Self::Ageing(_) | Self::Interrupted { .. })
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Storage(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::DoesNotFit(text) | Self::Kept(text) => f.write_str(text),
            Self::Load(text) => write!(f, "the load failed {text}"),
            Self::Ageing(text) => write!(f, "overwriting to a steady state failed {text}"),
            Self::Interrupted { loaded, of, so_far } => write!(
                f,
                "interrupted after {} of {} pairs of the load: {so_far}",
                count_text(*loaded),
                count_text(*of)
            ),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<SetupError> for BenchError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<StorageError> for BenchError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<OpenError> for BenchError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<StartError> for BenchError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

/// Returns the error for a stop before the run had results, with the progress of the load.
pub(crate) fn interrupted(load: &RunReport, records: u64) -> BenchError {
    let put = load.summary(OpKind::Put).unwrap_or_default();
    not_begun((load.operations, records), load.throughput(), put)
}

/// As [`interrupted`], of a load that was summarised: the pairs loaded and to load, throughput and
/// latencies.
pub(crate) fn not_begun(
    (loaded, of): (u64, u64),
    throughput: f64,
    put: LatencySummary,
) -> BenchError {
    let so_far = if put.count == 0 {
        "there is nothing to show yet".to_owned()
    } else {
        format!(
            "{} puts/s; put, us: mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            rate_text(throughput),
            three_digits(put.mean_us),
            three_digits(put.p50_us),
            three_digits(put.p99_us),
            three_digits(put.p999_us),
            three_digits(put.max_us)
        )
    };
    BenchError::Interrupted { loaded, of, so_far }
}

/// Returns an error if the load failed: no run follows such a load.
pub(crate) fn check_load(load: &RunReport, records: u64) -> Result<(), BenchError> {
    let Some(error) = &load.first_error else { return Ok(()) };
    let (done, of) = (count_text(load.operations), count_text(records));
    let is_full = error.contains(&stacks::kvssd::Status::CapacityExceeded.to_string());
    let hint = if is_full && load.operations > 0 {
        format!(" (it is full: some --records {} go in)", fit::rounded(load.operations))
    } else {
        String::new()
    };
    Err(BenchError::Load(format!("after {done} of {of} pairs, {error}{hint}")))
}
