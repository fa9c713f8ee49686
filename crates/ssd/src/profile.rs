//! Profiles of block drives: physical parameters and what the firmware is set up for.

mod numbers;
mod space;

use block::BLOCK_BYTES;
use catalogue::{CatalogueError, Entry, unprintable};
use firmware::{COMMAND_BYTES, HostLink};
use flash::{FlashProfile, Geometry};
use serde::{Deserialize, Serialize};

use crate::map_cache::BLOCKS_PER_PAGE;

/// A block drive. Numbers are of the whole drive; each of its sets has its share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SsdProfile {
    /// Its name in results.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// NVM sets it is cut into. Each has its own cores, memory and channels.
    pub sets: u32,
    /// Bytes that users see, over all sets: whole blocks. What does not divide into sets is left out.
    pub user_bytes: u64,
    /// Its flash.
    pub flash: FlashProfile,
    /// Its firmware's processor.
    pub controller: Controller,
    /// Its memory.
    pub dram: Dram,
    /// How much of its mapping is in memory; absent if all of it is.
    pub mapping: Option<PagedMapping>,
    /// Its write buffer.
    pub buffer: WriteBuffer,
    /// Its background work.
    pub background: Background,
    /// Its predictable-latency windows, if it has any.
    pub plm: Option<PlmProfile>,
    /// How the host reaches it.
    pub host: HostLink,
    /// Whether reads that clients wait for have queues, cores, memory, link, channels and dies to themselves, so that nothing
    /// in the background disturbs them. No drive has that, and none knows who reads: it is the bound of what keeping them
    /// apart can bring. Simulation only.
    #[serde(default)]
    pub undisturbed_clients: bool,
}

/// The processor that runs the firmware, and what the firmware costs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor cores of the drive.
    pub cores: u32,
    /// Time that a command occupies a core for, in microseconds: bounds commands per second.
    pub command_us: f64,
    /// Time that a command takes in stages that overlap with others, in microseconds: adds to
    /// latency only.
    pub pipeline_us: f64,
    /// Core time for each further block of a command, in nanoseconds.
    pub block_ns: f64,
    /// Core time to place a block on flash and enter it in the mapping, in nanoseconds.
    pub map_ns: f64,
    /// Longest stretch that background work keeps a core, in microseconds.
    pub quantum_us: f64,
    /// Commands that a set holds at a time; more wait outside.
    pub queue_depth: u32,
}

/// Memory of the drive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// Its size in bytes: mapping, write buffer and read cache have to fit.
    pub bytes: u64,
    /// Its speed in decimal megabytes per second.
    pub mb_per_s: f64,
    /// Time of an access, in nanoseconds.
    pub access_ns: f64,
    /// For blocks that were read ahead, in bytes.
    pub read_cache_bytes: u64,
    /// How far a client that reads in order is read ahead of, in bytes; 0 for not at all.
    pub read_ahead_bytes: u64,
}

/// A mapping that is on flash, in pages of 1,024 blocks, and of which memory holds what was used last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PagedMapping {
    /// Memory for mapping pages, in bytes: from one page (4,096 bytes) of each set on.
    pub cached_bytes: u64,
    /// Blocks whose places are in one of them, if not 1,024: small drives of trials have many pages with fewer.
    #[serde(skip)]
    pub blocks_per_page: Option<u32>,
}

impl PagedMapping {
    pub(crate) fn blocks_per_page(&self) -> u32 {
        self.blocks_per_page.unwrap_or(BLOCKS_PER_PAGE)
    }
}

/// The write buffer and how it is emptied.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether capacitors save it in a power cut. Without them a write is durable after Flush only.
    pub has_capacitors: bool,
    /// Filled so far it is emptied at full speed, in percent.
    pub start_percent: f64,
    /// Down to here, in percent.
    pub stop_percent: f64,
    /// What is below that goes to flash in bursts of one unit for each die, this often, in
    /// milliseconds.
    pub burst_interval_ms: f64,
}

