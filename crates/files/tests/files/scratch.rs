//! Test directories, and runtimes of each kind.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use block::nvme::SetId;
use files::{DirectIo, FileOptions};
use runtime::{IoChoice, RealOptions, Runtime};

/// A directory that is removed on drop.
pub(crate) struct Scratch {
    pub path: PathBuf,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    /// Creates a directory in the target directory, so that it is on a real file system.
    pub(crate) fn new() -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub(crate) fn within(directory: &Path) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("files-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("it takes directories");
        Self { path }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn runtime(io: IoChoice) -> Runtime {
    Runtime::real(RealOptions { io, ..RealOptions::default() }).expect("no ring is asked for")
}

/// Returns each combination of runtime I/O and direct I/O.
pub(crate) fn ways() -> Vec<(IoChoice, FileOptions)> {
    let mut ways = Vec::new();
    for io in [IoChoice::Probe, IoChoice::Threads] {
        for direct in [DirectIo::Probe, DirectIo::Off] {
            ways.push((io, FileOptions { direct, ..FileOptions::default() }));
        }
    }
    ways
}

pub(crate) fn set(number: u16) -> SetId {
    SetId::new(number).expect("numbers begin with 1")
}
