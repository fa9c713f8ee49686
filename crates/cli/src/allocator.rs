//! The allocator of this program, and what a server asks of it.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Simulation makes and drops millions of small objects; this allocator keeps them close together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is freed goes back to the system at once, not a second later; and nothing is taken in pages of two megabytes. So the memory of a
/// server is what it holds, and some tens of MiB beside it (decision 41 has figures).
const FRUGAL: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];

/// Begins this program anew with an allocator that keeps nothing back, unless it has such a one, or was told otherwise. The allocator reads
/// its settings before `main`, from the environment only.
pub(crate) fn keep_nothing_back() {
    let missing: Vec<_> =
        FRUGAL.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "levelhead".into());
    // By this name it is found also after the file was replaced.
    let mut again = Command::new("/proc/self/exe");
    again.arg0(name).args(arguments).envs(missing);
    // If it cannot be begun anew it goes on as it is: it takes more memory, and that is all.
    let _ = again.exec();
}
