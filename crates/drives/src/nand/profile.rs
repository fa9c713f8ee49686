//! The physical parameters of a flash array. Profiles are TOML files; each number in them has its
//! source or the word "assumed" next to it.

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

use super::Geometry;

/// All parameters of a drive's flash.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlashProfile {
    /// Geometry of the array.
    pub geometry: Geometry,
    /// Duration of its operations.
    pub timing: Timing,
    /// Suspension of programs, erases or both; `None` if parts or firmware do not support it.
    pub suspend: Option<Suspend>,
    /// Overlapping reads of a die; `None` if a read occupies its die until its page is transferred.
    pub overlap: Option<ReadOverlap>,
    /// Bit errors; `None` for a drive without.
    pub errors: Option<ErrorModel>,
    /// Read disturb; `None` if it is not modelled.
    pub read_disturb: Option<ReadDisturb>,
}

/// Operation times, in microseconds as in data sheets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Array read (tR) by page type, fastest first; as many as bits per cell.
    pub read_us: Vec<f64>,
    /// Array program (tPROG) by page type, or one number for one-shot programming.
    pub program_us: Vec<f64>,
    /// Block erase (tBERS).
    pub erase_us: f64,
    /// Command and address cycles of each operation.
    pub command_us: f64,
    /// Whether command cycles also occupy the channel, as in any real part, or only the die.
    #[serde(default)]
    pub commands_on_channel: bool,
    /// Bus speed of a channel, in decimal megabytes per second.
    pub channel_mb_per_s: f64,
    /// Longest time for which demand reads may overtake background work on one die.
    pub background_deadline_us: f64,
}

/// Suspension of a program or an erase for a waiting demand read. Each has its own switch: parts
/// may support only one of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Time to suspend a program; `None` if programs are not suspended.
    pub program_us: Option<f64>,
    /// Time to suspend an erase; `None` if erases are not suspended.
    pub erase_us: Option<f64>,
    /// Time to resume either.
    pub resume_us: f64,
    /// Progress an operation must make between two suspensions.
    pub min_progress_us: f64,
    /// Longest time an operation stays suspended while reads keep coming.
    pub max_span_us: f64,
    /// Suspensions allowed per operation.
    pub max_per_operation: u32,
    /// Suspensions allowed per program, if different. Parts may allow fewer than for an erase,
    /// because each one disturbs the half-programmed cells. `None`: same as `max_per_operation`.
    #[serde(default)]
    pub max_per_program: Option<u32>,
}

/// Concurrent reads of one die. A program or an erase still needs the whole die.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadOverlap {
    /// Whether each plane senses independently, any page at any time. Otherwise the die senses one
    /// page at a time.
    #[serde(default)]
    pub independent_planes: bool,
    /// Cache read: the next page is sensed while the previous one waits for the channel or crosses
    /// it. This is the time to move the previous page out of the way, which the next sense waits
    /// for. `None` if parts or firmware do not support it.
    pub cache_us: Option<f64>,
}

/// Bit errors, modelled by their effect: reads that need more senses, and reads that fail.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorModel {
    /// Probability that a read needs one more sense, and again after each.
    pub retry_probability: f64,
    /// Time of one more sense with shifted thresholds.
    pub retry_us: f64,
    /// Extra senses after which a page counts as unreadable.
    pub max_retries: u32,
}

/// Read disturb: the effect of reads on the pages of a block that is not erased.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadDisturb {
    /// Reads of a block since its last erase from which its pages have more bit errors than the ECC
    /// corrects. A sharp limit instead of a slope: firmware that stays below it is correct.
    pub limit_reads: u64,
}

impl FlashProfile {
    /// Returns all problems of these numbers, in words.
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
/// Most extra senses of one read.
const MAX_RETRIES: u32 = 1_000;

/// [`Timing`] in the simulation's unit, indexed by page type.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    pub read: Vec<Nanos>,
    pub program: Vec<Nanos>,
    pub erase: Nanos,
    /// Command cycles if they occupy only the die, else 0.
    pub command: Nanos,
    /// Command cycles if they occupy the channel.
    pub command_on_channel: Option<Nanos>,
    pub transfer_page: Nanos,
    pub background_deadline: Nanos,
    pub suspend: Option<SuspendDurations>,
    pub overlap: Overlap,
    pub retry: Nanos,
    pub disturb_limit: Option<u64>,
    page_bytes: u64,
}

/// Which reads of a die may overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlap {
    /// Parts of a die that sense independently: its planes, or 1.
    pub sensors: u32,
    /// Whether a sensor may continue while its last page waits for the channel, and the time to
    /// move that page out of the way.
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

    /// Returns whether a die may have more than one read at a time.
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
    /// Returns how often an operation may be suspended.
    pub(crate) fn most(&self, is_erase: bool) -> u32 {
        if is_erase { self.most_of_erase } else { self.most_of_program }
    }

    /// Returns the time to suspend an operation; `None` if its kind is not suspended.
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

    /// Returns the time that `bytes` of a page occupy the bus, with their share of spare area and
    /// ECC.
    pub(crate) fn transfer_of(&self, bytes: u32) -> Nanos {
        Nanos(self.transfer_page.0 * u64::from(bytes) / self.page_bytes)
    }

    pub(crate) fn program_of(&self, page_type: u32) -> Nanos {
        self.program[(page_type as usize).min(self.program.len() - 1)]
    }
}
