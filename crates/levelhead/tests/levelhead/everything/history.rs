//! One history: runs of a store with the faults of its members, and the checks after each run.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use faultfs::{FaultFs, Faults, Ignored};
use levelhead::{Closed, DirectoryState, Durability, Error, Options, Store, Windows};
use runtime::Rng;
use volume::header::{self, Header};

use super::Tally;
use super::clients::{Clients, PROBE, WRITERS, pause, states};
use super::line::{Bounds, Found, Line, key, stamp_of};
use super::plan::{Ending, Harm, Plan, Step};
use super::watch::{Watch, lock};
use crate::scratch::{Scratch, by_threads, faulty};

/// Steps of 5 ms within which a store must take writes again, or be filled.
const STEPS: u32 = 12_000;

/// The extent size of a small store, in bytes.
const EXTENT_BYTES: usize = 1 << 20;

/// One history: the members and their known state.
pub(crate) struct History {
    drives: Vec<FaultFs>,
    directories: Vec<PathBuf>,
    options: Options,
    capacity: u64,
    lines: Vec<Mutex<Line>>,
    /// Whether all members are complete, so that any one of them may be lost.
    is_whole: bool,
    /// The former contents of members that were replaced.
    former: Vec<(usize, Vec<u8>)>,
    /// Syncs that have no effect during the whole history.
    ignored: Ignored,
    rng: Rng,
    watch: Arc<Watch>,
    pub tally: Tally,
}

impl History {
    /// Returns `None` if FUSE is not available.
    pub(crate) fn new(
        seed: u64,
        members: usize,
        ignored: Ignored,
        watch: &Arc<Watch>,
    ) -> Option<Self> {
        let mut rng = Rng::derive(seed, "everything");
        let drives: Vec<FaultFs> =
            (0..members as u64).map(|member| faulty(seed << 2 | member)).collect::<Option<_>>()?;
        let directories = drives.iter().map(|drive| drive.path().join("d")).collect();
        let page_bytes = 4096 << rng.below(3);
        let inline_up_to = [0, 0, 100, 1_000][rng.below(4) as usize];
        let options = Options { page_bytes, inline_up_to, ..by_threads() };
        watch.say(format!("{page_bytes} bytes a page, {inline_up_to} inline"));
        Some(Self {
            drives,
            directories,
            capacity: options.capacity_bytes,
            options,
            lines: (0..WRITERS).map(|writer| Mutex::new(Line::new(writer))).collect(),
            is_whole: false,
            former: Vec::new(),
            ignored,
            rng,
            watch: Arc::clone(watch),
            tally: Tally::default(),
        })
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        for life in 0..2 + self.rng.below(3) {
            self.watch.say(format!("life {life}"));
            self.live()?;
            if self.rng.chance(0.7) {
                let fills = self.rng.chance(0.6);
                self.look(fills)?;
            }
        }
        self.watch.say("at last".to_owned());
        self.look(true)?;
        if self.directories.len() == 1 {
            return Ok(());
        }
        (0..self.directories.len()).try_for_each(|away| {
            self.tally.taken_away += 1;
            let options = Options { read_only: true, ..self.options.clone() };
            let found = self.without(away, &options);
            found.map_err(|error| format!("without member {away}: {error}"))
        })?;
        let away = self.rng.below(self.directories.len() as u64) as usize;
        self.repair(away).map_err(|error| format!("repaired without member {away}: {error}"))
    }

    /// Returns the members' headers of each extent, to analyse a complaint.
    pub(crate) fn headers(&self) -> String {
        self.mend();
        let read = |path: &PathBuf| fs::read(path.join("data")).unwrap_or_default();
        let data: Vec<Vec<u8>> = self.directories.iter().map(read).collect();
        let most = data.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for (id, at) in (0..most).step_by(EXTENT_BYTES).enumerate() {
            let of = |data: &Vec<u8>| data.get(at..).and_then(header::decode);
            let words = |it: Header| {
                let (run, revision) = (it.run >> 32, (it.revision >> 32, it.revision as u32));
                let Header { stream, generation, absent, standing, .. } = it;
                format!("{stream:?} {generation}/{run}/{revision:?} absent {absent:b} {standing:?}")
            };
            if data.iter().any(|data| of(data).is_some()) {
                let all = data.iter().map(|data| of(data).map_or("none".to_owned(), words));
                let _ = writeln!(text, "  extent {id}: {}", all.collect::<Vec<_>>().join(" | "));
            }
        }
        text
    }

