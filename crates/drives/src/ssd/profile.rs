//! Profiles of block drives: physical parameters and firmware settings.

mod numbers;
mod space;
#[cfg(test)]
mod tests;

use block::BLOCK_BYTES;
use catalogue::{CatalogueError, Entry, unprintable};
use serde::{Deserialize, Serialize};

use super::map_cache::BLOCKS_PER_PAGE;
use crate::firmware::{COMMAND_BYTES, HostLink};
use crate::nand::{FlashProfile, Geometry};

/// A block drive. Numbers are for the whole drive; each NVM set gets an equal share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SsdProfile {
    /// Name of the drive in results.
    pub name: String,
    /// Description, one sentence.
    pub description: String,
    /// NVM sets of the drive. Each has its own cores, memory and channels.
    pub sets: u32,
    /// User capacity of all sets in bytes, a multiple of the block size. A remainder that does not
    /// divide into the sets is unused.
    pub user_bytes: u64,
    /// NAND flash.
    pub flash: FlashProfile,
    /// Processor of the firmware.
    pub controller: Controller,
    /// Memory.
    pub dram: Dram,
    /// How much of the mapping is in memory; `None` if all of it is.
    pub mapping: Option<PagedMapping>,
    /// Write buffer.
    pub buffer: WriteBuffer,
    /// Background work.
    pub background: Background,
    /// Predictable-latency windows, if the drive supports them.
    pub plm: Option<PlmProfile>,
    /// Link to the host.
    pub host: HostLink,
    /// Whether client reads have queues, cores, memory, link, channels and dies of their own, so
    /// that no background work disturbs them. No real drive has this, and none knows which reads
    /// come from clients: it is the upper bound of the gain of isolating them. Simulation only.
    #[serde(default)]
    pub undisturbed_clients: bool,
}

/// The processor of the firmware, and the firmware's costs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor cores of the drive.
    pub cores: u32,
    /// Core time of a command, in microseconds: limits commands per second.
    pub command_us: f64,
    /// Time of a command in pipeline stages that overlap with other commands, in microseconds: adds
    /// to latency only.
    pub pipeline_us: f64,
    /// Core time for each block of a command after the first, in nanoseconds.
    pub block_ns: f64,
    /// Core time to place a block on flash and enter it in the mapping, in nanoseconds.
    pub map_ns: f64,
    /// Longest time for which background work keeps a core, in microseconds.
    pub quantum_us: f64,
    /// Commands that a set executes at a time; further commands wait in their submission queues.
    pub queue_depth: u32,
}

/// Memory of the drive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// Size in bytes: mapping, write buffer and read cache must fit.
    pub bytes: u64,
    /// Speed in decimal megabytes per second.
    pub mb_per_s: f64,
    /// Time of an access, in nanoseconds.
    pub access_ns: f64,
    /// Memory for blocks read ahead, in bytes.
    pub read_cache_bytes: u64,
    /// Read-ahead distance for a client that reads sequentially, in bytes; 0 disables read-ahead.
    pub read_ahead_bytes: u64,
}

/// A mapping stored on flash, in pages of 1,024 blocks. Memory caches the most recently used pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PagedMapping {
    /// Memory for mapping pages, in bytes: at least one page (4,096 bytes) for each set.
    pub cached_bytes: u64,
    /// Blocks per mapping page, if not 1,024. The small drives of trials use fewer, to have many
    /// pages.
    #[serde(skip)]
    pub blocks_per_page: Option<u32>,
}

impl PagedMapping {
    pub(crate) fn blocks_per_page(&self) -> u32 {
        self.blocks_per_page.unwrap_or(BLOCKS_PER_PAGE)
    }
}

/// The write buffer and its flush policy.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Size in bytes.
    pub bytes: u64,
    /// Whether capacitors save the buffer at a power cut. Without them a write is durable only
    /// after a Flush.
    pub has_capacitors: bool,
    /// Fill level, in percent, at which the buffer starts to be emptied at full speed.
    pub start_percent: f64,
    /// Fill level, in percent, at which emptying at full speed stops.
    pub stop_percent: f64,
    /// Below that level data go to flash in bursts of one program unit per die; this is the
    /// interval between bursts, in milliseconds.
    pub burst_interval_ms: f64,
}

