//! What every store of these tests is set up with.

use std::rc::Rc;

use pages::{Cpu, CpuCosts};
use runtime::{Cores, Nanos, Runtime};

/// A processor that takes no time.
pub(crate) fn cpu(rt: &Runtime) -> Cpu {
    Cpu { cores: Rc::new(Cores::new(rt.handle(), 1, Nanos(10_000))), costs: CpuCosts::FREE }
}
