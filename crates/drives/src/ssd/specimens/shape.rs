//! Drives of random shape, small enough that all mechanisms of a large drive occur within a few
//! thousand commands.

use block::BLOCK_BYTES;
use catalogue::Entry;
use runtime::{Nanos, Rng};

use super::small;
use crate::nand::{ErrorModel, FlashProfile, Geometry, ReadDisturb, ReadOverlap, Suspend, Timing};
use crate::ssd::{PagedMapping, PlmProfile, PlmRules, Precondition, SsdProfile, WritePacing};

/// Reads of a block before it loses data, on a drive with clients that hammer blocks.
const LIMIT_READS: u64 = 5_000;

/// Most blocks of a set: reading them all after each power cut must be cheap.
const MOST_BLOCKS: u64 = 4_000;

/// Parameters that vary from trial to trial besides the random choices.
pub struct Shape {
    /// The drive.
    pub profile: SsdProfile,
    /// Initial contents.
    pub precondition: Precondition,
    /// Clients of each set with a mix of all operations.
    pub mixed: usize,
    /// Clients of each set that read sequentially.
    pub readers: usize,
    /// Clients of each set that read the same few blocks again and again.
    pub hammers: usize,
    /// Sessions, each of which ends with a power cut.
    pub sessions: u64,
    /// Maximum length of a session.
    pub session: Nanos,
}

const SUSPEND: Suspend = Suspend {
    program_us: Some(50.0),
    erase_us: Some(150.0),
    resume_us: 50.0,
    min_progress_us: 200.0,
    max_span_us: 1_000.0,
    max_per_operation: 6,
    max_per_program: None,
};

impl Shape {
    /// Returns the drive and the clients for a seed.
    pub fn of_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "shape");
        let is_hammered = rng.chance(0.3);
        let mut profile = small::profile(if rng.chance(0.3) { 2 } else { 1 });
        profile.flash = flash(rng, profile.sets, is_hammered);
        controller(rng, &mut profile);
        memory(rng, &mut profile);
        background(rng, &mut profile, is_hammered);
        profile.plm = rng.chance(0.75).then(|| windows(rng));
        capacity(rng, &mut profile);
        let mut shape = Self {
            profile,
            precondition: precondition(rng),
            mixed: pick(rng, &[1, 3, 6]),
            readers: pick(rng, &[0, 1, 2]),
            hammers: if is_hammered { 2 } else { 0 },
            sessions: 3,
            session: Nanos::from_millis(if is_hammered { 800 } else { 1_200 }),
        };
        erases(rng, &mut shape.profile);
        overlap(&mut Rng::derive(seed, "overlap"), &mut shape.profile.flash);
        let is_paged = paging(&mut Rng::derive(seed, "paging"), &mut shape.profile);
        waits(&mut Rng::derive(seed, "waits"), &mut shape.profile, !is_paged);
        if shape.profile.mapping.is_some() && Rng::derive(seed, "full").chance(0.5) {
            shape.precondition = Precondition::Random(1.0);
        }
        shape
    }

    /// Returns a smaller drive with a power cut every few milliseconds.
    pub fn of_restless_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "restless shape");
        let mut shape = Self::of_seed(seed);
        let profile = &mut shape.profile;
        profile.flash = flash(rng, profile.sets, false);
        overlap(&mut Rng::derive(seed, "overlap"), &mut profile.flash);
        let geometry = &mut profile.flash.geometry;
        geometry.pages_per_block = if geometry.one_shot { 12 } else { pick(rng, &[8, 12]) };
        geometry.blocks_per_plane = pick(rng, &[12, 16]);
        geometry.page_bytes = pick(rng, &[4_096, 4_096, 16_384]);
        profile.flash.timing.background_deadline_us = 100.0;
        memory(rng, profile);
        profile.mapping = None;
        capacity(rng, profile);
        paging(&mut Rng::derive(seed, "paging"), profile);
        shape.hammers = 0;
        shape.sessions = 25;
        shape.session = Nanos::from_millis(40);
        shape
    }

    /// Returns the NVM sets of the drive.
    pub fn sets(&self) -> u16 {
        self.profile.sets as u16
    }

    /// Returns the blocks of a set.
    pub fn blocks(&self) -> u64 {
        self.profile.blocks_per_set()
    }
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

