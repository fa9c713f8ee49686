//! One trial: a volume, a model of it, and random events on both, all from a seed.
//!
//! Synced data must read back as long as the layout tolerates the losses; beyond that, an error is
//! the worst allowed result. Reads never return wrong bytes without an error, except of a page with
//! a flipped bit. There the reader notices, as a store does, and requests a rebuild.

mod harm;
mod known;
mod reads;
mod windows;
mod world;
mod writes;

use std::cell::RefCell;
use std::rc::Rc;

use engine::{ExtentId, Medium};
use runtime::{Cores, Handle, Nanos, Rng, Runtime};
use volume::{Fault, Options, Setup, Volume, VolumeStats};

use self::known::{Filled, Model};

pub(crate) use self::world::World;
use crate::memory::{Disk, MemoryMedium};

/// Counts of events in trials.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub volume: VolumeStats,
    pub appends: u64,
    pub reads: u64,
    pub healed: u64,
    pub errors: u64,
    pub losses: u64,
    pub replaced: u64,
    pub returned: u64,
    pub cuts: u64,
    pub beyond: u64,
    pub windows: u64,
    pub slots: u64,
    pub cached_reads: u64,
    pub quiet_rebuilds: u64,
    pub journal_writes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, more: &Self) {
        self.add_volume(&more.volume);
        self.appends += more.appends;
        self.reads += more.reads;
        self.healed += more.healed;
        self.errors += more.errors;
        self.losses += more.losses;
        self.replaced += more.replaced;
        self.returned += more.returned;
        self.cuts += more.cuts;
        self.beyond += more.beyond;
        self.windows += more.windows;
        self.slots += more.slots;
        self.cached_reads += more.cached_reads;
        self.quiet_rebuilds += more.quiet_rebuilds;
        self.journal_writes += more.journal_writes;
    }

    fn add_volume(&mut self, more: &VolumeStats) {
        let all = &mut self.volume;
        all.reads += more.reads;
        all.rebuilt_reads += more.rebuilt_reads;
        all.parity_pages += more.parity_pages;
        all.degraded_writes += more.degraded_writes;
        all.stale_extents += more.stale_extents;
        all.kept_holes += more.kept_holes;
        all.refilled_bytes += more.refilled_bytes;
        all.lost_pages += more.lost_pages;
        all.lost_members += more.lost_members;
    }
}

/// One life of the volume, between two power cuts.
struct Life {
    world: World,
    handle: Handle,
    rng: Rng,
    volume: Volume<MemoryMedium>,
    disks: Rc<RefCell<Vec<Rc<RefCell<Disk>>>>>,
    model: Rc<RefCell<Model>>,
    tally: Rc<RefCell<Tally>>,
    seed: u64,
}

/// Runs the trial of `seed`. An error describes the volume's mistake.
pub(crate) fn run_trial(seed: u64, world: World, fault: Option<Fault>) -> Result<Tally, String> {
    let rng = &mut Rng::derive(seed, "trial");
    let disk =
        |number| Rc::new(RefCell::new(Disk::new(world.shape, world.is_anywhere, seed + number)));
    let disks: Vec<_> = (0..world.members as u64).map(disk).collect();
    let disks = Rc::new(RefCell::new(disks));
    let (model, tally) = (Rc::<RefCell<Model>>::default(), Rc::<RefCell<Tally>>::default());
    for number in 0..world.lives {
        let rt = Runtime::new(rng.next_u64());
        let (life_rng, span) = (Rng::new(rng.next_u64()), 1 + rng.below(20_000_000));
        let parts = (Rc::clone(&disks), Rc::clone(&model), Rc::clone(&tally));
        let setup = setup(&rt.handle(), world, &disks.borrow(), fault);
        let handle = rt.handle();
        let is_last = number + 1 == world.lives;
        let life = rt.handle().spawn("life", async move {
            let volume =
                if number == 0 { Volume::create(setup) } else { Volume::recover(setup).await };
            let volume = volume.map_err(|error| format!("life {number}: {error}"))?;
            volume.begin_filling();
            let (disks, model, tally) = parts;
            let mut life = Life { world, handle, rng: life_rng, volume, disks, model, tally, seed };
            life.resume().await;
            life.change_windows().await;
            life.read_all("after recovery").await;
            for _ in 0..if is_last { 60 } else { u32::MAX } {
                life.step().await;
            }
            life.sync_all().await;
            life.read_all("at the end").await;
            life.volume.filled().await;
            life.read_all("when all are filled").await;
            life.end_windows().await;
            life.tally.borrow_mut().add_volume(&life.volume.stats());
            Ok::<_, String>(())
        });
        if is_last {
            rt.run_until_true(|| life.is_finished());
            life.take().ok_or("the last life hangs")??;
        } else {
            rt.run_until(Nanos(span));
            if let Some(ended) = life.take() {
                ended?;
            }
        }
        if let Some(complaint) = model.borrow().complaints.first() {
            return Err(format!("life {number}, {world:?}: {complaint}"));
        }
        drop(rt);
        cut(&disks.borrow(), &mut model.borrow_mut(), rng);
        tally.borrow_mut().cuts += u64::from(!is_last);
    }
    let tally = *tally.borrow();
    Ok(tally)
}

