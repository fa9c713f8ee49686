//! One history: lives of a store, the failures of its members in each life, and the checks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::OpenError;
use runtime::{Handle, Nanos, Rng, Runtime};
use volume::Fault;

use super::clients::Clients;
use super::openings::{Store, open, open_for_good, open_whole};
use super::{FILLS_WITHIN, PATIENCE, Tally};
use crate::faults::{MEMBERS, Memory, SHAPE, World};
use crate::memory::{Command, Disk, Fails, MemoryMedium};

/// A life of the store, from an opening to a stop.
pub(crate) struct Life {
    pub clients: Rc<Clients>,
    /// The result of the opening, once it has ended.
    pub opened: RefCell<Option<Result<Store, OpenError>>>,
}

/// One history: the members and the expected state.
pub(crate) struct History {
    pub seed: u64,
    world: World,
    rng: Rng,
    is_new: bool,
    /// Whether a page was declared lost for good; then no member may be lost any more.
    has_lost_pages: bool,
    /// Whether all members have all data; then any one of them may be lost.
    is_whole: bool,
    /// Number of times that all failures were mended. A failure scheduled before the last mending
    /// does not happen.
    mended: Rc<Cell<u32>>,
    /// Replaced members with their data, and copies of members. `returns` is the random source for
    /// their return. It is set in every third history only, so that failures found earlier with the
    /// other seeds still replay.
    former: Vec<(usize, Disk)>,
    returns: Option<Rng>,
    pub story: Vec<String>,
    pub tally: Tally,
}

