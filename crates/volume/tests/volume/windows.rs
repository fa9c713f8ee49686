//! Windows on a simulated drive: the rules are kept, and reads return the written bytes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use drives::ssd::{Precondition, Ssd, SsdProfile};
use engine::{ExtentId, Medium, PageNo, Stream};
use runtime::{Cores, Handle, IoClass, Nanos, PageImage, Rng, Runtime};
use volume::windows::{State, WindowOptions, WindowStats};
use volume::{BlockRange, Volume, parity};

use crate::store;

/// Returns a drive whose windows last a hundredth of those of the paper.
fn profile() -> SsdProfile {
    let mut profile = store::profile();
    let plm = profile.plm.as_mut().expect("it has windows");
    (plm.dtwin_time_max_ms, plm.ndwin_time_min_low_ms) = (1_200, 80);
    plm.ndwin_time_min_high_ms = 80;
    profile
}

/// Returns options with a cache of some tens of stripes.
fn options() -> WindowOptions {
    WindowOptions { cache_bytes: 64 * 6 * 4_096, ..WindowOptions::O_VIGIL }
}

type Sets = Volume<BlockRange<Ssd>>;

/// The pages acknowledged, and the pages synced.
#[derive(Default)]
struct Model {
    pages: BTreeMap<u32, u64>,
    synced: BTreeMap<u32, u64>,
}

#[derive(Clone)]
struct World {
    handle: Handle,
    sets: Sets,
    model: Rc<RefCell<Model>>,
}

fn page_of(seed: u64) -> PageImage {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..200).map(|_| rng.below(255) as u8 + 1).collect();
    PageImage::new(&bytes)
}

impl World {
    fn new(handle: &Handle, ssd: &Ssd) -> Self {
        let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
        let setup = store::volume_setup(handle, &cores, ssd);
        let sets = Volume::create(setup).expect("they fit");
        Self { handle: handle.clone(), sets, model: Rc::default() }
    }

    /// Fills extents in sequence, with a sync after every few stripes, and releases the oldest.
    async fn write(self, pause: Nanos, kept: u32) {
        let (shape, mut seed) = (self.sets.shape(), 0);
        for turn in 0_u32.. {
            let extent = ExtentId(turn % shape.extents);
            self.sets.open(extent, u64::from(turn) + 1, Stream::Tables).expect("it is empty");
            for unit in 0..shape.pages_per_extent / shape.append_unit {
                let first = shape.page(extent, unit * shape.append_unit);
                let seeds: Vec<u64> = (0..shape.append_unit).map(|_| seed + 1).collect();
                seed += 1;
                let pages = seeds.iter().map(|seed| page_of(*seed)).collect();
                self.sets.append(first, pages, IoClass::Flush).await.expect("it is taken");
                let numbers = (first.0..).zip(seeds);
                self.model.borrow_mut().pages.extend(numbers);
                self.handle.sleep(pause).await;
            }
            let written = self.model.borrow().pages.clone();
            let syncing = self.clone();
            self.handle.spawn("sync", async move {
                syncing.sets.sync(Stream::Tables).await.expect("it is durable");
                let mut model = syncing.model.borrow_mut();
                let is_there = |(page, seed): &(u32, u64)| model.pages.get(page) == Some(seed);
                let synced: Vec<_> = written.into_iter().filter(is_there).collect();
                model.synced.extend(synced);
            });
            if turn >= kept {
                self.release(ExtentId((turn - kept) % shape.extents)).await;
            }
        }
    }

    async fn release(&self, extent: ExtentId) {
        let shape = self.sets.shape();
        let first = shape.page(extent, 0).0;
        for page in first..first + shape.pages_per_extent {
            self.model.borrow_mut().pages.remove(&page);
            self.model.borrow_mut().synced.remove(&page);
        }
        self.sets.release(extent).await.expect("it is released");
    }

    /// Reads acknowledged pages. Records the longest latency of a read.
    async fn read(self, class: IoClass, pause: Nanos, longest: Rc<Cell<Nanos>>) {
        let mut rng = self.handle.rng(class.name());
        loop {
            self.handle.sleep(pause).await;
            let known = {
                let model = self.model.borrow();
                let at = rng.below(model.pages.len().max(1) as u64) as usize;
                model.pages.iter().nth(at).map(|(page, seed)| (*page, *seed))
            };
            let Some((page, seed)) = known else { continue };
            let since = self.handle.now();
            let found = self.sets.read(PageNo(page), class).await.expect("it is there");
            let took = self.handle.now() - since;
            if since > Nanos::from_millis(200) {
                longest.set(took.max(longest.get()));
            }
            // The page may have been released meanwhile.
            if self.model.borrow().pages.get(&page) == Some(&seed) {
                assert!(parity::is_same(found.bytes(), page_of(seed).bytes()), "page {page}");
            }
        }
    }
}

struct Outcome {
    stats: WindowStats,
    longest: Nanos,
    world: World,
    broken: u64,
}

