//! The drives, hosts, designs and loads of trials, drawn by seed.

use catalogue::Entry;
use drives::ssd::specimens::shape as drive_shapes;
use drives::ssd::{PlmProfile, PlmRules, SsdProfile};
use engine::{Durability, MergeBy, OpenError, Options, StoreId};
use runtime::{Nanos, Rng, Runtime};
use stacks::design::IndexOptions;
use stacks::host::{Arrangement, Files, HostProfile, JournalPlace, Storage, WindowPolicy};
use testkit::trial::designs::{any_sync, draw_keeping, leveled, tree};
use testkit::trial::{Names, pick};
use volume::windows::slot::{Rules, SlotPolicy};
use volume::windows::{InternalReads, JournalWrites, Keeper, Overflow, WindowOptions};

use super::{Load, Shape};
use crate::machine;
use crate::rack::Rack;

/// A number of extents per set that suffices for each design of these trials.
const MANY_EXTENTS: u64 = 600;

impl Shape {
    /// Returns the shape of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self::of(seed, arrangement_of(seed), JournalPlace::Beside)
    }

    /// Returns the shape of a seed with the journal on a set of its own.
    pub fn apart_of_seed(seed: u64) -> Self {
        Self::of(seed, arrangement_of(seed), JournalPlace::OwnSet)
    }

    /// Returns the shape of a seed with windows on the data sets and the journal on a set of its
    /// own.
    pub fn windows_of_seed(seed: u64) -> Self {
        let arrangement =
            if seed.is_multiple_of(3) { Arrangement::Mirrored } else { Arrangement::Parity };
        let mut shape = Self::of(seed, arrangement, JournalPlace::OwnSet);
        let rng = &mut Rng::derive(seed, "windows");
        shape.windows = Some(windows(rng, &shape.storage.host.files));
        shape
    }

    /// Returns the shape of a seed with windows and the journal beside the data. Journal writes do
    /// not wait for a slot.
    pub fn windows_beside_of_seed(seed: u64) -> Self {
        let arrangement =
            if seed.is_multiple_of(4) { Arrangement::Mirrored } else { Arrangement::Parity };
        let mut shape = Self::of(seed, arrangement, JournalPlace::Beside);
        let rng = &mut Rng::derive(seed, "windows");
        let windows = windows(rng, &shape.storage.host.files);
        shape.windows = Some(WindowOptions { journal: JournalWrites::AtOnce, ..windows });
        shape
    }

    /// Returns the shape of [`Self::windows_of_seed`] with windows kept by the drives. They may end
    /// by themselves: when their time is over, by reads if the drive has a read budget, or because
    /// the trial makes a set leave its window.
    pub fn windows_of_drives_of_seed(seed: u64) -> Self {
        let mut shape = Self::windows_of_seed(seed);
        let rng = &mut Rng::derive(seed, "windows of drives");
        shape.storage.drive.plm = Some(windows_of_drives(rng));
        let windows = shape.windows.as_mut().expect("it has windows");
        windows.keeper = Keeper::Device;
        shape
    }

    /// Draws a value cache for some trees, with memory in addition to that of the seed's host.
    fn draw_cache(&mut self, seed: u64) {
        let IndexOptions::Lsm(options) = &mut self.index else { return };
        let rng = &mut Rng::derive(seed, "caches");
        options.value_cache_bytes = pick(rng, &[0, 0, 3 << 10, 64 << 10, 1 << 20]);
        draw_keeping(options, seed);
        self.storage.host.memory.index_bytes += options.cache_bytes();
    }

    /// Returns the shape of a seed on an arrangement of sets. A journal's own set is added to the
    /// data sets; all other draws are the same as without it. If the design does not fit, returns
    /// the shape of another seed.
    pub fn of(seed: u64, arrangement: Arrangement, journal: JournalPlace) -> Self {
        let rng = &mut Rng::derive(seed, "host");
        let sets = match arrangement {
            Arrangement::Plain => 1,
            Arrangement::Striped | Arrangement::Mirrored => pick(rng, &[2, 2, 3, 4]),
            Arrangement::Parity => pick(rng, &[3, 3, 3, 4, 5]),
        };
        let sets = sets + journal.sets();
        let index = index(rng);
        let mut shape = Self {
            storage: Storage {
                drive: drive(seed, sets),
                host: host(rng),
                partitions: 1,
                arrangement,
                journal,
                windows: WindowPolicy::Off,
                plm_cache_bytes: None,
                hedge_after_us: None,
            },
            index,
            id: StoreId(7),
            expected_key_bytes: pick(rng, &[8, 30, 255]),
            expected_value_bytes: pick(rng, &[120, 120, 1_000]),
            load: load(rng),
            sessions: 3 + rng.below(5) as u32,
            session: Nanos::from_millis(pick(rng, &[3, 20, 100])),
            windows: None,
        };
        shape.draw_cache(seed);
        let room = pick(rng, &[1.0, 1.2, 2.0]);
        let takes_journal = journal == JournalPlace::Beside || shape.index.takes_journal_apart();
        if matches!(arrangement, Arrangement::Parity | Arrangement::Mirrored) {
            let rng = &mut Rng::derive(seed, "hedge");
            shape.storage.hedge_after_us = pick(rng, &[None, None, Some(1), Some(100), Some(300)]);
        }
        let fits = takes_journal && shape.grow_to_fit(room);
        if fits { shape } else { Self::of(seed + 1_000_000, arrangement, journal) }
    }

    /// Sizes the index for pairs of these lengths, and the drive for the index.
    pub fn usual_sizes(&mut self, key_bytes: u32, value_bytes: u32) {
        (self.expected_key_bytes, self.expected_value_bytes) = (key_bytes, value_bytes);
        assert!(self.grow_to_fit(2.0), "{:?} does not fit", self.index);
    }

    /// Finds the minimum number of extents with which the store can be created, and gives the drive
    /// `room` times as many. Grows the host's index memory if the store needs that. Returns false
    /// if more than [`MANY_EXTENTS`] extents are needed.
    fn grow_to_fit(&mut self, room: f64) -> bool {
        let mut extents = 8;
        while let Err(error) = self.has_room_in(extents) {
            match error {
                OpenError::TooFewExtents { .. } => extents += 4,
                OpenError::DoesNotFit { .. } => self.storage.host.memory.index_bytes *= 2,
                other => panic!("{other}"),
            }
            if extents > MANY_EXTENTS {
                return false;
            }
        }
        let extents = (extents as f64 * room) as u64;
        while self.has_room_in(extents).is_err() {
            self.storage.host.memory.index_bytes *= 2;
        }
        true
    }

    fn has_room_in(&mut self, extents: u64) -> Result<(), OpenError> {
        self.give_extents(extents);
        let rt = Runtime::new(0);
        let rack = Rack::format(&rt.handle(), &self.storage.drive, drives::ssd::Planted::default());
        machine::create(&rt.handle(), self, &rack, None).map(|_| ())
    }

    /// Resizes each set to hold `extents` extents.
    fn give_extents(&mut self, extents: u64) {
        let blocks = extents * self.storage.host.files.extent_bytes / u64::from(block::BLOCK_BYTES);
        drive_shapes::set_blocks(&mut self.storage.drive, blocks);
        while !self.storage.drive.problems().is_empty() {
            self.storage.drive.flash.geometry.blocks_per_plane += 2;
            assert!(self.storage.drive.flash.geometry.blocks_per_plane < 10_000);
        }
    }
}

