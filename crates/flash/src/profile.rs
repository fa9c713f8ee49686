//! The physical parameters of a flash array. Profiles are TOML; each number there has its source
//! or the word "assumed" beside it.

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

use crate::Geometry;

/// Everything `flash` needs to know of a drive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlashProfile {
    /// How the array is cut up.
    pub geometry: Geometry,
    /// How long its operations take.
    pub timing: Timing,
    /// Suspension of programs, erases or both; absent if the parts or the firmware do not have it.
    pub suspend: Option<Suspend>,
    /// Reads of a die side by side; absent if a read holds its die until its page is transferred.
    pub overlap: Option<ReadOverlap>,
    /// Bit errors; absent for a drive without.
    pub errors: Option<ErrorModel>,
    /// Read disturb; absent where it is not looked at.
    pub read_disturb: Option<ReadDisturb>,
}

/// Operation times, in microseconds as data sheets give them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Array read (tR) by page type, fastest first; as many as bits per cell.
    pub read_us: Vec<f64>,
    /// Array program (tPROG) by page type, or one number for one-shot programming.
    pub program_us: Vec<f64>,
    /// Block erase (tBERS).
    pub erase_us: f64,
    /// Command and address cycles before each operation.
    pub command_us: f64,
    /// Whether these occupy the channel too, as they do in any real part, or the die only.
    #[serde(default)]
    pub commands_on_channel: bool,
    /// Bus speed of a channel, in decimal megabytes per second.
    pub channel_mb_per_s: f64,
    /// How long background work may be passed over by demand reads on one die.
    pub background_deadline_us: f64,
}

/// Suspending a program or an erase so that a waiting demand read can be served. Each has its own
/// switch: parts that suspend the one need not suspend the other.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Time to suspend a program; absent if programs are not suspended.
    pub program_us: Option<f64>,
    /// Time to suspend an erase; absent if erases are not suspended.
    pub erase_us: Option<f64>,
    /// Time to resume either.
    pub resume_us: f64,
    /// Progress an operation must make between two suspensions.
    pub min_progress_us: f64,
    /// Longest time an operation stays suspended while reads keep coming.
    pub max_span_us: f64,
    /// Suspensions allowed per operation.
    pub max_per_operation: u32,
    /// Suspensions allowed per program, if that is another number: each disturbs the cells that are half programmed, which an erase
    /// has none of, so that parts may allow fewer. Absent: as many.
    #[serde(default)]
    pub max_per_program: Option<u32>,
}

/// Reads that one die has under way at a time. A program or an erase still takes all of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadOverlap {
    /// Whether each plane senses for itself, any page at any time, or the die one page at a time.
    #[serde(default)]
    pub independent_planes: bool,
    /// Cache read: the next page is sensed while the one before it waits for the channel or crosses it. This
    /// is what it takes to move that out of the way, which the next sense waits for. Absent if the parts
    /// or the firmware do not have it.
    pub cache_us: Option<f64>,
}

/// Bit errors, as their effect: reads that need more sensing, and reads that fail.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorModel {
    /// Probability that a read needs one more sense, and again after each.
    pub retry_probability: f64,
    /// Time of one more sense with shifted thresholds.
    pub retry_us: f64,
    /// Senses after which a page counts as unreadable.
    pub max_retries: u32,
}

/// What reading does to the pages of a block that is not erased meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadDisturb {
    /// Reads of a block since its last erase from which on its pages have more bit errors than the
    /// code corrects. A sharp edge instead of a slope: a firmware that stays below it is right.
    pub limit_reads: u64,
}

impl FlashProfile {
    /// Everything that is wrong with these numbers, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.geometry.problems();
        let types = self.geometry.bits_per_cell as usize;
        let timing = &self.timing;
        if timing.read_us.len() != types {
            problems.push(format!("timing.read_us needs {types} numbers, one for each page type"));
        }
        let programs = if self.geometry.one_shot { 1 } else { types };
        if timing.program_us.len() != programs {
            problems.push(format!("timing.program_us needs {programs} numbers"));
        }
        problems.extend(timing.problems());
        problems.extend(self.suspend.iter().flat_map(Suspend::problems));
        let planes = self.geometry.planes_per_die;
        problems.extend(self.overlap.iter().flat_map(|overlap| overlap.problems(planes)));
        problems.extend(self.errors.iter().flat_map(ErrorModel::problems));
        problems
    }
}

impl ReadOverlap {
    fn problems(&self, planes: u32) -> Vec<String> {
        let is_idle = !self.independent_planes && self.cache_us.is_none();
        let idle = is_idle.then(|| {
            "overlap needs independent_planes = true, cache_us or both: without either leave the section \
             out"
                .to_owned()
        });
        let lone = (self.independent_planes && planes < 2).then(|| {
            format!("overlap.independent_planes needs two planes_per_die or more, not {planes}")
        });
        let cache = self.cache_us.and_then(|us| bounds::time_us("overlap.cache_us", us));
        idle.into_iter().chain(lone).chain(cache).collect()
    }
}

impl Timing {
    fn problems(&self) -> Vec<String> {
        let time = bounds::time_us;
        let mut problems = Vec::new();
        problems.extend(self.read_us.iter().find_map(|us| time("timing.read_us", *us)));
        problems.extend(self.program_us.iter().find_map(|us| time("timing.program_us", *us)));
        problems.extend(time("timing.erase_us", self.erase_us));
        problems.extend(time("timing.command_us", self.command_us));
        problems.extend(bounds::speed_mb_per_s("timing.channel_mb_per_s", self.channel_mb_per_s));
        problems.extend(time("timing.background_deadline_us", self.background_deadline_us));
        problems
    }
}

