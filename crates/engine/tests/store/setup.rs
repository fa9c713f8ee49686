//! What every store of these tests is set up with.

use std::rc::Rc;

use pages::{Cpu, CpuCosts};
use runtime::{Cores, Nanos, Runtime};

const COSTS: CpuCosts = CpuCosts {
    memtable_ns: 0.0,
    prefix_compare_ns: 0.0,
    key_compare_ns: 0.0,
    merge_entry_ns: 0.0,
    filter_build_ns: 0.0,
    filter_probe_ns: 0.0,
    pack_object_ns: 0.0,
    hash_key_ns: 0.0,
    page_read_ns: 0.0,
};

/// A processor that takes no time.
pub(crate) fn cpu(rt: &Runtime) -> Cpu {
    Cpu { cores: Rc::new(Cores::new(rt.handle(), 1, Nanos(10_000))), costs: COSTS }
}
