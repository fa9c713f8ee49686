//! The link between host and drive.

use std::cell::RefCell;

use catalogue::bounds;
use runtime::{Carrier, Handle, Nanos, Pipe, Rng};
use serde::{Deserialize, Serialize};

/// Bytes of a command or completion on the link, besides data.
pub const COMMAND_BYTES: u64 = 64;

/// The link between host and drive, as in a profile.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostLink {
    /// Submission, completion and all other latency of a command outside the drive, in
    /// microseconds.
    pub latency_us: f64,
    /// Speed towards the host, in decimal megabytes per second.
    pub read_mb_per_s: f64,
    /// Speed towards the drive, in decimal megabytes per second.
    pub write_mb_per_s: f64,
    /// Mean of an additional, exponentially distributed delay until the host notices a completion
    /// (interrupts, polls, its scheduler), in microseconds; none if absent.
    #[serde(default)]
    pub jitter_us: f64,
}

impl HostLink {
    /// Returns all problems of these numbers, in words that begin with the key.
    pub fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::time_us("host.latency_us", self.latency_us),
            bounds::time_us("host.jitter_us", self.jitter_us),
            bounds::speed_mb_per_s("host.read_mb_per_s", self.read_mb_per_s),
            bounds::speed_mb_per_s("host.write_mb_per_s", self.write_mb_per_s),
        ];
        problems.into_iter().flatten().collect()
    }
}

/// A link in use: commands and data one way, completions and data the other way, concurrently.
pub struct Link {
    to_drive: Pipe,
    to_host: Pipe,
    latency: Nanos,
    jitter: Option<Jitter>,
}

/// Random delays of completions.
struct Jitter {
    mean_us: f64,
    rng: RefCell<Rng>,
}

impl Jitter {
    /// Returns the jitter of a profile, if it has any.
    fn new(handle: &Handle, mean_us: f64, name: &str) -> Option<Self> {
        (mean_us > 0.0).then(|| Self { mean_us, rng: RefCell::new(handle.rng(name)) })
    }

    fn next(&self) -> Nanos {
        let unit = self.rng.borrow_mut().unit_f64();
        Nanos::from_micros_f64(-(1.0 - unit).ln() * self.mean_us)
    }
}

impl Link {
    /// Creates an idle link. Its random delays, if any, use the random stream named `jitter`.
    pub fn new(handle: &Handle, link: &HostLink, jitter: &str) -> Self {
        Self {
            to_drive: Pipe::new(handle.clone(), link.write_mb_per_s),
            to_host: Pipe::new(handle.clone(), link.read_mb_per_s),
            latency: Nanos::from_micros_f64(link.latency_us),
            jitter: Jitter::new(handle, link.jitter_us, jitter),
        }
    }

    /// Saves or restores the bookings.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        self.to_drive.carry(by)?;
        self.to_host.carry(by)?;
        self.jitter.as_ref().map_or(Some(()), |jitter| jitter.rng.borrow_mut().carry(by))
    }

    /// Returns the latency of a command outside the drive. It is charged once, in one of the two
    /// directions.
    pub fn latency(&self) -> Nanos {
        self.latency
    }

    /// Books a command with `data_bytes` of data. Returns the time at which it reaches the drive.
    pub fn receive(&self, data_bytes: u64) -> Nanos {
        self.to_drive.book(COMMAND_BYTES + data_bytes)
    }

    /// Books a completion with `data_bytes` of data. Returns the time at which the host notices it.
    pub fn complete(&self, data_bytes: u64) -> Nanos {
        let jitter = self.jitter.as_ref().map_or(Nanos::ZERO, Jitter::next);
        self.to_host.book(COMMAND_BYTES + data_bytes) + self.latency + jitter
    }
}