    fn without(&self, away: usize, options: &Options) -> Result<(), String> {
        let store = self.open(Some(away), options).map_err(|error| error.to_string())?;
        let found = self.all(&store)?;
        self.explain(&found, |line| (line.len(), line.len()))
    }

    /// Checks that a repair saves everything.
    fn repair(&self, away: usize) -> Result<(), String> {
        let scratch = Scratch::new();
        let into = scratch.path().join("repaired");
        let repair = || levelhead::repair(&self.paths(Some(away)), &into, &self.degraded(), |_| ());
        let report = self.watch.call("repair", repair).map_err(|error| format!("{error:?}"))?;
        if report.salvaged.is_some() || !report.findings.is_empty() {
            return Err(format!("it cannot read all: {:?}", report.findings));
        }
        let store =
            Store::open_over(&[&into], &self.options).map_err(|error| format!("{error:?}"))?;
        let found = self.all(&store)?;
        self.explain(&found, |line| (line.len(), line.len()))
    }

    /// Returns the directories, with a nonexistent path for a member that is away.
    fn paths(&self, away: Option<usize>) -> Vec<PathBuf> {
        let mut directories = self.directories.clone();
        if let Some(away) = away {
            directories[away] = directories[away].join("away");
        }
        directories
    }

    fn degraded(&self) -> Options {
        Options { degraded: true, ..self.options.clone() }
    }

    fn open(&self, away: Option<usize>, options: &Options) -> Result<Store, Error> {
        let options = Options { degraded: true, ..options.clone() };
        self.watch.call("opening", || Store::open_over(&self.paths(away), &options))
    }

    /// Reads all pairs of a store without faults.
    fn all(&self, store: &Store) -> Result<Vec<Found>, String> {
        let all = self.watch.call("range of all", || states(store.range(..)));
        all.map_err(|error| format!("it cannot be read: {error:?}"))?
    }

    fn explain(&self, found: &[Found], bounds: impl Fn(&Line) -> Bounds) -> Result<(), String> {
        self.lines.iter().zip(found).try_for_each(|(line, found)| {
            let line = lock(line);
            line.explains(found, bounds(&line))
        })
    }

    /// Takes the state found as the base for later checks.
    fn rebase(&self, found: Vec<Found>) {
        self.lines.iter().zip(found).for_each(|(line, found)| lock(line).rebase(found));
    }

    fn set_faults(&self, member: usize, faults: Faults) {
        self.drives[member].set_faults(Faults { ignored: self.ignored, ..faults });
    }

    fn mend(&self) {
        for (member, drive) in self.drives.iter().enumerate() {
            // Also cancels a pending power cut.
            drive.power_on();
            self.set_faults(member, Faults::default());
        }
    }

    fn carry_out(&self, step: &Step, harm: &Mutex<Harm>, faults: &mut [Faults]) {
        // Records the fault before it happens, so that a client that meets it finds it recorded.
        lock(harm).add(step);
        match step {
            Step::Fail(members, fails) => {
                for member in members {
                    faults[*member].fails.push(*fails);
                    self.set_faults(*member, faults[*member].clone());
                }
            }
            Step::Fill(members, spare) => {
                for member in members {
                    faults[*member].room = Some(self.drives[*member].bytes_in_use() + spare);
                    self.set_faults(*member, faults[*member].clone());
                }
            }
            Step::Mend => {
                faults.fill(Faults::default());
                (0..faults.len()).for_each(|member| self.set_faults(member, Faults::default()));
            }
        }
    }

    /// One run: opens the store, uses it, and stops it.
    fn live(&mut self) -> Result<(), String> {
        let members = self.drives.len();
        let may_lack = self.is_whole && members > 1;
        let replaced = self.former.first().map(|(member, _)| *member);
        let plan = Plan::draw(members, (may_lack, replaced), self.capacity, &mut self.rng);
        self.watch.say(format!("{plan:?}"));
        self.mend();
        let harm = Mutex::new(Harm { was_whole: self.is_whole, ..Harm::default() });
        let options = self.options_of(&plan);
        if let Some(blank) = plan.blank {
            self.replace(blank);
            self.tally.blank += 1;
        }
        self.tally.away += u64::from(plan.away.is_some());
        lock(&harm).of_members(&plan.away.into_iter().chain(plan.blank).collect::<Vec<_>>());
        lock(&harm).any = plan.away.is_some();
        let mut faults = vec![Faults::default(); members];
        for step in &plan.at_first {
            self.carry_out(step, &harm, &mut faults);
        }
        for (member, after) in &plan.cut_in_opening {
            self.drives[*member].cut_after(*after);
            // The cut may also come much later.
            lock(&harm).of_power(*member);
        }
        self.is_whole = false;
        match self.open(plan.away, &options) {
            Ok(store) => {
                self.tally.opened += 1;
                self.capacity = self.capacity.max(plan.capacity);
                self.use_it(store, &plan, &harm, faults)?;
            }
            Err(error) => {
                self.watch.say(format!("refused: {error:?}"));
                self.tally.refused += 1;
                if plan.at_first.is_empty() && plan.cut_in_opening.is_empty() {
                    return Err(format!("it does not open: {error:?}"));
                }
                // The files may have grown all the same.
                self.end(&plan.ending);
            }
        }
        Ok(())
    }

