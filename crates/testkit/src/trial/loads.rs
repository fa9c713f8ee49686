//! Random client operations.

use engine::{LogSync, Value};
use runtime::Rng;

/// Returns a random key number. Half of all operations go to one sixteenth of the keys.
pub fn random_key(rng: &mut Rng, keys: usize) -> usize {
    let keys = if rng.chance(0.5) { keys / 16 } else { keys };
    rng.below(keys.max(1) as u64) as usize
}

/// Returns a random value. Most values are shorter than `usual` bytes, a few are up to `longest`.
pub fn random_value(rng: &mut Rng, usual: u32, longest: u32) -> Value {
    let (usual, longest) = (u64::from(usual), u64::from(longest));
    let len = match rng.below(40) {
        0 => 0,
        // About one page.
        1 => (900 + rng.below(300)).min(longest),
        2 => rng.below(longest + 1),
        _ => rng.below(usual.min(longest).max(1)),
    };
    let synthetic = Value::Synthetic { seed: rng.next_u64(), len: len as u32 };
    if rng.chance(0.5) { synthetic } else { Value::Bytes(synthetic.to_bytes()) }
}

/// Returns a random durability of a write, or `None` for the store's default.
pub fn random_sync(rng: &mut Rng) -> Option<LogSync> {
    let syncs = [LogSync::None, LogSync::Interval, LogSync::Group, LogSync::Each];
    syncs.get(rng.below(6) as usize).copied()
}
