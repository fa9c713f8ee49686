//! Bounds of a profile's numbers, section by section.

use std::ops::RangeInclusive;

use catalogue::bounds;

use super::{Background, Controller, Dram, PlmProfile, WriteBuffer, WritePacing};

/// Processor cores of a drive.
const CORES: RangeInclusive<u32> = 1..=1024;
/// Commands that a set executes at a time: at most the entries of an NVMe queue.
const QUEUE_DEPTH: RangeInclusive<u32> = 1..=65_536;
/// Upper bound of each kind of memory: 32 TiB.
const MAX_DRAM_BYTES: u64 = 1 << 45;
/// Largest read-ahead distance: the whole distance is requested at once.
const MAX_READ_AHEAD: u64 = 1 << 30;
/// Pace of writes, in percent of the dies' rate: slower than a hundredth would be a write stall.
const PACE_PERCENT: RangeInclusive<f64> = 1.0..=1_000.0;
/// Blocks that enter ahead of the pace: up to 4 GiB.
const PACE_BURST: RangeInclusive<u32> = 0..=1_048_576;
/// Interval between two bursts, in milliseconds: up to an hour.
const BURSTS_MS: RangeInclusive<f64> = 0.01..=3.6e6;
/// Concurrent programs of garbage collection, for each die.
const PROGRAMS_PER_DIE: RangeInclusive<u32> = 1..=1024;
/// Concurrently erasing dies.
const ERASES_AT_ONCE: RangeInclusive<u32> = 1..=65_536;
/// Longest window, in milliseconds: ten days, the maximum length of a job.
const LONGEST_WINDOW_MS: u64 = 864_000_000;

impl Controller {
    pub(super) fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("controller.cores", self.cores, CORES),
            bounds::time_us("controller.command_us", self.command_us),
            bounds::time_us("controller.pipeline_us", self.pipeline_us),
            bounds::cost_ns("controller.block_ns", self.block_ns),
            bounds::cost_ns("controller.map_ns", self.map_ns),
            bounds::slice_us("controller.quantum_us", self.quantum_us),
            bounds::range("controller.queue_depth", self.queue_depth, QUEUE_DEPTH),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl Dram {
    pub(super) fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("dram.bytes", self.bytes, 0..=MAX_DRAM_BYTES),
            bounds::speed_mb_per_s("dram.mb_per_s", self.mb_per_s),
            bounds::cost_ns("dram.access_ns", self.access_ns),
            bounds::range("dram.read_cache_bytes", self.read_cache_bytes, 0..=MAX_DRAM_BYTES),
            bounds::range("dram.read_ahead_bytes", self.read_ahead_bytes, 0..=MAX_READ_AHEAD),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl WriteBuffer {
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(bounds::range("buffer.bytes", self.bytes, 0..=MAX_DRAM_BYTES));
        if !(0.0 <= self.stop_percent
            && self.stop_percent <= self.start_percent
            && self.start_percent <= 100.0)
        {
            problems.push(
                "stop_percent and start_percent: 0 <= stop_percent <= start_percent <= 100 must hold"
                    .to_owned(),
            );
        }
        let interval = bounds::range("burst_interval_ms", self.burst_interval_ms, BURSTS_MS);
        problems.extend(interval);
        problems
    }
}

impl Background {
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0 <= self.start_free_percent
            && self.start_free_percent <= self.stop_free_percent
            && self.stop_free_percent < 100.0)
        {
            problems.push(
                "start_free_percent and stop_free_percent: 0 <= start_free_percent <= \
                 stop_free_percent < 100 must hold"
                    .to_owned(),
            );
        }
        if self.reclaim_reads == 0 || self.critical_reads <= self.reclaim_reads {
            problems.push(
                "reclaim_reads and critical_reads: 0 < reclaim_reads < critical_reads must hold"
                    .to_owned(),
            );
        }
        let programs = self.programs_per_die;
        problems.extend(bounds::range("programs_per_die", programs, PROGRAMS_PER_DIE));
        let erases = self.erases_at_once;
        problems.extend(erases.and_then(|n| bounds::range("erases_at_once", n, ERASES_AT_ONCE)));
        problems.extend(self.pacing.iter().flat_map(WritePacing::problems));
        problems
    }
}

impl WritePacing {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("background.pacing.percent", self.percent, PACE_PERCENT),
            bounds::range("background.pacing.burst_blocks", self.burst_blocks, PACE_BURST),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl PlmProfile {
    pub(super) fn problems(&self) -> Vec<String> {
        let times = [
            ("dtwin_time_max_ms", self.dtwin_time_max_ms),
            ("ndwin_time_min_low_ms", self.ndwin_time_min_low_ms),
            ("ndwin_time_min_high_ms", self.ndwin_time_min_high_ms),
        ];
        let times = times.into_iter();
        times.filter_map(|(key, ms)| bounds::range(key, ms, 0..=LONGEST_WINDOW_MS)).collect()
    }
}