    fn options_of(&mut self, plan: &Plan) -> Options {
        let rng = &mut self.rng;
        let windows = match rng.below(8) {
            0 if self.drives.len() > 1 => Windows::Rails,
            _ => Windows::Off,
        };
        Options {
            memtable_bytes: [0, 1, 1, 2][rng.below(4) as usize] << 20,
            memory_bytes: [4, 16, 64][rng.below(3) as usize] << 20,
            value_cache_bytes: [0, 1 << 20][rng.below(2) as usize],
            capacity_bytes: if plan.away.is_some() { 0 } else { plan.capacity },
            windows,
            ..self.options.clone()
        }
    }

    /// Replaces a drive: the member's pages become zeros, or the contents of an earlier drive.
    fn replace(&mut self, member: usize) {
        let path = self.directories[member].join("data");
        let data = fs::read(&path).expect("it is whole");
        let bytes = data.len() as u64;
        let before = self.former.iter().position(|(of, _)| *of == member);
        let before = before.filter(|_| self.rng.chance(0.7));
        let next = before.map_or(Vec::new(), |at| self.former.swap_remove(at).1);
        self.tally.returned += u64::from(before.is_some());
        self.watch.say(if before.is_some() {
            "a former one".to_owned()
        } else {
            "blank".to_owned()
        });
        self.former.push((member, data));
        let file = fs::OpenOptions::new().write(true).open(&path).expect("it is whole");
        let put = file.set_len(0).and_then(|()| (&file).write_all(&next));
        let put = put.and_then(|()| file.set_len(bytes));
        put.and_then(|()| file.sync_all()).expect("nothing fails");
    }

    /// Runs clients while members fail, until the end of the run.
    fn use_it(
        &mut self,
        store: Store,
        plan: &Plan,
        harm: &Mutex<Harm>,
        mut faults: Vec<Faults>,
    ) -> Result<(), String> {
        let copies = self.drives[0].path().join("copies");
        let clients = Clients {
            store: &store,
            lines: &self.lines,
            harm,
            watch: &self.watch,
            copies: &copies,
            members: self.drives.len(),
            is_over: AtomicBool::new(false),
            complaints: Mutex::default(),
            done: AtomicU64::new(0),
        };
        let all = self.watch.call("range at first", || states(store.range(..)));
        let writes = match clients.good("range at first", all) {
            Some(Ok(found)) => {
                self.explain(&found, Line::after_cut)
                    .map_err(|wrong| format!("opened, {wrong}"))?;
                self.rebase(found);
                true
            }
            Some(Err(wrong)) => return Err(format!("opened: {wrong}")),
            // Without the initial state, writers cannot start.
            None => false,
        };
        let seed = self.rng.next_u64();
        thread::scope(|scope| {
            if writes {
                clients.start(scope, &mut Rng::new(seed));
            }
            let mut now = 0;
            for (at, step) in &plan.steps {
                pause(Duration::from_millis(at.min(&plan.length).saturating_sub(now)));
                now = now.max(*at);
                self.carry_out(step, harm, &mut faults);
            }
            pause(Duration::from_millis(plan.length.saturating_sub(now)));
            if !matches!(plan.ending, Ending::Quiet { .. }) {
                (0..self.drives.len()).for_each(|member| lock(harm).of_power(member));
                self.end(&plan.ending);
            }
            clients.is_over.store(true, Ordering::Relaxed);
        });
        self.tally.operations += clients.done.load(Ordering::Relaxed);
        self.tally.count(plan);
        if let Some(complaint) = lock(&clients.complaints).first() {
            return Err(complaint.clone());
        }
        let harm = lock(harm).clone();
        if let Ending::Quiet { mends, closes } = plan.ending {
            return self.end_quietly(store, &harm, mends, closes && writes);
        }
        self.watch.call("end of the last handle", || drop(store));
        Ok(())
    }