impl Suspend {
    fn problems(&self) -> Vec<String> {
        let times = [
            ("suspend.program_us", self.program_us),
            ("suspend.erase_us", self.erase_us),
            ("suspend.resume_us", Some(self.resume_us)),
            ("suspend.min_progress_us", Some(self.min_progress_us)),
            ("suspend.max_span_us", Some(self.max_span_us)),
        ];
        let times = times.into_iter().filter_map(|(key, us)| bounds::time_us(key, us?));
        let count = self.max_per_operation;
        let count_of_programs = self.max_per_program.unwrap_or(count);
        let counts = [
            bounds::range("suspend.max_per_operation", count, 0..=MAX_SUSPENSIONS),
            bounds::range("suspend.max_per_program", count_of_programs, 0..=MAX_SUSPENSIONS)
                .filter(|_| self.max_per_program.is_some()),
        ];
        let counts = counts.into_iter().flatten();
        let is_idle = self.program_us.is_none() && self.erase_us.is_none();
        let idle = is_idle.then(|| {
            "suspend needs program_us, erase_us or both: without either leave the section out"
                .to_owned()
        });
        times.chain(counts).chain(idle).collect()
    }
}

impl ErrorModel {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..1.0).contains(&self.retry_probability) {
            problems.push("retry_probability must be at least 0 and less than 1".to_owned());
        }
        problems.extend(bounds::time_us("errors.retry_us", self.retry_us));
        problems.extend(bounds::range("errors.max_retries", self.max_retries, 0..=MAX_RETRIES));
        problems
    }
}

/// Most suspensions of one operation.
const MAX_SUSPENSIONS: u32 = 1_000_000;
/// Most senses of one read.
const MAX_RETRIES: u32 = 1_000;

/// [`Timing`] in the unit the simulation counts in, looked up by page type.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    pub read: Vec<Nanos>,
    pub program: Vec<Nanos>,
    pub erase: Nanos,
    /// Command cycles, where the die alone counts them.
    pub command: Nanos,
    /// Command cycles, where the channel carries them.
    pub command_on_channel: Option<Nanos>,
    pub transfer_page: Nanos,
    pub background_deadline: Nanos,
    pub suspend: Option<SuspendDurations>,
    pub overlap: Overlap,
    pub retry: Nanos,
    pub disturb_limit: Option<u64>,
    page_bytes: u64,
}

/// Which reads of a die may be under way at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlap {
    /// Parts of a die that sense each for itself: its planes, or 1.
    pub sensors: u32,
    /// Whether a sensor may read on while its last page waits for the channel, and how long it takes to
    /// move that out of the way.
    pub cache: Option<Nanos>,
}

impl Overlap {
    fn new(profile: &FlashProfile) -> Self {
        let overlap = profile.overlap.as_ref();
        let is_independent = overlap.is_some_and(|overlap| overlap.independent_planes);
        Self {
            sensors: if is_independent { profile.geometry.planes_per_die } else { 1 },
            cache: overlap.and_then(|o| o.cache_us).map(Nanos::from_micros_f64),
        }
    }

    /// Whether a die may have more than one read at a time.
    pub(crate) fn is_any(self) -> bool {
        self.sensors > 1 || self.cache.is_some()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SuspendDurations {
    program: Option<Nanos>,
    erase: Option<Nanos>,
    pub resume: Nanos,
    pub min_progress: Nanos,
    pub max_span: Nanos,
    most_of_program: u32,
    most_of_erase: u32,
}

impl SuspendDurations {
    /// How often an operation may be suspended.
    pub(crate) fn most(&self, is_erase: bool) -> u32 {
        if is_erase { self.most_of_erase } else { self.most_of_program }
    }

    /// What it takes to suspend an operation; nothing if its kind is not suspended.
    pub(crate) fn suspending(&self, is_erase: bool) -> Option<Nanos> {
        if is_erase { self.erase } else { self.program }
    }
}

impl Durations {
    pub(crate) fn new(profile: &FlashProfile) -> Self {
        let us = Nanos::from_micros_f64;
        let timing = &profile.timing;
        let transfer_us = f64::from(profile.geometry.transfer_bytes) / timing.channel_mb_per_s;
        Self {
            read: timing.read_us.iter().map(|t| us(*t)).collect(),
            program: timing.program_us.iter().map(|t| us(*t)).collect(),
            erase: us(timing.erase_us),
            command: if timing.commands_on_channel { Nanos::ZERO } else { us(timing.command_us) },
            command_on_channel: timing.commands_on_channel.then(|| us(timing.command_us)),
            transfer_page: us(transfer_us),
            background_deadline: us(timing.background_deadline_us),
            suspend: profile.suspend.as_ref().map(|s| SuspendDurations {
                program: s.program_us.map(us),
                erase: s.erase_us.map(us),
                resume: us(s.resume_us),
                min_progress: us(s.min_progress_us),
                max_span: us(s.max_span_us),
                most_of_program: s.max_per_program.unwrap_or(s.max_per_operation),
                most_of_erase: s.max_per_operation,
            }),
            overlap: Overlap::new(profile),
            retry: profile.errors.as_ref().map_or(Nanos::ZERO, |e| us(e.retry_us)),
            disturb_limit: profile.read_disturb.as_ref().map(|d| d.limit_reads),
            page_bytes: u64::from(profile.geometry.page_bytes),
        }
    }

    /// How long `bytes` of a page occupy the bus, with their share of spare area and code.
    pub(crate) fn transfer_of(&self, bytes: u32) -> Nanos {
        Nanos(self.transfer_page.0 * u64::from(bytes) / self.page_bytes)
    }

    pub(crate) fn program_of(&self, page_type: u32) -> Nanos {
        self.program[(page_type as usize).min(self.program.len() - 1)]
    }
}
