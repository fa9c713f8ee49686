//! The memory limit of a process, page cache included, and the page cache itself.

use std::fs;
use std::path::{Path, PathBuf};

/// A group of the system's with a limit for one process.
pub struct Jail {
    path: PathBuf,
}

impl Jail {
    /// A group with so many bytes, where the system has memory groups (version 1 or 2) and lets us.
    pub fn new(name: &str, bytes: u64) -> Option<Self> {
        let name = format!("peers-{}-{name}", std::process::id());
        let roots =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        roots.into_iter().find_map(|(root, limit)| {
            let path = Path::new(root).join(&name);
            fs::create_dir(&path).ok()?;
            let jail = Self { path };
            // Dropping it takes a group away that has no limit.
            fs::write(jail.path.join(limit), bytes.to_string()).ok()?;
            Some(jail)
        })
    }

    /// Whether the system killed a process of it for want of memory.
    pub fn has_killed(&self) -> bool {
        let files = ["memory.oom_control", "memory.events"];
        let texts = files.map(|file| fs::read_to_string(self.path.join(file)).unwrap_or_default());
        let counts = texts.iter().flat_map(|text| text.lines());
        counts.filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
    }

    /// Puts a process into it.
    pub fn take_in(&self, process: u32) -> std::io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Empties the page cache. Whether the system let us.
pub fn drop_page_cache() -> bool {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "1").is_ok()
}
