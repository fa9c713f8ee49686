//! Drives, designs and loads of trials.

use engine::{Durability, Granularity, IteratorOptions, LogSync, Options};
use runtime::{Nanos, Rng};
use stacks::design::IndexOptions;
use stacks::kvssd::{DeviceProfile, DriveOptions};
use testkit::trial::Names;

use crate::harness::{for_hash, small_device, small_hash, small_tlc_device};

/// Parameters that vary from trial to trial besides the random choices.
pub(crate) struct Shape {
    pub device: DeviceProfile,
    pub engine: IndexOptions,
    /// Lengths that the index is sized for, in bytes.
    pub expected_key_bytes: u32,
    pub expected_value_bytes: u32,
    pub keys: usize,
    pub names: Names,
    /// Usual values are shorter than this.
    pub usual_value: u32,
    /// Most bytes of a value, if the drive accepts them.
    pub longest_value: u32,
    /// Whether every key is stored once before anything else: the drive is full from the start.
    pub is_filled: bool,
    pub clients: usize,
    pub scanners: usize,
    pub sessions: usize,
    pub cuts: Cuts,
    /// Whether each write specifies its acknowledgement, which matters without capacitors.
    pub draws_sync: bool,
    /// Factor on the usual waiting times that clients accept.
    pub slowness: u64,
}

/// Length of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// From half of `longest` to `longest`.
    Seldom { longest: Nanos },
    /// A few milliseconds or less; the last one is long enough for every client to progress.
    Restless,
}

impl Cuts {
    /// Returns the length of a session.
    pub(crate) fn span(self, is_last: bool, rng: &mut Rng) -> Nanos {
        let between = |least: u64, most: u64, rng: &mut Rng| Nanos(least + rng.below(most - least));
        match self {
            Self::Seldom { longest } => between(longest.0 / 2, longest.0, rng),
            Self::Restless if is_last => Nanos::from_millis(400),
            Self::Restless => between(100_000, 6_000_000, rng),
        }
    }
}

impl Shape {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let is_tlc = seed % 4 == 3;
        let is_filled = seed % 7 == 5;
        let mut device = if is_tlc { small_tlc_device() } else { small_device() };
        if seed % 5 == 1 {
            // Slow firmware and fast flash: the result of a lookup is old when it is used.
            device.controller.costs.key_compare_ns = 40_000.0;
            device.controller.cores = 16;
            device.flash.timing.erase_us = 100.0;
        }
        let compaction = if seed % 3 == 2 { Granularity::Whole } else { Granularity::Partial };
        Self {
            device,
            engine: Options {
                compaction,
                memtable_bytes: 4 << 10,
                iterators: iterators_of(seed),
                ..design_of_seed(seed)
            }
            .into(),
            expected_key_bytes: 30,
            expected_value_bytes: 120,
            names: Names::Usual,
            usual_value: 240,
            longest_value: 3_999,
            keys: if is_filled { 6_000 } else { 1_400 },
            is_filled,
            clients: 8,
            scanners: 2,
            sessions: 4,
            cuts: Cuts::Seldom { longest: session_of(seed) },
            draws_sync: false,
            slowness: 1,
        }
    }

    /// Returns how far the log may lag: each client may wait for a group of its own, and groups are
    /// written one after the other.
    pub(crate) fn log_may_be_behind(&self) -> Nanos {
        let timing = &self.device.flash.timing;
        let program = timing.program_us.iter().fold(0.0, |most: f64, us| most.max(*us));
        // A program may have to wait for an erase on its die.
        let us = program + timing.erase_us + timing.background_deadline_us;
        let group = Nanos::from_micros_f64(us);
        Nanos(group.0 * self.clients as u64 * self.slowness)
    }

    pub(crate) fn options(&self) -> DriveOptions {
        DriveOptions {
            expected_key_bytes: self.expected_key_bytes,
            expected_value_bytes: self.expected_value_bytes,
            ..DriveOptions::new(self.engine.clone())
        }
    }

    /// A usual drive without capacitors.
    pub(crate) fn of_log_seed(seed: u64) -> Self {
        Self::of_seed(seed).with_log(seed)
    }

    fn with_log(mut self, seed: u64) -> Self {
        let log_sync = match seed % 8 {
            1 | 5 => LogSync::Each,
            3 => LogSync::None,
            7 => LogSync::Interval,
            _ => LogSync::Group,
        };
        self.engine = self.engine.with_journal(Durability::Log, log_sync);
        self.draws_sync = seed % 8 > 3;
        // Each write waits for a program.
        self.cuts = Cuts::Seldom { longest: Nanos(2 * session_of(seed).0) };
        self
    }

    /// A drive without capacitors and with frequent power cuts.
    pub(crate) fn of_restless_log_seed(seed: u64) -> Self {
        Self { cuts: Cuts::Restless, sessions: 30, ..Self::of_log_seed(seed) }
    }

    /// A usual drive with a hash table.
    pub(crate) fn of_hash_seed(seed: u64) -> Self {
        let shape = Self::of_seed(seed);
        // The hash table has no iterators.
        Self { device: for_hash(shape.device), engine: small_hash().into(), scanners: 0, ..shape }
    }
}

/// Designs rotate with a period of their own, so that each meets every kind of drive.
fn design_of_seed(seed: u64) -> Options {
    match seed % 11 {
        3 | 8 => Options::lightstore(),
        5 | 10 => Options::pink_hw(),
        _ => Options::pink(),
    }
}

/// Returns a session length sufficient for every kind of compaction. With nothing pinned all takes
/// longer, and even more with slow firmware.
fn session_of(seed: u64) -> Nanos {
    let is_slow = seed % 5 == 1;
    let has_nothing_pinned = design_of_seed(seed).pinned_levels == Some(0);
    Nanos::from_millis(match (has_nothing_pinned, is_slow) {
        (false, _) => 900,
        (true, false) => 1_800,
        (true, true) => 3_600,
    })
}

fn iterators_of(seed: u64) -> IteratorOptions {
    let (index_prefetch, value_prefetch) =
        [(false, 0), (true, 0), (true, 8), (false, 3)][(seed / 2 % 4) as usize];
    let skip_budget = if seed.is_multiple_of(3) { 8 } else { 1024 };
    let readahead_bytes = if seed % 5 < 2 { 64 << 10 } else { 0 };
    let buffer_bytes = 16 << 10;
    IteratorOptions {
        index_prefetch,
        value_prefetch,
        skip_budget,
        buffer_bytes,
        readahead_bytes,
        ..IteratorOptions::default()
    }
}
