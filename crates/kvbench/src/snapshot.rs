//! Counters of a bench's subject at one moment.

use drives::nand::FlashStats;
use drives::ssd::SetStats;
use engine::{EngineStats, HashStats};
use stacks::host::GetTimes;
use stacks::limiter::LimiterStats;
use volume::VolumeStats;

use crate::spec::BenchSpec;
use crate::target::{Subject, Windowing};

/// Counters of a bench's subject at one moment.
pub(crate) struct Snapshot {
    pub engine: EngineStats,
    pub hash: Option<HashStats>,
    pub flash: FlashStats,
    pub blocks: Option<SetStats>,
    pub limiter: Option<LimiterStats>,
    pub volume: Option<VolumeStats>,
    pub gets: Option<GetTimes>,
}

impl Snapshot {
    /// Returns the counters of `subject` now.
    pub(crate) fn of(subject: &impl Subject) -> Self {
        Self {
            engine: subject.index().stats(),
            hash: subject.index().hash_stats(),
            flash: subject.flash_stats(),
            blocks: subject.block_stats(),
            limiter: subject.limiter_stats(),
            volume: subject.windowing().map(Windowing::volume_stats),
            gets: subject.get_times(),
        }
    }

    /// Returns the flash bytes programmed per byte of keys and values since the start; `None` if
    /// none were written.
    pub(crate) fn amplification(&self, spec: &BenchSpec) -> Option<f64> {
        let page_bytes = u64::from(spec.platform.flash().geometry.page_bytes);
        let (pages, bytes) = (self.flash.total().pages_programmed, self.engine.user_bytes);
        (bytes > 0).then(|| (pages * page_bytes) as f64 / bytes as f64)
    }

    /// Returns the flash bytes programmed per byte of keys and values since `before`; 0 if none
    /// were written.
    pub(crate) fn amplification_since(&self, before: &Self, page_bytes: u32) -> f64 {
        let pages = self.flash.total().pages_programmed - before.flash.total().pages_programmed;
        let bytes = self.engine.user_bytes - before.engine.user_bytes;
        if bytes == 0 { 0.0 } else { (pages * u64::from(page_bytes)) as f64 / bytes as f64 }
    }
}