/// Garbage collection, read reclaim, wear levelling.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Free superblocks, in percent of all, that garbage collection maintains. With fewer free ones
    /// it runs at the pace of client writes; with windows enabled, as fast as it can.
    pub start_free_percent: f64,
    /// Free superblocks, in percent of all, at which collection ends while windows are enabled. The
    /// larger the distance to `start_free_percent`, the longer each wave of collection.
    pub stop_free_percent: f64,
    /// Concurrent programs of garbage collection, for each die.
    pub programs_per_die: u32,
    /// Concurrently erasing dies of the drive, for one superblock of each set; `None` for all dies
    /// at once. A lower limit shortens the longest waits of writes, but more reads meet an erase,
    /// because the erase of the superblock takes longer in all.
    pub erases_at_once: Option<u32>,
    /// Write pacing while space is low; `None` if writes wait only for room in the buffer.
    pub pacing: Option<WritePacing>,
    /// Reads of a block since its last erase after which its data are moved (read reclaim).
    pub reclaim_reads: u64,
    /// Reads of a block at which read reclaim no longer waits for any window.
    pub critical_reads: u64,
    /// Erases by which a superblock may lag behind the most worn one.
    pub wear_spread: u32,
    /// Discarded ranges that the drive remembers; further discards are ignored, as the standard
    /// allows.
    pub discarded_ranges: u32,
}

/// Write pacing: while space is low, writes enter the buffer only as fast as collection makes room
/// for them. The pace does not account for read reclaim, wear levelling, or mapping pages on flash
/// (a profile with a paged mapping cannot have pacing).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WritePacing {
    /// Pace in percent of the rate that the dies could sustain by the sum of their operation times.
    /// Dies also wait for channels and for reads, and the buffer must not fill, so useful values
    /// are below 100.
    pub percent: f64,
    /// Blocks that may enter at once ahead of the pace.
    pub burst_blocks: u32,
}

/// The rules that windows follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlmRules {
    /// The rules of Vigil-KV's hardware: only time is budgeted, any write ends the window, and the
    /// write buffer is empty and disabled during the window.
    Vigil,
    /// The rules of the NVMe standard: reads, writes and time have budgets.
    Standard,
}

/// Predictable-latency windows. All numbers are worst cases over the drive's life.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlmProfile {
    /// Rules of the windows.
    pub rules: PlmRules,
    /// DTWIN Time Maximum, in milliseconds.
    pub dtwin_time_max_ms: u64,
    /// NDWIN Time Minimum Low, in milliseconds: the next DTWIN does not start earlier.
    pub ndwin_time_min_low_ms: u64,
    /// NDWIN Time Minimum High, in milliseconds: the time needed after a DTWIN of maximum length.
    /// Only reported: the next DTWIN is held back by the low minimum.
    pub ndwin_time_min_high_ms: u64,
    /// DTWIN Reads Typical, in random 4 KiB reads; 0 for no read budget.
    pub dtwin_reads_typical: u64,
    /// DTWIN Writes Typical, in writes of the optimal size.
    pub dtwin_writes_typical: u64,
}

impl SsdProfile {
    /// Loads a built-in profile by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// Returns an error that states the invalid setting and the allowed values.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Returns the names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the logical blocks of each set.
    pub fn blocks_per_set(&self) -> u64 {
        self.user_bytes / u64::from(self.sets) / u64::from(BLOCK_BYTES)
    }

    /// Returns the mapping pages of each set that are stored on flash like other blocks; 0 if the
    /// mapping is in memory.
    pub(crate) fn mapping_pages_on_flash(&self) -> u64 {
        let pages = |paged: &PagedMapping| {
            self.blocks_per_set().div_ceil(u64::from(paged.blocks_per_page()))
        };
        self.mapping.as_ref().map_or(0, pages)
    }

    /// Returns the memory of the whole mapping, in bytes.
    pub(crate) fn whole_mapping_bytes(&self) -> u64 {
        let of_trials = self.mapping.as_ref().and_then(|paged| paged.blocks_per_page);
        let bytes_each = of_trials.map_or(4, |blocks| BLOCK_BYTES / blocks);
        self.user_bytes / u64::from(BLOCK_BYTES) * u64::from(bytes_each)
    }

