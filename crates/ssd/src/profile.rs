//! Profiles of block drives: physical parameters and what the firmware is set up for.

mod numbers;

use block::BLOCK_BYTES;
use catalogue::{CatalogueError, Entry, unprintable};
use firmware::{COMMAND_BYTES, HostLink};
use flash::{FlashProfile, Geometry};
use serde::Deserialize;

use crate::layout::Layout;
use crate::map_cache::BLOCKS_PER_PAGE;
use crate::page;

/// A block drive. Numbers are of the whole drive; each of its sets has its share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagedMapping {
    /// Memory for mapping pages, in bytes.
    pub cached_bytes: u64,
}

/// The write buffer and how it is emptied.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Free superblocks, in percent of all, below which garbage collection begins.
    pub start_free_percent: f64,
    /// Free superblocks at which it ends. The further from where it begins, the longer the waves in which it comes.
    pub stop_free_percent: f64,
    /// Programs of garbage collection under way at a time, for each die.
    pub programs_per_die: u32,
    /// Dies of the drive that erase at a time, for one superblock of each set; absent for all at once. Fewer
    /// make the longest waits of writes shorter, and more reads meet an erase: it takes longer in all.
    pub erases_at_once: Option<u32>,
    /// Whether collection goes on only as fast as clients write, instead of as fast as it can until there is
    /// enough free.
    #[serde(default)]
    pub keeps_pace: bool,
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

/// Writes that go into the buffer, while space is low, only as fast as collection can go on making room for them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WritePacing {
    /// At this share of what the dies would take by the sum of their times, in percent: they also wait for channels and for
    /// reads, and the buffer is not to fill.
    pub percent: f64,
    /// Blocks that may go in at once before their time.
    pub burst_blocks: u32,
}

/// Which rules windows follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlmRules {
    /// Vigil-KV's hardware: time is the only budget, any write ends the window, the write buffer is
    /// empty and off while it lasts.
    Vigil,
    /// The NVMe standard's: reads, writes and time have budgets.
    Standard,
}

/// Predictable-latency windows. All numbers are worst cases over the drive's life.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlmProfile {
    /// The rules.
    pub rules: PlmRules,
    /// DTWIN Time Maximum, in milliseconds.
    pub dtwin_time_max_ms: u64,
    /// NDWIN Time Minimum Low, in milliseconds: the next DTWIN is held back until then.
    pub ndwin_time_min_low_ms: u64,
    /// NDWIN Time Minimum High, in milliseconds: what it takes after a longest DTWIN.
    pub ndwin_time_min_high_ms: u64,
    /// DTWIN Reads Typical, in random 4 KiB reads; 0 for no such budget.
    pub dtwin_reads_typical: u64,
    /// DTWIN Writes Typical, in writes of the optimal size.
    pub dtwin_writes_typical: u64,
}