    /// Cuts the power or kills the process; no request completes after this.
    fn end(&self, ending: &Ending) {
        match ending {
            Ending::Quiet { .. } => {}
            Ending::Cut(moments) => {
                let mut now = 0;
                for (at, member) in moments {
                    pause(Duration::from_millis(at - now));
                    now = *at;
                    self.drives[*member].cut();
                }
            }
            Ending::Kill => self.drives.iter().for_each(FaultFs::end_users),
        }
    }

    fn end_quietly(
        &mut self,
        store: Store,
        harm: &Harm,
        mends: bool,
        closes: bool,
    ) -> Result<(), String> {
        if mends {
            self.mend();
            if harm.passes(self.drives.len()) {
                self.takes_writes_again(&store)?;
                let found = self.all(&store)?;
                self.explain(&found, Line::live).map_err(|wrong| format!("quiet, {wrong}"))?;
                self.tally.went_on += u64::from(harm.any);
            }
        }
        if !closes {
            self.watch.call("end of the last handle", || drop(store));
            return Ok(());
        }
        match self.watch.call("close", || store.close()) {
            Ok(Closed::Store) => self.lines.iter().for_each(|line| lock(line).synced()),
            Ok(Closed::Handle) => return Err("somebody else has it".to_owned()),
            Err(error) if mends && harm.passes(self.drives.len()) => {
                return Err(format!("all is well, and it does not close: {error:?}"));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Checks that the store takes writes again after the faults are gone, without being reopened.
    fn takes_writes_again(&self, store: &Store) -> Result<(), String> {
        let mut last = None;
        for _ in 0..STEPS {
            let synced = self.watch.call("sync when all is well", || store.sync());
            let put = || store.put_with(PROBE, b"", Durability::Group);
            let tried = synced
                .and_then(|()| self.watch.call("put when all is well", put))
                .and_then(|()| self.watch.call("compact when all is well", || store.compact()));
            match tried {
                Ok(()) => {
                    self.lines.iter().for_each(|line| lock(line).synced());
                    return Ok(());
                }
                Err(error @ (Error::ReadOnly(_) | Error::Invalid(_))) => {
                    return Err(format!("all is well again, and it takes no writes: {error:?}"));
                }
                Err(error) => last = Some(error),
            }
            pause(Duration::from_millis(5));
        }
        Err(format!("all has been well for a minute, and it takes no writes: {last:?}"))
    }

    /// Checks without faults that the store opens with all that it must have.
    fn look(&mut self, fills: bool) -> Result<(), String> {
        self.mend();
        let options = Options { capacity_bytes: self.capacity, ..self.options.clone() };
        let store =
            self.open(None, &options).map_err(|error| format!("it does not open: {error:?}"))?;
        let found = self.all(&store)?;
        self.explain(&found, Line::after_cut)?;
        for (writer, found) in (0..).zip(&found) {
            for (number, stamp) in found {
                let got = store.get(&key(writer, *number));
                let got = got.map_err(|error| format!("it cannot be read: {error:?}"))?;
                let got = got.map(|got| stamp_of(writer, *number, &got)).transpose()?;
                if got != Some(*stamp) {
                    return Err(format!(
                        "key {number} of {writer}: a range has {stamp}, a get {got:?}"
                    ));
                }
            }
        }
        self.rebase(found);
        self.watch.say("looked".to_owned());
        if fills {
            self.fill(&store)?;
        }
        let closed = self.watch.call("close when all is well", || store.close());
        closed.map_err(|error| format!("all is well, and it does not close: {error:?}"))?;
        let copies = self.drives[0].path().join("copies");
        let removed = fs::remove_dir_all(copies);
        self.is_whole = fills && removed.is_ok() | !self.drives[0].path().join("copies").exists();
        Ok(())
    }

    /// Waits until all members are complete.
    fn fill(&mut self, store: &Store) -> Result<(), String> {
        let is_whole = |(_, state): &(PathBuf, DirectoryState)| *state == DirectoryState::Whole;
        let behind = store.directories().iter().filter(|it| !is_whole(it)).count();
        self.watch.say(format!("{behind} to be filled"));
        self.tally.filled += u64::from(behind > 0);
        for _ in 0..STEPS {
            if store.directories().iter().all(is_whole) {
                let report = self.watch.call("verify", || store.verify(|_| ()));
                let report = report.map_err(|error| format!("verify: {error:?}"))?;
                if report.findings.is_empty() {
                    return Ok(());
                }
                return Err(format!("verify finds {:?}", report.findings));
            }
            pause(Duration::from_millis(5));
        }
        Err(format!("it is not filled within a minute: {:?}", store.directories()))
    }
}
