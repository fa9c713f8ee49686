//! One trial: a volume, a model of it, and what happens to both, all from a seed.
//!
//! What was synced must read back as long as the layout stands what was lost, and an error is the worst
//! that may come of more. Wrong bytes are never given without one, but where a bit was flipped: there
//! the reader notices, as a store does, and asks for the page to be rebuilt.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Cores, Handle, IoClass, Nanos, PageImage, Rng, Runtime, join_all};
use volume::{Fault, Layout, Options, Planted, Setup, Volume, VolumeStats};

use crate::memory::{Disk, MemoryMedium};

/// What a trial runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub layout: Layout,
    pub members: usize,
    pub shape: Shape,
    pub is_anywhere: bool,
    pub flips: bool,
    pub lives: u32,
}

impl World {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "world");
        let append_unit = 1 + rng.below(2) as u32;
        let chunk_pages = append_unit * (1 + rng.below(3) as u32);
        let (layout, members) = match rng.below(6) {
            0 => (Layout::Striped { chunk_pages }, 1 + rng.below(4)),
            1 | 2 => (Layout::Mirrored, 2 + rng.below(2)),
            _ => (Layout::Parity { chunk_pages }, 3 + rng.below(3)),
        };
        let shape = Shape {
            payload_bytes: 512,
            page_bytes: 512,
            pages_per_extent: append_unit * 2 + chunk_pages * (2 + rng.below(6) as u32),
            extents: 6,
            append_unit,
            parallelism: 2,
        };
        let pages_per_extent = shape.in_units(shape.pages_per_extent);
        Self {
            layout,
            members: members as usize,
            shape: Shape { pages_per_extent, ..shape },
            is_anywhere: rng.chance(0.5),
            flips: rng.chance(0.3),
            lives: 3 + rng.below(4) as u32,
        }
    }

    fn spares(&self) -> usize {
        match self.layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => self.members - 1,
        }
    }
}

/// A stripe as the model knows it.
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
#[derive(Clone, Default, Debug)]
struct Row {
    pages: Vec<Vec<u8>>,
    is_acknowledged: bool,
    is_synced: bool,
    /// Reads may end with an error: more was lost than the layout stands.
    may_fail: bool,
    /// A page of it cannot be read on some member, or has a bit flipped.
    is_damaged: bool,
    is_flipped: bool,
}

#[derive(Clone, Debug)]
struct Filled {
    stream: Stream,
    rows: BTreeMap<u32, Row>,
    next: u32,
    is_open: bool,
}

#[derive(Default)]
struct Model {
    extents: BTreeMap<u32, Filled>,
    generations: u64,
    /// Members that are not known to have everything.
    missing: BTreeSet<usize>,
    /// More was lost than the layout stands: nothing can be appended.
    is_beyond: bool,
    complaints: Vec<String>,
}

/// What happened in trials.
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
    }

    fn add_volume(&mut self, more: &VolumeStats) {
        let all = &mut self.volume;
        all.reads += more.reads;
        all.rebuilt_reads += more.rebuilt_reads;
        all.parity_pages += more.parity_pages;
        all.degraded_writes += more.degraded_writes;
        all.stale_extents += more.stale_extents;
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

/// Runs the trial of `seed`; an error says what the volume did wrong.
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
            let (disks, model, tally) = parts;
            let mut life = Life { world, handle, rng: life_rng, volume, disks, model, tally, seed };
            life.resume().await;
            life.read_all("after recovery").await;
            for _ in 0..if is_last { 60 } else { u32::MAX } {
                life.step().await;
            }
            life.sync_all().await;
            life.read_all("at the end").await;
            life.volume.filled().await;
            life.read_all("when all are filled").await;
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
        options: Options { refill_bytes_per_second: 5_000_000, ..Options::new(world.layout, 7) },
        planted: fault.map_or_else(Planted::default, Planted::new),
    }
}