impl History {
    pub(crate) fn new(seed: u64, fault: Option<Fault>) -> Self {
        Self {
            seed,
            world: World::new(seed, fault),
            rng: Rng::derive(seed, "everything"),
            is_new: true,
            has_lost_pages: false,
            is_whole: true,
            mended: Rc::default(),
            former: Vec::new(),
            returns: seed.is_multiple_of(3).then(|| Rng::derive(seed, "returns")),
            story: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        for life in 0..2 + self.rng.below(5) {
            self.story.push(format!("life {life}"));
            self.live()?;
            if self.rng.chance(0.3) {
                open_whole(&self.world, self.rng.next_u64(), None, self.has_lost_pages)
                    .map_err(|error| format!("opened aside: {error}"))?;
            }
        }
        self.story.push("at last".to_owned());
        open_whole(&self.world, self.rng.next_u64(), None, self.has_lost_pages)?;
        open_for_good(&self.world, self.rng.next_u64(), self.has_lost_pages)?;
        for member in (0..MEMBERS).filter(|_| !self.has_lost_pages) {
            self.tally.taken_away += 1;
            let opened = open_whole(&self.world, self.rng.next_u64(), Some(member), false);
            opened.map_err(|error| format!("without member {member}: {error}"))?;
        }
        Ok(())
    }

    /// Opens the store, uses it, and stops it.
    fn live(&mut self) -> Result<(), String> {
        let has_failed = Rc::new(Cell::new(self.has_lost_pages));
        self.change_members(&has_failed);
        self.copy_one();
        let rt = Runtime::new(self.rng.next_u64());
        let handle = rt.handle();
        let clients = Clients::new(&handle, &self.world.asked, &has_failed);
        let life = Rc::new(Life { clients, opened: RefCell::default() });
        self.start_failing(&handle, &has_failed);
        let open = open(Rc::clone(&life), self.setup(&handle), self.is_new, self.rng.next_u64());
        drop(handle.spawn("life", open));
        self.is_new = false;
        for phase in 0..3 {
            rt.run_until(rt.handle().now() + Nanos(1 + self.rng.below(60_000_000)));
            complaint_of(&life)?;
            self.check_patience(&life)?;
            if phase == 2 || self.rng.chance(0.6) || !self.end_quietly(&rt, &life)? {
                break;
            }
            if self.rng.chance(0.4) || !self.replace_in_place(&rt, &life) {
                break;
            }
            self.start_failing(&handle, &has_failed);
        }
        self.cut(&rt, &life)?;
        self.count(&life);
        Ok(())
    }

    /// Checks that no page is declared lost before filling has retried for seconds.
    fn check_patience(&self, life: &Life) -> Result<(), String> {
        match &*life.opened.borrow() {
            Some(Ok(store)) if !self.has_lost_pages && store.volume.stats().lost_pages > 0 => {
                Err("pages were given up at once".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn setup(&self, handle: &Handle) -> volume::Setup<MemoryMedium> {
        let mut setup = self.world.setup(handle);
        setup.options.refill_bytes_per_second = 20_000_000;
        setup
    }

    /// At random, replaces a member by an empty or former one, spoils its headers, or takes it away
    /// for a life.
    #[expect(clippy::same_functions_in_if_condition, reason = "each draws anew")]
    fn change_members(&mut self, has_failed: &Rc<Cell<bool>>) {
        let member = self.rng.below(MEMBERS as u64) as usize;
        if self.is_whole && !self.is_new && self.rng.chance(0.4) {
            let next = self.fresh();
            let next = self.former_of(member).inspect(|_| self.tally.returned += 1).unwrap_or(next);
            let is_blank = next.content().is_empty();
            self.story
                .push(format!("{member} is {}", if is_blank { "blank" } else { "a former one" }));
            self.tally.blank += u64::from(is_blank);
            let before = self.world.disks[member].replace(next);
            self.former.push((member, before));
        } else if self.is_whole && !self.is_new && self.rng.chance(0.4) {
            self.story.push(format!("headers of {member} rot"));
            self.tally.rotten += 1;
            let mut disk = self.world.disks[member].borrow_mut();
            for id in (0..SHAPE.extents).filter(|_| self.rng.chance(0.5)) {
                disk.flip(id * SHAPE.pages_per_extent);
            }
        } else if self.rng.chance(0.12) {
            self.story.push(format!("{member} is away"));
            self.tally.away += 1;
            self.world.disks[member].borrow_mut().is_gone = true;
            has_failed.set(true);
        }
        self.is_whole = false;
    }

    /// Returns a former drive of the member's place, mostly, if one exists.
    fn former_of(&mut self, member: usize) -> Option<Disk> {
        let returns = self.returns.as_mut()?;
        let formers: Vec<_> =
            (0..self.former.len()).filter(|it| self.former[*it].0 == member).collect();
        let drawn = formers.get(returns.below(formers.len().max(1) as u64) as usize)?;
        returns.chance(0.8).then(|| self.former.swap_remove(*drawn).1)
    }

    /// Sometimes copies a member.
    fn copy_one(&mut self) {
        let Some(returns) = &mut self.returns else { return };
        if returns.chance(0.4) {
            let member = returns.below(MEMBERS as u64) as usize;
            let copy = self.world.disks[member].borrow().clone();
            self.former.push((member, copy));
        }
    }

    fn fresh(&mut self) -> Disk {
        Disk::new(SHAPE, true, self.rng.next_u64())
    }

    /// Makes commands of members fail, now and later, and succeed again afterwards.
    fn start_failing(&mut self, handle: &Handle, has_failed: &Rc<Cell<bool>>) {
        if self.rng.chance(0.3) {
            return;
        }
        for _ in 0..=self.rng.below(3) {
            let at = if self.rng.chance(0.4) { 0 } else { self.rng.below(40_000_000) };
            let times = [1, 3, 30, u64::MAX][self.rng.below(4) as usize];
            let command = Command::ALL[self.rng.below(4) as usize];
            let most = match (command, at) {
                (Command::Open, _) => 6,
                (_, 0) => 600,
                _ => 20,
            };
            let fails = Fails { command, after: self.rng.below(most), times };
            let first = self.rng.below(MEMBERS as u64) as usize;
            let members = [1, 1, 1, 2, 2, MEMBERS][self.rng.below(6) as usize];
            self.story.push(format!("from {at} ns on {members} members from {first}: {fails:?}"));
            let disks =
                (first..first + members).map(|it| Rc::clone(&self.world.disks[it % MEMBERS]));
            let (disks, has_failed, handle) =
                (disks.collect::<Vec<_>>(), Rc::clone(has_failed), handle.clone());
            let ends = self.rng.chance(0.5).then(|| at + self.rng.below(30_000_000));
            let begun = handle.now();
            let (mended, before) = (Rc::clone(&self.mended), self.mended.get());
            drop(handle.clone().spawn("failing", async move {
                handle.sleep_until(begun + Nanos(at)).await;
                if mended.get() != before {
                    return;
                }
                has_failed.set(true);
                for disk in &disks {
                    disk.borrow_mut().fails.push(fails);
                }
                if let Some(ends) = ends {
                    handle.sleep_until(begun + Nanos(ends)).await;
                    for disk in &disks {
                        disk.borrow_mut().fails.clear();
                    }
                }
            }));
        }
    }

    /// Mends all failures, ends the clients, and waits until the members are filled. Returns
    /// whether the store continues.
    fn end_quietly(&mut self, rt: &Runtime, life: &Life) -> Result<bool, String> {
        self.tally.quiet_ends += 1;
        let (clients, mends) = (&life.clients, self.rng.chance(0.7));
        clients.is_over.set(true);
        if mends {
            self.mend();
        }
        rt.run_until(rt.handle().now() + PATIENCE);
        if !clients.waiting().is_empty() {
            return Err(format!("these wait for ever: {:?}", clients.waiting()));
        }
        complaint_of(life)?;
        let opened = life.opened.borrow();
        let Some(opened) = opened.as_ref() else {
            return Err("the opening waits for ever".to_owned());
        };
        let (Ok(Store { volume, .. }), true) = (opened, mends) else {
            self.story.push("quiet, and still failing".to_owned());
            return Ok(false);
        };
        let filled = rt.handle().spawn("filled", {
            let volume = volume.clone();
            async move { volume.filled().await }
        });
        rt.run_until(rt.handle().now() + FILLS_WITHIN);
        if !filled.is_finished() {
            return Err("a filling stands still".to_owned());
        }
        let (failed, behind) = (volume.failed_members(), volume.members_behind());
        self.has_lost_pages |= self.lost_any(volume);
        // A rotted member is known to be whole only after its headers were read again.
        let is_read = volume.unread_members().is_empty();
        self.is_whole = failed.is_empty() && behind.is_empty() && is_read && !self.has_lost_pages;
        self.story.push(format!("quiet: {failed:?} failed, {behind:?} behind"));
        Ok(true)
    }

    /// Mends all failures; members that are away stay away.
    fn mend(&self) {
        self.mended.set(self.mended.get() + 1);
        for disk in &self.world.disks {
            disk.borrow_mut().fails.clear();
        }
    }

    fn lost_any(&self, volume: &Memory) -> bool {
        self.has_lost_pages || volume.stats().lost_pages > 0
    }

    /// Replaces a member of the open store by a fresh one, if the others have all data. The clients
    /// continue.
    fn replace_in_place(&mut self, rt: &Runtime, life: &Rc<Life>) -> bool {
        let opened = life.opened.borrow();
        let Some(Ok(store)) = opened.as_ref() else { return false };
        let (failed, behind) = (store.volume.failed_members(), store.volume.members_behind());
        let any = self.rng.below(MEMBERS as u64) as usize;
        let member = failed.first().or(behind.first()).copied().unwrap_or(any);
        let is_other = |other: &usize| *other != member;
        if failed.iter().chain(&behind).any(is_other) || self.lost_any(&store.volume) {
            return false;
        }
        self.story.push(format!("{member} is replaced"));
        self.tally.replaced += 1;
        self.is_whole = false;
        let next = Rc::new(RefCell::new(self.fresh()));
        let before = std::mem::replace(&mut self.world.disks[member], next);
        self.former.push((member, before.borrow().clone()));
        let medium = MemoryMedium::new(&rt.handle(), &self.world.disks[member]);
        store.volume.replace(member, medium).expect("it is alike");
        life.clients.is_over.set(false);
        life.clients.start(&store.engine, &mut self.rng);
        true
    }

    /// Cuts power, at a different moment for each member, or kills the process.
    fn cut(&mut self, rt: &Runtime, life: &Life) -> Result<(), String> {
        let is_filling = match &*life.opened.borrow() {
            None => {
                self.tally.cut_in_opening += 1;
                false
            }
            Some(Ok(store)) => (0..MEMBERS).any(|it| store.volume.progress(it).is_some()),
            Some(Err(_)) => false,
        };
        self.tally.cut_in_filling += u64::from(is_filling);
        if self.rng.chance(0.25) {
            self.tally.kills += 1;
            self.story.push("killed".to_owned());
            self.world.disks.iter().for_each(|disk| disk.borrow_mut().tear());
        } else {
            life.clients.has_failed.set(true);
            self.cut_apart(rt);
            complaint_of(life)?;
        }
        for disk in &self.world.disks {
            let mut disk = disk.borrow_mut();
            disk.fails.clear();
            (disk.is_gone, disk.is_silent) = (false, false);
        }
        Ok(())
    }

    fn cut_apart(&mut self, rt: &Runtime) {
        let apart = [0, 300_000, 5_000_000, 40_000_000][self.rng.below(4) as usize];
        self.tally.cuts_apart += u64::from(apart > 0);
        let mut moments: Vec<(u64, usize)> =
            (0..MEMBERS).map(|member| (self.rng.below(apart + 1), member)).collect();
        moments.sort_unstable();
        self.story.push(format!("power is cut: {moments:?}"));
        let begun = rt.handle().now();
        for (at, member) in moments {
            rt.run_until(begun + Nanos(at));
            let mut disk = self.world.disks[member].borrow_mut();
            disk.power_cut(&mut self.rng);
            match self.rng.below(3) {
                0 => disk.is_gone = true,
                1 => disk.is_silent = true,
                _ => disk.fails = Command::ALL.map(always).to_vec(),
            }
        }
    }

    fn count(&mut self, life: &Life) {
        self.tally.operations += life.clients.done.get();
        match &*life.opened.borrow() {
            None => self.story.push("not open yet".to_owned()),
            Some(Err(error)) => {
                self.tally.refused += 1;
                self.story.push(format!("refused: {error}"));
            }
            Some(Ok(Store { volume, .. })) => {
                self.tally.opened += 1;
                self.tally.lost_pages += volume.stats().lost_pages;
                self.has_lost_pages |= volume.stats().lost_pages > 0;
            }
        }
    }
}

fn always(command: Command) -> Fails {
    Fails { command, after: 0, times: u64::MAX }
}

fn complaint_of(life: &Life) -> Result<(), String> {
    life.clients.complaints.borrow().first().map_or(Ok(()), |first| Err(first.clone()))
}

/// Returns the members of a store that was written for a while and stopped, all of them whole.
pub(crate) fn with_data(seed: u64) -> World {
    let mut history = History::new(seed, None);
    let rt = Runtime::new(seed);
    let clients = Clients::new(&rt.handle(), &history.world.asked, &Rc::default());
    let life = Rc::new(Life { clients, opened: RefCell::default() });
    let setup = history.world.setup(&rt.handle());
    drop(rt.handle().spawn("life", open(Rc::clone(&life), setup, true, seed)));
    rt.run_until(Nanos::from_millis(150));
    drop((rt, life));
    let rng = &mut history.rng;
    history.world.disks.iter().for_each(|disk| disk.borrow_mut().power_cut(rng));
    history.world
}
