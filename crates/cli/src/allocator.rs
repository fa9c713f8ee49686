//! The memory allocator of this program, and its settings for a server.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Simulations create and drop millions of small objects, which this allocator places close
/// together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the system at once instead of a second later, and uses no 2 MiB pages.
/// The memory of a server is then that of its data plus some tens of MiB (decision 41 has
/// measurements).
const FRUGAL: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];

/// Restarts this program with these settings, unless the environment has them or others. The
/// allocator reads its settings before `main`, from the environment only.
pub(crate) fn keep_nothing_back() {
    let missing: Vec<_> =
        FRUGAL.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "levelhead".into());
    // This path works even after the program's file was replaced.
    let mut again = Command::new("/proc/self/exe");
    again.arg0(name).args(arguments).envs(missing);
    // If the restart fails, the program continues and only uses more memory.
    let _ = again.exec();
}