fn setup(
    handle: &Handle,
    world: World,
    disks: &[Rc<RefCell<Disk>>],
    fault: Option<Fault>,
) -> Setup<MemoryMedium> {
    Setup {
        handle: handle.clone(),
        cores: Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000))),
        members: disks.iter().map(|disk| MemoryMedium::new(handle, disk)).collect(),
        options: Options {
            refill_bytes_per_second: 5_000_000,
            // A page that is unreadable once stays unreadable, so retries are useless.
            refill_retries: 0,
            hedge_after: world.hedge_after,
            ..Options::new(world.layout, 7)
        },
        planted: fault.into(),
    }
}

/// Cuts power: unsynced data may be kept or lost.
fn cut(disks: &[Rc<RefCell<Disk>>], model: &mut Model, rng: &mut Rng) {
    for disk in disks {
        disk.borrow_mut().power_cut(rng);
    }
    model.generations = model.known_generations;
    for extent in model.extents.values_mut() {
        extent.rows.retain(|_, row| row.is_synced);
    }
}
impl Life {
    /// Continues appends at the place given by the volume and the model.
    async fn resume(&mut self) {
        if self.is_whole() && !self.has_hidden_loss() {
            self.model.borrow_mut().missing.clear();
        }
        let extents: Vec<u32> = (0..self.world.shape.extents).collect();
        let unit = self.volume.shape().append_unit;
        for id in extents {
            let frontier = self.volume.frontier(ExtentId(id)).await.expect("it is known");
            let extent = self.model.borrow().extents.get(&id).map(|e| e.rows.is_empty());
            let is_known = extent == Some(false);
            if !is_known && frontier > 0 && !self.model.borrow().is_beyond {
                // A release was cut short by a power failure. Or the extent was opened again,
                // nothing in it was synced, and its data was left on a mirror that missed the
                // release. A store finds no pages of its own there, and does not append after them
                // either.
                if let Err(error) = self.volume.release(ExtentId(id)).await {
                    let mut model = self.model.borrow_mut();
                    self.complain_unless_beyond(&mut model, &format!("release of {id}: {error}"));
                }
            }
            let mut model = self.model.borrow_mut();
            let Some(extent) = model.extents.get_mut(&id) else { continue };
            let behind = extent.rows.keys().next_back().map_or(0, |row| row + 1);
            extent.next = if self.world.is_anywhere { behind } else { frontier / unit };
            let is_lost = extent.next < behind;
            // An extent with torn members may count as full.
            if is_lost && !model.is_beyond {
                let what =
                    format!("extent {id} goes on at {frontier}, and stripe {behind} was synced");
                model.complaints.push(what);
            }
        }
        // The store has no data in these extents, and opens them again.
        let empty: Vec<u32> = {
            let model = self.model.borrow();
            let is_empty = |e: &Filled| e.rows.is_empty();
            model.extents.iter().filter(|(_, e)| is_empty(e)).map(|(id, _)| *id).collect()
        };
        for id in empty {
            self.model.borrow_mut().extents.remove(&id);
        }
    }

    async fn step(&mut self) {
        if self.world.windows.is_some() {
            // Operations served from memory take no virtual time.
            self.handle.sleep(Nanos(500)).await;
        }
        match self.rng.below(100) {
            0..45 => self.append().await,
            45..55 => self.sync_all().await,
            55..80 => self.read_some().await,
            80..86 => self.release().await,
            86..91 => self.lose(),
            91..95 => self.replace(),
            97 if self.world.windows.is_some() => self.change_windows().await,
            95..98 => self.damage(),
            98 => {
                let span = self.rng.below(3_000_000);
                self.handle.sleep(Nanos(span)).await;
            }
            _ => self.lose_too_many(),
        }
        self.keeps_holes();
        if self.is_whole() && !self.has_hidden_loss() {
            self.model.borrow_mut().missing.clear();
        }
    }
}
