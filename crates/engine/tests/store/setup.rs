//! What every store of these tests is set up with.

use std::ops::Range;
use std::rc::Rc;

use pages::{Cpu, CpuCosts};
use runtime::{Cores, Nanos, Runtime};

/// A processor that takes no time.
pub(crate) fn cpu(rt: &Runtime) -> Cpu {
    Cpu { cores: Rc::new(Cores::new(rt.handle(), 1, Nanos(10_000))), costs: CpuCosts::FREE }
}

#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of trials: the one that was asked for, or so many.
pub(crate) fn seeds(trials: u64) -> Range<u64> {
    match wanted("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("LEVELHEAD_TRIALS").unwrap_or(trials),
    }
}