fn arrangement_of(seed: u64) -> Arrangement {
    match seed % 8 {
        0 | 1 => Arrangement::Plain,
        2 => Arrangement::Striped,
        3 => Arrangement::Mirrored,
        _ => Arrangement::Parity,
    }
}

/// Returns windows with a thousandth of the paper's times.
fn windows(rng: &mut Rng, files: &Files) -> WindowOptions {
    let rules = Rules {
        max_dtwin: Nanos::from_millis(pick(rng, &[20, 60])),
        min_ndwin: Nanos::from_micros(pick(rng, &[100, 1_000, 4_000])),
        lockdown: Nanos::from_micros(20),
    };
    let slots = [SlotPolicy::Constant(Nanos::ZERO), SlotPolicy::Dynamic, SlotPolicy::Dynamic];
    let reads = InternalReads::AnyTime { bytes_per_second: 50_000_000, piece_bytes: 16 << 10 };
    WindowOptions {
        keeper: Keeper::Host(rules),
        slots: pick(rng, &slots),
        cache_bytes: u64::from(files.page_bytes) * pick(rng, &[20, 200, 10_000]),
        overflow: pick(rng, &[Overflow::Write, Overflow::Wait, Overflow::Wait]),
        internal_reads: pick(rng, &[reads, reads, InternalReads::InSlots]),
        journal: JournalWrites::InSlots,
        pauses: rng.chance(0.5),
        write_bytes_per_second: pick(rng, &[1_000_000, 100_000_000]),
    }
}