fn flash(rng: &mut Rng, sets: u32, is_hammered: bool) -> FlashProfile {
    let base = small::profile(1).flash;
    // One-shot TLC, MLC page by page, SLC.
    let (bits_per_cell, one_shot, pages_per_block) =
        pick(rng, &[(3, true, 12), (3, true, 24), (2, false, 12), (1, false, 16)]);
    let bits = bits_per_cell as usize;
    let is_fast = is_hammered || rng.chance(0.3);
    let programs = if is_fast { [300.0, 500.0] } else { [2_000.0, 1_200.0] };
    // Reclaim is background work: with a long deadline, reads would reach the limit first.
    let deadlines: &[f64] = if is_hammered { &[100.0] } else { &[100.0, 1_000.0, 5_000.0] };
    let read_us = if is_hammered { [20.0, 24.0, 28.0] } else { [49.0, 58.0, 67.0] };
    FlashProfile {
        geometry: Geometry {
            channels: sets * pick(rng, &[1, 2]),
            dies_per_channel: pick(rng, &[1, 2]),
            planes_per_die: pick(rng, &[1, 2]),
            blocks_per_plane: pick(rng, &[18, 24, 32]),
            pages_per_block,
            page_bytes: pick(rng, &[4_096, 16_384]),
            one_shot,
            bits_per_cell,
            ..base.geometry
        },
        timing: Timing {
            read_us: read_us[..bits].into(),
            program_us: programs[..if one_shot { 1 } else { bits }].into(),
            erase_us: if is_fast { 900.0 } else { 3_500.0 },
            background_deadline_us: pick(rng, deadlines),
            commands_on_channel: rng.chance(0.5),
            ..base.timing
        },
        suspend: rng.chance(0.5).then_some(SUSPEND),
        overlap: None,
        errors: errors(rng),
        read_disturb: is_hammered.then_some(ReadDisturb { limit_reads: LIMIT_READS }),
    }
}

/// Returns reads with retries but without failures: lost blocks cannot be recovered.
fn errors(rng: &mut Rng) -> Option<ErrorModel> {
    let retry_probability = pick(rng, &[0.001, 0.2]);
    let errors = ErrorModel { retry_probability, retry_us: 70.0, max_retries: 1_000 };
    rng.chance(0.3).then_some(errors)
}

fn controller(rng: &mut Rng, profile: &mut SsdProfile) {
    let controller = &mut profile.controller;
    controller.cores = profile.sets * pick(rng, &[1, 2]);
    controller.command_us = pick(rng, &[1.0, 7.4, 30.0]);
    // With slow firmware much happens between the end of a program and the update of the mapping.
    controller.map_ns = pick(rng, &[150.0, 5_000.0]);
    controller.queue_depth = pick(rng, &[1, 3, 1_024]);
}

fn memory(rng: &mut Rng, profile: &mut SsdProfile) {
    let blocks = |count: u64| count * u64::from(BLOCK_BYTES);
    let sets = u64::from(profile.sets);
    profile.dram.bytes = 1 << 30;
    profile.dram.read_cache_bytes = sets * blocks(pick(rng, &[8, 60, 400]));
    profile.dram.read_ahead_bytes = blocks(pick(rng, &[0, 6, 24]));
    let geometry = profile.flash_of_set().geometry;
    let unit = u64::from(geometry.program_unit() * geometry.page_bytes / BLOCK_BYTES);
    let in_units = [1, 1, 2, 2 * u64::from(geometry.dies()), 200];
    let buffer = &mut profile.buffer;
    buffer.bytes = sets * blocks((unit * pick(rng, &in_units)).min(400));
    buffer.has_capacitors = rng.chance(0.5);
    (buffer.stop_percent, buffer.start_percent) =
        pick(rng, &[(40.0, 50.0), (0.0, 0.0), (0.0, 100.0), (80.0, 90.0)]);
    buffer.burst_interval_ms = pick(rng, &[1.0, 20.0, 100.0]);
}

fn background(rng: &mut Rng, profile: &mut SsdProfile, is_hammered: bool) {
    let background = &mut profile.background;
    (background.start_free_percent, background.stop_free_percent) =
        pick(rng, &[(0.0, 0.0), (5.0, 5.0), (5.0, 6.0), (20.0, 35.0)]);
    background.programs_per_die = pick(rng, &[1, 2]);
    (background.reclaim_reads, background.critical_reads) =
        if is_hammered { (pick(rng, &[400, 700]), 1_500) } else { (20_000, 60_000) };
    background.wear_spread = pick(rng, &[1, 4, 50]);
    background.discarded_ranges = pick(rng, &[3, 40, 2_000]);
}

/// Chooses how a superblock's dies are erased, and which operations are suspended for reads.
fn erases(rng: &mut Rng, profile: &mut SsdProfile) {
    profile.background.erases_at_once = pick(rng, &[None, Some(1), Some(profile.sets)]);
    if let Some(suspend) = &mut profile.flash.suspend {
        let programs = suspend.program_us.filter(|_| rng.chance(0.7));
        suspend.erase_us = suspend.erase_us.filter(|_| programs.is_none() || rng.chance(0.7));
        suspend.program_us = programs;
    }
}