/// Garbage collection, read reclaim, wear levelling.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Free superblocks, in percent of all, that garbage collection keeps. While there is less room
    /// it goes on, at the pace of clients; as fast as it can where windows are turned on.
    pub start_free_percent: f64,
    /// Free superblocks at which it ends where windows are turned on. The further from where it
    /// begins, the longer the waves in which it comes.
    pub stop_free_percent: f64,
    /// Programs of garbage collection under way at a time, for each die.
    pub programs_per_die: u32,
    /// Dies of the drive that erase at a time, for one superblock of each set; absent for all at once. Fewer
    /// make the longest waits of writes shorter, and more reads meet an erase: it takes longer in all.
    pub erases_at_once: Option<u32>,
    /// Whether writes are paced while space is low; absent if they wait for room in the buffer only.
    pub pacing: Option<WritePacing>,
    /// Reads of a block since its last erase after which its data move elsewhere.
    pub reclaim_reads: u64,
    /// Reads of a block at which that cannot wait for any window.
    pub critical_reads: u64,
    /// Erases by which a superblock may lag behind the most worn.
    pub wear_spread: u32,
    /// Discarded ranges that are remembered; further discards are ignored, as the standard allows.
    pub discarded_ranges: u32,
}

/// Writes that go into the buffer, while space is low, only as fast as collection can go on making room for them. What is moved
/// because of reads or wear is not reckoned with, nor are pages of a mapping on flash, which go without it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WritePacing {
    /// At this share of what the dies would take by the sum of their times, in percent: they also wait for channels and for
    /// reads, and the buffer is not to fill.
    pub percent: f64,
    /// Blocks that may go in at once before their time.
    pub burst_blocks: u32,
}

/// Which rules windows follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlmRules {
    /// Vigil-KV's hardware: time is the only budget, any write ends the window, the write buffer is
    /// empty and off while it lasts.
    Vigil,
    /// The NVMe standard's: reads, writes and time have budgets.
    Standard,
}

/// Predictable-latency windows. All numbers are worst cases over the drive's life.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlmProfile {
    /// The rules.
    pub rules: PlmRules,
    /// DTWIN Time Maximum, in milliseconds.
    pub dtwin_time_max_ms: u64,
    /// NDWIN Time Minimum Low, in milliseconds: the next DTWIN is held back until then.
    pub ndwin_time_min_low_ms: u64,
    /// NDWIN Time Minimum High, in milliseconds: what it takes after a longest DTWIN. It is only
    /// reported: the next DTWIN is held back by the low minimum.
    pub ndwin_time_min_high_ms: u64,
    /// DTWIN Reads Typical, in random 4 KiB reads; 0 for no such budget.
    pub dtwin_reads_typical: u64,
    /// DTWIN Writes Typical, in writes of the optimal size.
    pub dtwin_writes_typical: u64,
}

impl SsdProfile {
    /// A built-in profile by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Logical blocks of each set.
    pub fn blocks_per_set(&self) -> u64 {
        self.user_bytes / u64::from(self.sets) / u64::from(BLOCK_BYTES)
    }

    /// Mapping pages of each set that are blocks on flash like others: none if the mapping is in memory.
    pub(crate) fn mapping_pages_on_flash(&self) -> u64 {
        let pages = |paged: &PagedMapping| {
            self.blocks_per_set().div_ceil(u64::from(paged.blocks_per_page()))
        };
        self.mapping.as_ref().map_or(0, pages)
    }

    /// Bytes of memory that the whole mapping takes.
    pub(crate) fn whole_mapping_bytes(&self) -> u64 {
        let of_trials = self.mapping.as_ref().and_then(|paged| paged.blocks_per_page);
        let bytes_each = of_trials.map_or(4, |blocks| BLOCK_BYTES / blocks);
        self.user_bytes / u64::from(BLOCK_BYTES) * u64::from(bytes_each)
    }

    /// Mapping pages of each set that memory holds, if it does not hold all.
    pub(crate) fn cached_mapping_pages(&self) -> Option<usize> {
        let of_set = |paged: &PagedMapping| paged.cached_bytes / u64::from(self.sets);
        self.mapping.as_ref().map(|paged| (of_set(paged) / u64::from(BLOCK_BYTES)) as usize)
    }

    /// The flash of one set: its share of the channels.
    pub fn flash_of_set(&self) -> FlashProfile {
        let geometry = Geometry {
            channels: self.flash.geometry.channels / self.sets,
            ..self.flash.geometry.clone()
        };
        FlashProfile { geometry, ..self.flash.clone() }
    }

    /// How long a read of one block takes that meets no other, by page type, in microseconds: the
    /// sum of its steps.
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
        ("vigil-1.92tb", include_str!("../profiles/vigil-1.92tb.toml")),
        ("baseline-1.92tb", include_str!("../profiles/baseline-1.92tb.toml")),
        ("vigil-15gb", include_str!("../profiles/vigil-15gb.toml")),
        ("baseline-15gb", include_str!("../profiles/baseline-15gb.toml")),
        ("pm9a3-960gb", include_str!("../profiles/pm9a3-960gb.toml")),
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

#[cfg(test)]
mod tests;