fn run(
    rt: &Runtime,
    profile: &SsdProfile,
    options: WindowOptions,
    pause: Nanos,
    until: Nanos,
) -> (Outcome, Ssd) {
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, profile, Precondition::Empty);
    let world = World::new(&handle, &ssd);
    world.sets.start_windows(options);
    let (longest, internal) = (Rc::new(Cell::default()), Rc::default());
    handle.spawn("writer", world.clone().write(pause, 20));
    let read =
        world.clone().read(IoClass::ClientRead, Nanos::from_micros(300), Rc::clone(&longest));
    handle.spawn("client", read);
    let read = world.clone().read(IoClass::CompactionRead, Nanos::from_millis(2), internal);
    handle.spawn("compaction", read);
    rt.run_until(until);
    let stats = world.sets.window_stats().expect("there are windows");
    let broken = (0..3).map(|set| ssd.report(store::set_id(set)).expect("it is there"));
    let broken = broken.map(|report| report.firmware.windows_broken).sum();
    let longest = longest.get();
    (Outcome { stats, longest, world, broken }, ssd)
}

#[test]
fn the_rules_hold_and_reads_are_undisturbed() {
    for pauses in [false, true] {
        let rt = Runtime::new(u64::from(pauses));
        let options = WindowOptions { pauses, ..options() };
        let (pause, until) = (Nanos::from_millis(4), Nanos::from_millis(8_000));
        let (outcome, _ssd) = run(&rt, &profile(), options, pause, until);
        let stats = outcome.stats;
        assert!(stats.slots > 20 && stats.direct_reads > 1_000, "{stats:?}");
        assert!(stats.cached_reads > 100 && stats.rebuilt_reads > 100, "{stats:?}");
        assert!(stats.slot_reads > 0 && stats.internal_reads > 0, "{stats:?}");
        assert_eq!((stats.busy_reads, stats.writes_in_dtwin, stats.lost_windows), (0, 0, 0));
        assert_eq!(outcome.broken, 0, "no device has left its window by itself");
        assert!(outcome.longest < Nanos::from_micros(500), "{:?}", outcome.longest);
        let states = outcome.world.sets.window_states();
        let outside = states.iter().filter(|state| **state != State::Adt).count();
        assert!(outside <= 1, "{states:?}");
    }
}

/// Checks the synced pages in a reassembled volume.
async fn check(sets: &Sets, synced: &BTreeMap<u32, u64>, what: &str) {
    assert!(synced.len() > 100, "{what}: {} pages were synced", synced.len());
    for (page, seed) in synced {
        let found = sets.read(PageNo(*page), IoClass::ClientRead).await;
        let found = found.unwrap_or_else(|error| panic!("{what}: page {page}: {error}"));
        assert!(parity::is_same(found.bytes(), page_of(*seed).bytes()), "{what}: page {page}");
    }
}

#[test]
fn what_was_synced_survives_a_power_cut_and_the_loss_of_a_set() {
    for seed in 0..6 {
        let rt = Runtime::new(seed);
        let until = Nanos::from_millis(900 + 137 * seed);
        let (outcome, ssd) = run(&rt, &profile(), options(), Nanos::from_millis(3), until);
        let (image, _) = ssd.power_cut(&mut Rng::new(seed));
        let synced = outcome.world.model.borrow().synced.clone();
        drop((outcome, ssd, rt));

        let rt = Runtime::new(seed + 100);
        let handle = rt.handle();
        let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
        rt.block_on(async move {
            let planted = drives::ssd::Planted::default();
            let ssd = Ssd::recover(&handle, &profile(), image, planted).await;
            if seed > 2 {
                ssd.fail_set(store::set_id((seed % 3) as u16)).expect("there is one");
            }
            let setup = store::volume_setup(&handle, &cores, &ssd);
            let sets = Volume::recover(setup).await.expect("they are its own");
            sets.begin_filling();
            check(&sets, &synced, &format!("seed {seed}")).await;
        });
    }
}

#[test]
fn windows_end_with_everything_written() {
    let rt = Runtime::new(5);
    let (outcome, ssd) =
        run(&rt, &profile(), options(), Nanos::from_millis(2), Nanos::from_millis(1_000));
    let (world, handle) = (outcome.world, rt.handle());
    rt.block_on(async move {
        world.sets.end_windows().await;
        assert!(world.sets.window_stats().is_none());
        assert_eq!(world.sets.window_states(), [State::Off; 3]);
        let before = handle.now();
        world.sets.sync(Stream::Tables).await.expect("it is durable");
        assert!(handle.now() - before < Nanos::from_millis(20), "it waits for no slot");
        let pages = world.model.borrow().pages.clone();
        let _still_there = &ssd;
        check(&world.sets, &pages, "at the end").await;
    });
}

#[test]
fn a_set_that_is_lost_is_passed_over() {
    let rt = Runtime::new(9);
    let (pause, half) = (Nanos::from_millis(4), Nanos::from_millis(1_500));
    let (outcome, ssd) = run(&rt, &profile(), options(), pause, half);
    let busy = outcome.stats.busy_reads;
    assert_eq!(busy, 0);
    ssd.fail_set(store::set_id(1)).expect("there is one");
    rt.run_until(Nanos::from_millis(4_000));
    let sets = &outcome.world.sets;
    assert_eq!(sets.failed_members(), [1]);
    let stats = sets.window_stats().expect("there are windows");
    assert!(stats.slots > outcome.stats.slots + 10, "the others go on: {stats:?}");
    assert!(stats.busy_reads > 0, "without the lost one a busy one cannot be rebuilt");
    assert_eq!(stats.writes_in_dtwin, 0);
}