/// Chooses a mapping on flash with one or two cached pages, out of few or very many. Returns
/// whether one was chosen, even if the drive was then too small for it.
fn paging(rng: &mut Rng, profile: &mut SsdProfile) -> bool {
    let cached_bytes = u64::from(profile.sets * BLOCK_BYTES) * pick(rng, &[1, 1, 2]);
    let is_paged = rng.chance(0.3);
    let blocks_per_page = pick(rng, &[None, Some(4), Some(16), Some(64)]);
    profile.mapping = is_paged.then_some(PagedMapping { cached_bytes, blocks_per_page });
    if cached_bytes >= profile.whole_mapping_bytes() {
        profile.mapping = None;
    }
    // Mapping pages use room of client blocks.
    let most = most_blocks(profile);
    if most < 64 {
        profile.mapping = None;
    } else {
        set_blocks(profile, profile.blocks_per_set().min(most));
    }
    assert_eq!(profile.problems(), [] as [&str; 0]);
    is_paged
}

/// Chooses which reads of a die overlap.
fn overlap(rng: &mut Rng, flash: &mut FlashProfile) {
    let independent_planes = flash.geometry.planes_per_die > 1 && rng.chance(0.4);
    let cache_us = rng.chance(0.3).then_some(3.0);
    let is_any = independent_planes || cache_us.is_some();
    flash.overlap = is_any.then_some(ReadOverlap { independent_planes, cache_us });
}

/// Chooses write pacing and jitter of completions.
fn waits(rng: &mut Rng, profile: &mut SsdProfile, may_pace: bool) {
    let (percent, burst_blocks) = (pick(rng, &[20.0, 90.0, 150.0]), pick(rng, &[0, 5, 1_000]));
    let pacing = rng.chance(0.3).then_some(WritePacing { percent, burst_blocks });
    profile.background.pacing = pacing.filter(|_| may_pace);
    profile.host.jitter_us = pick(rng, &[0.0, 0.0, 1.0, 50.0]);
}

fn windows(rng: &mut Rng) -> PlmProfile {
    let rules = pick(rng, &[PlmRules::Vigil, PlmRules::Standard]);
    let is_standard = rules == PlmRules::Standard;
    PlmProfile {
        rules,
        dtwin_time_max_ms: pick(rng, &[10, 60, 60_000]),
        ndwin_time_min_low_ms: pick(rng, &[0, 3, 20]),
        ndwin_time_min_high_ms: 20,
        dtwin_reads_typical: if is_standard { pick(rng, &[0, 60, 2_000]) } else { 0 },
        dtwin_writes_typical: if is_standard { pick(rng, &[0, 2, 500]) } else { 0 },
    }
}

/// Chooses the logical blocks: the maximum of the profile, or fewer.
fn capacity(rng: &mut Rng, profile: &mut SsdProfile) {
    let share = pick(rng, &[1.0, 1.0, 0.95, 0.8, 0.5]);
    let mut most = most_blocks(profile);
    while most == 0 {
        profile.flash.geometry.blocks_per_plane += 6;
        most = most_blocks(profile);
    }
    // A drive that is too large gets less flash, not a smaller share of user capacity.
    while most > MOST_BLOCKS && profile.flash.geometry.blocks_per_plane > 12 {
        profile.flash.geometry.blocks_per_plane -= 1;
        most = most_blocks(profile);
        if most == 0 {
            profile.flash.geometry.blocks_per_plane += 1;
            most = most_blocks(profile);
            break;
        }
    }
    set_blocks(profile, ((most as f64 * share) as u64).max(64).min(most));
    assert_eq!(profile.problems(), [] as [&str; 0]);
}

/// Gives each set `blocks` logical blocks.
pub fn set_blocks(profile: &mut SsdProfile, blocks: u64) {
    profile.user_bytes = blocks * u64::from(profile.sets * BLOCK_BYTES);
}

/// Returns the most logical blocks of a set that fit its flash.
pub fn most_blocks(profile: &SsdProfile) -> u64 {
    let mut profile = profile.clone();
    let (mut fits, mut too_many) = (0, 1 << 20);
    while too_many - fits > 1 {
        let middle = u64::midpoint(fits, too_many);
        set_blocks(&mut profile, middle);
        if profile.problems().is_empty() {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    fits
}

fn precondition(rng: &mut Rng) -> Precondition {
    let part = pick(rng, &[0.3, 0.9, 1.0]);
    match rng.below(3) {
        0 => Precondition::Empty,
        1 => Precondition::Sequential(part),
        _ => Precondition::Random(part),
    }
}
