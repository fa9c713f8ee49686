//! The only module that queries the machine: wall clock, cores and memory.

use std::time::Duration;

use kvbench::live::{DiskBytes, Machine};

#[expect(
    clippy::disallowed_types,
    reason = "how long a simulation takes is a fact of the machine"
)]
use std::time::Instant;

/// Measures wall time since its creation.
#[expect(clippy::disallowed_types, reason = "see above")]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "see above")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Returns the number of cores that this process may use; 1 if unknown.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the peak resident memory of this process, in bytes; 0 if unknown.
pub(crate) fn peak_rss_bytes() -> u64 {
    bytes_in("/proc/self/status", "VmHWM").unwrap_or(0)
}

/// Returns the memory available without evicting other data, in bytes, bounded by the limit of this
/// process. `None` if the system does not report it (Linux does).
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok();
    let limit = limits.and_then(|text| address_space(&text));
    let available = bytes_in("/proc/meminfo", "MemAvailable");
    available.into_iter().chain(limit).min()
}

/// Bytes that this process has read from and written to drives, if the system reports them.
pub(crate) struct Drives;

impl Machine for Drives {
    fn disk_bytes(&self) -> Option<DiskBytes> {
        let text = std::fs::read_to_string("/proc/self/io").ok()?;
        let of = |name| {
            let line = text.lines().find_map(|line: &str| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Some(DiskBytes { read: of("read_bytes:")?, written: of("write_bytes:")? })
    }
}

/// Parses the soft limit of a line such as `Max address space  6144000000  unlimited  bytes`.
fn address_space(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn bytes_in(path: &str, name: &str) -> Option<u64> {
    bytes_of(&std::fs::read_to_string(path).ok()?, name)
}

/// Parses a line such as `MemAvailable:   12345 kB`. Returns bytes.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::{address_space, bytes_of};

    #[test]
    fn memory_is_read_from_its_line_alone() {
        let text = "MemTotal:       24 kB\nMemAvailable:    7 kB\nHugePages_Total:   3\n";
        assert_eq!(bytes_of(text, "MemAvailable"), Some(7 * 1024));
        for absent in ["Mem", "MemFree", "HugePages_Total"] {
            assert_eq!(bytes_of(text, absent), None, "{absent}");
        }
    }

    #[test]
    fn a_limit_is_read_from_its_column() {
        let text =
            |limit: &str| format!("Max data size  unlimited\nMax address space  {limit}  bytes\n");
        assert_eq!(address_space(&text("6144000000  unlimited")), Some(6_144_000_000));
        assert_eq!(address_space(&text("unlimited  unlimited")), None);
    }
}