    /// Returns the mapping pages of each set that memory holds; `None` if it holds the whole
    /// mapping.
    pub(crate) fn cached_mapping_pages(&self) -> Option<usize> {
        let of_set = |paged: &PagedMapping| paged.cached_bytes / u64::from(self.sets);
        self.mapping.as_ref().map(|paged| (of_set(paged) / u64::from(BLOCK_BYTES)) as usize)
    }

    /// Returns the flash of one set: its share of the channels.
    pub fn flash_of_set(&self) -> FlashProfile {
        let geometry = Geometry {
            channels: self.flash.geometry.channels / self.sets,
            ..self.flash.geometry.clone()
        };
        FlashProfile { geometry, ..self.flash.clone() }
    }

    /// Returns the latency of an uncontended one-block read for each page type, in microseconds:
    /// the sum of its steps.
    pub fn read_alone_us(&self) -> Vec<f64> {
        let (controller, timing, geometry) =
            (&self.controller, &self.flash.timing, &self.flash.geometry);
        let block = f64::from(BLOCK_BYTES);
        let memory_us =
            block / (self.dram.mb_per_s / f64::from(self.sets)) + self.dram.access_ns / 1e3;
        let link_us =
            (block + COMMAND_BYTES as f64) / self.host.read_mb_per_s + self.host.latency_us;
        let part = block / f64::from(geometry.page_bytes);
        let transfer_us = f64::from(geometry.transfer_bytes) * part / timing.channel_mb_per_s;
        let around = controller.command_us + controller.pipeline_us + memory_us + link_us;
        let flash = |sense: &f64| timing.command_us + sense + transfer_us;
        timing.read_us.iter().map(|sense| around + flash(sense)).collect()
    }

    fn problems_of_sets(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let (geometry, sets) = (&self.flash.geometry, self.sets);
        if sets == 0 || !geometry.channels.is_multiple_of(sets) {
            problems.push("sets must divide channels".to_owned());
        }
        if !self.controller.cores.is_multiple_of(sets.max(1)) {
            problems.push("controller.cores must be a multiple of sets".to_owned());
        }
        let whole = u64::from(BLOCK_BYTES);
        if !self.user_bytes.is_multiple_of(whole) {
            problems.push(format!(
                "user_bytes is {}, must be a multiple of {whole}, the size of a block: {} or {}",
                self.user_bytes,
                self.user_bytes / whole * whole,
                (self.user_bytes / whole + 1).saturating_mul(whole)
            ));
        }
        if geometry.page_bytes < BLOCK_BYTES {
            problems.push(format!("page_bytes must be at least {BLOCK_BYTES}"));
        }
        problems
    }
}

impl Entry for SsdProfile {
    const KIND: &'static str = "block drive";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("vigil-1.92tb", include_str!("../../profiles/vigil-1.92tb.toml")),
        ("baseline-1.92tb", include_str!("../../profiles/baseline-1.92tb.toml")),
        ("vigil-15gb", include_str!("../../profiles/vigil-15gb.toml")),
        ("baseline-15gb", include_str!("../../profiles/baseline-15gb.toml")),
        ("pm9a3-960gb", include_str!("../../profiles/pm9a3-960gb.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        let texts = [("name", &self.name), ("description", &self.description)];
        let mut problems: Vec<_> =
            texts.into_iter().filter_map(|(key, text)| unprintable(key, text)).collect();
        problems.extend(self.flash.problems());
        problems.extend(self.problems_of_sets());
        problems.extend(self.controller.problems());
        problems.extend(self.dram.problems());
        problems.extend(self.buffer.problems());
        problems.extend(self.background.problems());
        if let Some(limit) = &self.flash.read_disturb
            && limit.limit_reads <= self.background.critical_reads
        {
            problems.push("critical_reads must be below the flash's limit_reads".to_owned());
        }
        if self.mapping.is_some() && self.background.pacing.is_some() {
            problems.push(
                "background.pacing does not reckon with the pages of a mapping on flash: leave [mapping] \
                 or the section [background.pacing] out (`levelhead show` prints a built-in drive; delete \
                 the section in that file, --set cannot)"
                    .to_owned(),
            );
        }
        problems.extend(self.plm.iter().flat_map(PlmProfile::problems));
        problems.extend(self.host.problems());
        if problems.is_empty() {
            problems = self.problems_of_space();
        }
        problems
    }
}