/// Superblocks that must be left over beside those that a set's blocks and its buffer fill: two are
/// open, two are kept for garbage collection, one for rounding.
const SPARE_SUPERBLOCKS: u32 = 5;

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
        let pages = self.blocks_per_set().div_ceil(u64::from(BLOCKS_PER_PAGE));
        self.mapping.as_ref().map_or(0, |_| pages)
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

    /// Superblocks at the beginning of each set that hold what is saved when power fails.
    pub(crate) fn reserved_per_half(&self, layout: &Layout) -> u32 {
        let sets = u64::from(self.sets);
        // Beside each buffered block its number and sequence; and the discarded ranges.
        let blocks = self.buffer.bytes / sets / u64::from(BLOCK_BYTES) + 1;
        let buffered = blocks * u64::from(BLOCK_BYTES + 32);
        let discards =
            u64::from(self.background.discarded_ranges) * crate::discards::ENTRY_BYTES as u64;
        let pages =
            (buffered + discards).div_ceil(u64::from(self.flash.geometry.page_bytes) / 2) + 2;
        pages.div_ceil(u64::from(layout.superblocks.pages())) as u32
    }

    /// Superblocks that a full buffer takes, written in units that are not all full.
    pub(crate) fn superblocks_of_buffer(&self, layout: &Layout) -> u32 {
        let blocks = self.buffer.bytes / u64::from(self.sets) / u64::from(BLOCK_BYTES);
        (blocks as u32 + layout.slots_per_unit).div_ceil(layout.data_slots()) + 1
    }

    /// Logical blocks of a set that there is room for however they are scattered: superblocks out
    /// of which not even one unit could be had are not collected.
    fn usable_blocks(&self, layout: &Layout) -> u64 {
        if layout.data_units == 0 {
            return 0;
        }
        let reserved = 2 * self.reserved_per_half(layout) + SPARE_SUPERBLOCKS;
        let spare = reserved + self.superblocks_of_buffer(layout) - 1;
        let superblocks = layout.superblocks.count().saturating_sub(spare);
        u64::from(superblocks) * u64::from(layout.data_slots() - layout.slots_per_unit + 1)
    }

    /// What users see of a drive that shows so many blocks of each set.
    fn user_bytes_of(&self, blocks: u64) -> u64 {
        blocks * u64::from(self.sets) * u64::from(BLOCK_BYTES)
    }

    fn words_for_no_room(&self, layout: &Layout) -> String {
        if layout.data_units == 0 {
            return "blocks_per_plane and pages_per_block make superblocks (a block of every die of a \
                    set) too small for one program and their summary: give them more pages"
                .to_owned();
        }
        let (saved, buffer) =
            (2 * self.reserved_per_half(layout), self.superblocks_of_buffer(layout));
        format!(
            "blocks_per_plane gives each set {} superblocks (a block of every die), and none is left \
             for data: {saved} are for what is saved when power fails, {buffer} for a full write \
             buffer, {SPARE_SUPERBLOCKS} spare; give it more, or a smaller buffer",
            layout.superblocks.count()
        )
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

    fn problems_of_space(&self) -> Vec<String> {
        let flash = self.flash_of_set();
        let layout = Layout::new(&flash.geometry);
        let mut problems = Vec::new();
        if page::header_bytes(flash.geometry.page_bytes) > flash.geometry.spare_bytes {
            problems.push("spare_bytes has no room for the numbers of a page's blocks".to_owned());
        }
        let unit = u64::from(layout.slots_per_unit * BLOCK_BYTES);
        if self.buffer.bytes < u64::from(self.sets) * unit {
            problems.push(format!("buffer.bytes must hold a program of {unit} bytes for each set"));
        }
        let whole = self.user_bytes / u64::from(BLOCK_BYTES) * 4;
        let mapping = self.mapping.as_ref().map_or(whole, |paged| paged.cached_bytes);
        if self.mapping.is_some() && mapping >= whole {
            problems.push(format!(
                "mapping.cached_bytes is {mapping}, but the whole mapping takes {whole}: leave the \
                 section out"
            ));
        }
        let least = u64::from(self.sets * BLOCK_BYTES);
        if self.mapping.is_some() && mapping < least {
            problems.push(format!(
                "mapping.cached_bytes must hold a mapping page of each set, {least} bytes"
            ));
        }
        let needed = mapping + self.buffer.bytes + self.dram.read_cache_bytes;
        if needed > self.dram.bytes {
            problems.push(format!(
                "dram.bytes is {}, but mapping (4 bytes a block, or its cached_bytes), buffer and read cache \
                 need {needed}",
                self.dram.bytes
            ));
        }
        let (blocks, on_flash) = (self.blocks_per_set(), self.mapping_pages_on_flash());
        let usable = self.usable_blocks(&layout).saturating_sub(on_flash);
        if usable == 0 {
            problems.push(self.words_for_no_room(&layout));
        } else if !(1..=usable).contains(&blocks) {
            problems.push(format!(
                "user_bytes gives each set {blocks} blocks of {BLOCK_BYTES} bytes, and its flash has \
                 room for {usable}: user_bytes may be {} to {}",
                self.user_bytes_of(1),
                self.user_bytes_of(usable)
            ));
        }
        if u64::from(layout.superblocks.count()) * u64::from(layout.slots_per_superblock)
            >= u64::from(u32::MAX) - 1
        {
            problems.push("a set has more than 4294967293 slots of 4 KiB".to_owned());
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
        problems.extend(self.plm.iter().flat_map(PlmProfile::problems));
        problems.extend(self.host.problems());
        if problems.is_empty() {
            problems = self.problems_of_space();
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a profile with one line changed.
    fn with(name: &str, key: &str, value: &str) -> String {
        let (_, text) = SsdProfile::BUILT_IN.iter().find(|(other, _)| *other == name).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let line = lines.iter_mut().find(|line| line.starts_with(&format!("{key} ="))).unwrap();
        *line = format!("{key} = {value}");
        let parsed = catalogue::parse::<SsdProfile>("p.toml", &lines.join("\n"));
        parsed.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn numbers_beyond_all_drives_are_refused_with_what_is_allowed() {
        for (key, value, allowed) in [
            ("read_us", "[1e18, 60.0, 69.0]", "must be 0 to 60000000 (a minute)"),
            ("channel_mb_per_s", "1e-300", "must be 0.1 to 1000000"),
            ("cores", "1000000", "must be 1 to 1024"),
            ("block_ns", "1e16", "must be 0 to 1000000 (a millisecond)"),
            ("queue_depth", "1000000", "must be 1 to 65536"),
            ("mb_per_s", "1e-300", "must be 0.1 to"),
            ("read_ahead_bytes", "9223372036854775807", "must be 0 to 1073741824"),
            ("burst_interval_ms", "1e-300", "must be 0.01 to 3600000"),
            ("programs_per_die", "4294967295", "must be 1 to 1024"),
            ("dtwin_time_max_ms", "9223372036854775807", "must be 0 to 864000000"),
        ] {
            let words = with("vigil-15gb", key, value);
            assert!(words.starts_with("block drive p.toml:"), "{words}");
            assert!(words.contains(key) && words.contains(allowed), "{words}");
        }
    }

    #[test]
    fn user_bytes_are_whole_blocks() {
        let words = with("baseline-15gb", "user_bytes", "15002992641");
        let allowed = "must be a multiple of 4096, the size of a block: 15002992640 or 15002996736";
        assert!(words.contains(allowed), "{words}");
    }

    #[test]
    fn what_users_may_see_is_said_in_their_unit() {
        let words = with("baseline-15gb", "user_bytes", "150029926400");
        assert!(words.contains("user_bytes may be 4096 to 1"), "{words}");
        let words = with("baseline-15gb", "blocks_per_plane", "1");
        assert!(words.contains("none is left for data"), "{words}");
    }

    #[test]
    fn built_in_profiles_are_valid_and_every_number_has_a_source() {
        for (name, text) in SsdProfile::BUILT_IN {
            let profile = SsdProfile::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, *name);
            assert_eq!(catalogue::numbers_without_source(text), [] as [&str; 0], "{name}");
        }
    }

    #[test]
    fn a_buffer_holds_a_program_of_each_set() {
        let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
        let unit = Layout::new(&profile.flash_of_set().geometry).slots_per_unit;
        profile.buffer.bytes = u64::from(4 * unit * BLOCK_BYTES);
        assert_eq!(profile.problems(), [] as [&str; 0]);
        profile.buffer.bytes -= 1;
        assert!(profile.problems()[0].starts_with("buffer.bytes must hold"));
    }

    #[test]
    fn a_part_of_the_mapping_is_a_part() {
        let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
        let mut with = |cached_bytes: u64| {
            profile.mapping = Some(PagedMapping { cached_bytes });
            profile.problems().join("; ")
        };
        assert_eq!(with(1 << 20), "");
        assert!(
            with(1 << 24).contains("but the whole mapping takes 14651360: leave the section out")
        );
        assert_eq!(
            with(4 * 4_096 - 1),
            "mapping.cached_bytes must hold a mapping page of each set, 16384 bytes"
        );
    }

    #[test]
    fn the_baseline_has_the_same_resources_in_one_set() {
        for size in ["1.92tb", "15gb"] {
            let vigil = SsdProfile::load(&format!("vigil-{size}")).expect("built in");
            let baseline = SsdProfile::load(&format!("baseline-{size}")).expect("built in");
            let as_one = SsdProfile {
                name: baseline.name.clone(),
                description: baseline.description.clone(),
                sets: 1,
                plm: None,
                ..vigil
            };
            assert_eq!(as_one, baseline);
        }
    }
}