/// Returns drive windows with a thousandth of Vigil-KV's times.
fn windows_of_drives(rng: &mut Rng) -> PlmProfile {
    let rules = pick(rng, &[PlmRules::Vigil, PlmRules::Standard]);
    let reads = if rules == PlmRules::Standard { pick(rng, &[0, 60, 2_000]) } else { 0 };
    let least = pick(rng, &[1, 4]);
    PlmProfile {
        rules,
        dtwin_time_max_ms: pick(rng, &[20, 60, 200]),
        ndwin_time_min_low_ms: pick(rng, &[0, least]),
        ndwin_time_min_high_ms: least,
        dtwin_reads_typical: reads,
        dtwin_writes_typical: 0,
    }
}

/// Returns a small drive with `sets` sets.
fn drive(seed: u64, sets: u32) -> SsdProfile {
    let mut profile = drive_shapes::Shape::of_restless_seed(seed).profile;
    // Sets are resized later and may be too small for a partial mapping table.
    profile.mapping = None;
    let before = profile.sets;
    let scaled = |bytes: u64| bytes / u64::from(before) * u64::from(sets);
    profile.sets = sets;
    profile.controller.cores = profile.controller.cores / before * sets;
    profile.flash.geometry.channels = profile.flash.geometry.channels / before * sets;
    profile.buffer.bytes = scaled(profile.buffer.bytes);
    profile.dram.read_cache_bytes = scaled(profile.dram.read_cache_bytes);
    profile
}

fn host(rng: &mut Rng) -> HostProfile {
    let mut host = HostProfile::load("desktop-12-core").expect("it is built in");
    host.processor.cores = pick(rng, &[1, 2, 12]);
    host.memory.index_bytes = pick(rng, &[64 << 10, 1 << 20, 64 << 20]);
    host.memory.iterator_bytes = pick(rng, &[64 << 10, 1 << 20]);
    let page_bytes = pick(rng, &[4_096, 4_096, 8_192]);
    host.files = Files {
        page_bytes,
        extent_bytes: u64::from(page_bytes) * pick(rng, &[16, 17, 24, 33]),
        appends: pick(rng, &[1, 4, 64]),
        chunk_pages: pick(rng, &[1, 2, 3]),
    };
    host
}

fn index(rng: &mut Rng) -> IndexOptions {
    let memtable_bytes = pick(rng, &[4 << 10, 16 << 10, 64 << 10]);
    let index: IndexOptions = match rng.below(10) {
        0..=2 => Options { memtable_bytes, ..Options::pink() }.into(),
        3 => Options { memtable_bytes, ..Options::lightstore() }.into(),
        4 => loop {
            let options = Options { merge: MergeBy::Cpu, ..tree(rng, memtable_bytes) };
            if options.problems().is_empty() {
                break options.into();
            }
        },
        _ => tables(rng).into(),
    };
    let sync = any_sync(rng);
    index.with_journal(Durability::Log, sync)
}

/// Returns trees of tables for pages four times as long as those of small KV drives, with extents
/// to match.
fn tables(rng: &mut Rng) -> Options {
    let mut options = leveled(rng);
    options.levels = pick(rng, &[2, 3, 4, 8]);
    options.memtable_bytes *= 4;
    let tables = &mut options.tables;
    for bytes in [
        &mut tables.table_bytes,
        &mut tables.level_base_bytes,
        &mut tables.max_compaction_bytes,
        &mut tables.soft_pending_bytes,
        &mut tables.hard_pending_bytes,
        &mut tables.readahead_bytes,
        &mut tables.write_bytes,
    ] {
        *bytes *= 4;
    }
    options
}

fn load(rng: &mut Rng) -> Load {
    let names = [Names::Usual, Names::Usual, Names::UpTo(4), Names::UpTo(255), Names::Deep];
    Load {
        keys: pick(rng, &[40, 300, 1_000]),
        names: pick(rng, &names),
        usual_value: pick(rng, &[1, 40, 240, 1_000, 4_000]),
        longest_value: pick(rng, &[240, 4_000, 20_000, 65_536]),
        clients: pick(rng, &[1, 4, 8, 32]),
        scanners: pick(rng, &[0, 1, 2]),
        draws_sync: rng.chance(0.5),
    }
}