/// Power is cut: what was not synced may be there or not.
fn cut(disks: &[Rc<RefCell<Disk>>], model: &mut Model, rng: &mut Rng) {
    for disk in disks {
        disk.borrow_mut().power_cut(rng);
    }
    for extent in model.extents.values_mut() {
        extent.rows.retain(|_, row| row.is_synced);
    }
}

impl Life {
    /// Whether another member may be lost without harm.
    fn can_lose(&self) -> bool {
        let model = self.model.borrow();
        // What a power cut tore is filled in after it, too.
        let lacks = |member: &usize| {
            model.missing.contains(member) || self.volume.progress(*member).is_some()
        };
        (0..self.world.members).filter(lacks).count() < self.world.spares() && !model.is_beyond
    }

    fn is_whole(&self) -> bool {
        let is_filled = (0..self.world.members).all(|m| self.volume.progress(m).is_none());
        is_filled && self.volume.failed_members().is_empty()
    }

    /// Appends go on where the volume, and the model, say.
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
                // A release that power cut short. Or the extent was opened again, nothing in it was synced,
                // and what is there was left over on a mirror that could not be told of the release: a
                // store finds none of its pages there, and does not go on behind them either.
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
            // What was torn may say that it is full.
            if is_lost && !model.is_beyond {
                let what =
                    format!("extent {id} goes on at {frontier}, and stripe {behind} was synced");
                model.complaints.push(what);
            }
        }
        // The store knows nothing in it, and opens it again.
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
        match self.rng.below(100) {
            0..45 => self.append().await,
            45..55 => self.sync_all().await,
            55..80 => self.read_some().await,
            80..86 => self.release().await,
            86..91 => self.lose(),
            91..95 => self.replace(),
            95..98 => self.damage(),
            98 => {
                let span = self.rng.below(3_000_000);
                self.handle.sleep(Nanos(span)).await;
            }
            _ => self.lose_too_many(),
        }
        if self.is_whole() && !self.has_hidden_loss() {
            self.model.borrow_mut().missing.clear();
        }
    }

    /// A member may be gone without the volume having noticed.
    fn has_hidden_loss(&self) -> bool {
        let disks = self.disks.borrow();
        disks.iter().any(|disk| {
            let disk = disk.borrow();
            disk.is_gone || disk.is_read_only || disk.gone_after.is_some()
        })
    }

    /// An extent with room, opened if need be.
    fn extent_to_append(&mut self) -> Option<u32> {
        let rows = self.volume.shape().pages_per_extent / self.volume.shape().append_unit;
        let model = &mut *self.model.borrow_mut();
        for extent in model.extents.values_mut() {
            extent.is_open &= extent.next < rows;
        }
        let open: Vec<u32> =
            model.extents.iter().filter(|(_, e)| e.is_open).map(|(id, _)| *id).collect();
        if open.len() >= 2 {
            return Some(open[self.rng.below(open.len() as u64) as usize]);
        }
        let id = (0..self.world.shape.extents).find(|id| !model.extents.contains_key(id))?;
        let stream = Stream::ALL[self.rng.below(4) as usize];
        model.generations += 1;
        match self.volume.open(ExtentId(id), model.generations, stream) {
            Ok(()) => {
                let rows = BTreeMap::new();
                model.extents.insert(id, Filled { stream, rows, next: 0, is_open: true });
                Some(id)
            }
            Err(error) => {
                self.complain_unless_beyond(model, &format!("extent {id} is not opened: {error}"));
                None
            }
        }
    }

    fn complain_unless_beyond(&self, model: &mut Model, what: &str) {
        if !model.is_beyond && self.world.spares() > 0 {
            model.complaints.push(what.to_owned());
        }
    }

    async fn append(&mut self) {
        if self.model.borrow().is_beyond {
            return;
        }
        let Some(id) = self.extent_to_append() else { return };
        let shape = self.volume.shape();
        let rows = shape.pages_per_extent / shape.append_unit;
        let mut appends = Vec::new();
        for _ in 0..=self.rng.below(4) {
            let row = self.model.borrow().extents[&id].next;
            if row >= rows {
                break;
            }
            let pages: Vec<Vec<u8>> = (0..shape.append_unit).map(|_| self.content()).collect();
            let images = pages.iter().map(|page| PageImage::new(page)).collect();
            let first = shape.page(ExtentId(id), row * shape.append_unit);
            {
                let mut model = self.model.borrow_mut();
                let extent = model.extents.get_mut(&id).expect("it is open");
                extent.next += 1;
                extent.rows.insert(row, Row { pages, ..Row::default() });
            }
            self.tally.borrow_mut().appends += 1;
            let append = self.volume.append(first, images, IoClass::Flush);
            appends.push(async move { (row, append.await) });
        }
        for (row, done) in join_all(appends).await {
            let mut model = self.model.borrow_mut();
            let extent = model.extents.get_mut(&id).expect("it is open");
            match done {
                Ok(()) => extent.rows.get_mut(&row).expect("it is there").is_acknowledged = true,
                Err(error) => {
                    extent.rows.remove(&row);
                    extent.is_open = false;
                    self.complain_unless_beyond(&mut model, &format!("append to {id}: {error}"));
                    model.is_beyond = true;
                }
            }
        }
    }

    /// A page of bytes that nothing else holds, with zeros at its end now and then.
    fn content(&mut self) -> Vec<u8> {
        let zeros = self.rng.below(3) as usize;
        let length = 9 + self.rng.below(60) as usize;
        let mut page: Vec<u8> = (0..length).map(|_| self.rng.below(256) as u8).collect();
        page[0] = 1;
        page.resize(length + zeros, 0);
        page
    }

    async fn sync_all(&mut self) {
        for stream in Stream::ALL {
            let acknowledged: Vec<(u32, u32)> = {
                let model = self.model.borrow();
                let of = model.extents.iter().filter(|(_, e)| e.stream == stream);
                let rows = of.flat_map(|(id, e)| e.rows.iter().map(|(row, r)| (*id, *row, r)));
                rows.filter(|(_, _, r)| r.is_acknowledged).map(|(id, row, _)| (id, row)).collect()
            };
            let synced = self.volume.sync(stream).await;
            let mut model = self.model.borrow_mut();
            match synced {
                Ok(()) => {
                    for (id, row) in acknowledged {
                        let extent = model.extents.get_mut(&id).expect("nobody releases it");
                        extent.rows.get_mut(&row).expect("it is there").is_synced = true;
                    }
                }
                Err(error) => {
                    self.complain_unless_beyond(
                        &mut model,
                        &format!("sync of {stream:?}: {error}"),
                    );
                    model.is_beyond = true;
                }
            }
        }
    }

    async fn release(&mut self) {
        let ids: Vec<u32> = self.model.borrow().extents.keys().copied().collect();
        if ids.is_empty() || self.model.borrow().is_beyond {
            return;
        }
        let id = ids[self.rng.below(ids.len() as u64) as usize];
        self.model.borrow_mut().extents.remove(&id);
        if let Err(error) = self.volume.release(ExtentId(id)).await {
            let mut model = self.model.borrow_mut();
            self.complain_unless_beyond(&mut model, &format!("release of {id}: {error}"));
            model.is_beyond = true;
        }
    }

    /// A member is lost at once, after some commands, or for writes.
    fn lose(&mut self) {
        if !self.can_lose() {
            return;
        }
        let member = self.rng.below(self.world.members as u64) as usize;
        if !self.model.borrow_mut().missing.insert(member) {
            return;
        }
        self.tally.borrow_mut().losses += 1;
        self.harm_damaged();
        let disks = self.disks.borrow();
        let mut disk = disks[member].borrow_mut();
        match self.rng.below(3) {
            0 => disk.is_gone = true,
            1 => disk.gone_after = Some(1 + self.rng.below(30)),
            _ => disk.is_read_only = true,
        }
    }

    /// What is damaged cannot be rebuilt any more, or perhaps not.
    fn harm_damaged(&self) {
        let mut model = self.model.borrow_mut();
        for extent in model.extents.values_mut() {
            for row in extent.rows.values_mut().filter(|row| row.is_damaged) {
                row.may_fail = true;
            }
        }
    }

    /// A fresh medium takes the place of one that is lost, or the lost one will come back at the next
    /// power cut.
    fn replace(&mut self) {
        let lost: Vec<usize> = {
            let disks = self.disks.borrow();
            let is_lost = |disk: &Disk| disk.is_gone || disk.is_read_only;
            (0..disks.len()).filter(|member| is_lost(&disks[*member].borrow())).collect()
        };
        let Some(member) = lost.first().copied() else { return };
        if self.model.borrow().is_beyond {
            return;
        }
        // One that returns while others are missing may know less than they did.
        let noticed = self.volume.failed_members().contains(&member);
        let is_only = self.model.borrow().missing.len() == 1;
        if noticed && is_only && self.rng.chance(0.5) {
            let disk = Rc::clone(&self.disks.borrow()[member]);
            disk.borrow_mut().come_back();
            self.tally.borrow_mut().returned += 1;
            return;
        }
        let seed = self.rng.next_u64();
        let disk = Disk::new(self.world.shape, self.world.is_anywhere, seed);
        let disk = Rc::new(RefCell::new(disk));
        self.volume.replace(member, MemoryMedium::new(&self.handle, &disk)).expect("it is alike");
        self.disks.borrow_mut()[member] = disk;
        self.tally.borrow_mut().replaced += 1;
    }

    /// A page of one member cannot be read, or has a bit changed.
    fn damage(&mut self) {
        let shape = self.volume.shape();
        let found = {
            let model = self.model.borrow();
            let rows = model.extents.iter().flat_map(|(id, e)| e.rows.iter().map(|r| (*id, r)));
            let sound = rows.filter(|(_, (_, row))| row.is_synced && !row.is_damaged);
            let sound: Vec<(u32, u32)> = sound.map(|(id, (row, _))| (id, *row)).collect();
            if sound.is_empty() || self.world.spares() == 0 || model.is_beyond {
                return;
            }
            sound[self.rng.below(sound.len() as u64) as usize]
        };
        let (id, row) = found;
        let per_row = shape.append_unit;
        let chunk = match self.world.layout {
            Layout::Mirrored => per_row,
            Layout::Parity { chunk_pages } | Layout::Striped { chunk_pages } => chunk_pages,
        };
        let member = self.rng.below(self.world.members as u64) as usize;
        let place =
            self.world.shape.append_unit + row * chunk + self.rng.below(u64::from(chunk)) as u32;
        let place = id * self.world.shape.pages_per_extent + place;
        let flips = self.world.flips && self.rng.chance(0.5);
        let disks = self.disks.borrow();
        let mut disk = disks[member].borrow_mut();
        if flips && !disk.flip(place) {
            return;
        } else if !flips {
            disk.unreadable.insert(place);
        }
        drop(disk);
        let mut model = self.model.borrow_mut();
        let is_whole = model.missing.is_empty() && self.is_whole();
        let extent = model.extents.get_mut(&id).expect("it is there");
        let row = extent.rows.get_mut(&row).expect("it is there");
        (row.is_damaged, row.is_flipped) = (true, flips);
        row.may_fail |= !is_whole;
    }

    /// More is lost than the layout stands. Seldom, because little can happen afterwards.
    fn lose_too_many(&mut self) {
        if !self.rng.chance(0.2) || self.model.borrow().is_beyond {
            return;
        }
        self.tally.borrow_mut().beyond += 1;
        let mut model = self.model.borrow_mut();
        model.is_beyond = true;
        let first = self.rng.below(self.world.members as u64) as usize;
        for step in 0..=self.world.spares() {
            let member = (first + step) % self.world.members;
            model.missing.insert(member);
            self.disks.borrow()[member].borrow_mut().is_gone = true;
        }
    }

    async fn read_some(&mut self) {
        let rows = self.readable();
        if rows.is_empty() {
            return;
        }
        let per_row = self.volume.shape().append_unit;
        let reads: Vec<_> = (0..=self.rng.below(4))
            .map(|_| {
                let (id, row) = rows[self.rng.below(rows.len() as u64) as usize];
                let at = self.rng.below(u64::from(per_row)) as u32;
                let length = 1 + self.rng.below(u64::from(per_row - at)) as u32;
                (id, row, at, length)
            })
            .collect();
        for (id, row, at, length) in reads {
            self.read(id, row, at, length, "read").await;
        }
    }

    fn readable(&self) -> Vec<(u32, u32)> {
        let model = self.model.borrow();
        let rows = model.extents.iter().flat_map(|(id, e)| e.rows.iter().map(|r| (*id, r)));
        let rows = rows.filter(|(_, (_, row))| row.is_acknowledged);
        rows.map(|(id, (row, _))| (id, *row)).collect()
    }

    async fn read_all(&mut self, when: &str) {
        let per_row = self.volume.shape().append_unit;
        for (id, row) in self.readable() {
            self.read(id, row, 0, per_row, when).await;
        }
    }

    /// Reads pages of a stripe and compares them with the model.
    async fn read(&mut self, id: u32, row: u32, at: u32, length: u32, when: &str) {
        let shape = self.volume.shape();
        let first = shape.page(ExtentId(id), row * shape.append_unit + at);
        let was_beyond = self.model.borrow().is_beyond;
        let found = if length == 1 {
            vec![self.volume.read(first, IoClass::ClientRead).await]
        } else {
            self.volume.read_run(first, length, IoClass::ClientRead).await
        };
        for (number, found) in (0..).zip(found) {
            self.tally.borrow_mut().reads += 1;
            let page = PageNo(first.0 + number);
            let known = {
                let model = self.model.borrow();
                let Some(known) = model.extents.get(&id).and_then(|e| e.rows.get(&row)) else {
                    return;
                };
                known.clone()
            };
            let expected = &known.pages[(at + number) as usize];
            let complaint = self.judge(page, found, expected, &known).await;
            let Some(complaint) = complaint else { continue };
            let is_error = complaint.contains("cannot") || complaint.contains("gone");
            let beyond = was_beyond || self.model.borrow().is_beyond;
            let may_fail = beyond || self.model.borrow().extents[&id].rows[&row].may_fail;
            if is_error && (may_fail || self.world.spares() == 0) {
                self.tally.borrow_mut().errors += 1;
                continue;
            }
            let flipped = known.is_flipped && may_fail;
            if !flipped {
                let what = format!("{when}: extent {id} stripe {row} page {}: {complaint}", page.0);
                self.model.borrow_mut().complaints.push(format!("{what} (seed {})", self.seed));
            }
        }
    }

    /// What is wrong with a page that was read, and was not rebuilt either.
    async fn judge(
        &self,
        page: PageNo,
        found: Result<PageImage, MediumError>,
        expected: &[u8],
        known: &Row,
    ) -> Option<String> {
        let is_it = |found: &PageImage| {
            let bytes = found.bytes();
            bytes.len() >= expected.len()
                && bytes[..expected.len()] == *expected
                && bytes[expected.len()..].iter().all(|byte| *byte == 0)
        };
        match found {
            Ok(image) if is_it(&image) => None,
            Ok(_) if known.is_flipped => {
                let rebuilt = self.volume.read_rebuilt(page, IoClass::ClientRead).await;
                match rebuilt {
                    Ok(image) if is_it(&image) => {
                        self.tally.borrow_mut().healed += 1;
                        None
                    }
                    Ok(_) => Some("a flipped bit was not healed".to_owned()),
                    Err(error) => Some(format!("{error}")),
                }
            }
            Ok(image) => Some(format!("wrong bytes: {:?} instead of {expected:?}", image.bytes())),
            Err(error) => Some(format!("{error}")),
        }
    }
}
