//! Whether this machine has the memory that work takes, found out before the work.

use anyhow::bail;
use lab::fit::{MemoryVerdict, judge_memory};

use crate::{host, output};

/// Refuses work that takes about `needed` bytes where far fewer can be had, and says so where it may be too much. `advice` is what
/// to do instead.
pub(crate) fn check(needed: u64, advice: &str) -> anyhow::Result<()> {
    let Some(available) = host::available_memory_bytes() else { return Ok(()) };
    match judge_memory(needed, available, advice) {
        MemoryVerdict::Fits => {}
        MemoryVerdict::Tight(words) => output::say(&words),
        MemoryVerdict::TooLittle(words) => bail!(words),
    }
    Ok(())
}
