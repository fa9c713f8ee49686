//! Checks, before the work, that the machine has enough memory for it.

use anyhow::bail;
use kvbench::fit::{MemoryVerdict, judge_memory};

use crate::{host, output};

/// Returns an error if far less than `needed` bytes are available, and prints a warning if memory
/// may be short. `advice` names the alternative.
pub(crate) fn check(needed: u64, advice: &str) -> anyhow::Result<()> {
    let Some(available) = host::available_memory_bytes() else { return Ok(()) };
    match judge_memory(needed, available, advice) {
        MemoryVerdict::Fits => {}
        MemoryVerdict::Tight(words) => output::say(&words),
        MemoryVerdict::TooLittle(words) => bail!(words),
    }
    Ok(())
}
