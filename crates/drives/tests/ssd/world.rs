//! The model: for each block, the versions that a read may return.
//!
//! Writes of one block may be in flight at the same time, so versions are only partially ordered.
//! The model numbers events. A version is requested at one event and takes effect between that
//! event and its acknowledgement, or the end of the first read that returned it. Version A is
//! surely older than version B if A had taken effect when B was requested. A read must not return a
//! version if a surely newer one had taken effect when the read began; a power cut must not leave a
//! version if a surely newer one was durable.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use block::{BLOCK_BYTES, Block};
use runtime::{Nanos, mix64};

/// Event number; `NEVER` comes after all events.
type Tick = u64;
const NEVER: Tick = u64::MAX;

/// Identifies a version. Blocks that were never written, or were discarded, have no stamp in their
/// bytes.
type Stamp = u64;

/// One version of one block.
#[derive(Clone, Copy, Debug)]
struct Version {
    stamp: Stamp,
    is_zeros: bool,
    asked: Tick,
    /// The latest event by which it has taken effect, if it ever does.
    latest: Tick,
    /// The event by which it has certainly taken effect, and replaced earlier versions. A discard
    /// may be ignored.
    sure: Tick,
    /// The event of its command's acknowledgement.
    acknowledged: Tick,
    /// Whether it was durable when it was acknowledged.
    is_forced: bool,
    /// Whether it is one of the versions that a power cut may have left.
    is_candidate: bool,
}

impl Version {
    /// Initial version of a block.
    const INITIAL: Self = Self {
        stamp: 0,
        is_zeros: true,
        asked: 0,
        latest: 0,
        sure: 0,
        acknowledged: 0,
        is_forced: false,
        is_candidate: false,
    };

    fn content(&self) -> Stamp {
        if self.is_zeros { 0 } else { self.stamp }
    }

    fn is_before(&self, other: &Self) -> bool {
        other.asked > self.latest
    }
}

/// A command of a client in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Read { set: u16, first: u64, blocks: u32 },
    Write { set: u16, first: u64, blocks: u32 },
    Discard { set: u16, first: u64, blocks: u64 },
    Flush { set: u16 },
    Window { set: u16 },
}

/// A command in flight, and its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub command: Command,
    pub since: Nanos,
    began: Tick,
}

/// The model of one set.
struct SetModel {
    blocks: Vec<Vec<Version>>,
    /// Versions acknowledged before this event are durable.
    durable_before: Tick,
}

/// The model of a drive, and the state of its clients.
pub(crate) struct World {
    has_capacitors: bool,
    sets: RefCell<Vec<SetModel>>,
    tick: Cell<Tick>,
    stamps: Cell<Stamp>,
    complaint: RefCell<Option<String>>,
    under_way: RefCell<Vec<Option<UnderWay>>>,
    pub commands: Cell<u64>,
    /// Whether clients stop after their current command.
    pub is_over: Cell<bool>,
    /// By set: whether clients do not write at present.
    pub is_quiet: Vec<Cell<bool>>,
    /// The place that clients hammer.
    pub hammered: Cell<u64>,
}

impl World {
    pub(crate) fn new(sets: u16, blocks: u64, has_capacitors: bool) -> Rc<Self> {
        let new = |_| SetModel {
            blocks: vec![vec![Version::INITIAL]; blocks as usize],
            durable_before: 0,
        };
        Rc::new(Self {
            has_capacitors,
            sets: RefCell::new((0..sets).map(new).collect()),
            tick: Cell::new(0),
            stamps: Cell::new(0),
            complaint: RefCell::default(),
            under_way: RefCell::default(),
            commands: Cell::new(0),
            is_over: Cell::new(false),
            is_quiet: (0..sets).map(|_| Cell::new(false)).collect(),
            hammered: Cell::new(0),
        })
    }

    /// Returns the start event of a read outside any client.
    pub(crate) fn now(&self) -> Tick {
        self.next_tick()
    }

    fn next_tick(&self) -> Tick {
        self.tick.set(self.tick.get() + 1);
        self.tick.get()
    }

    pub(crate) fn complain(&self, what: String) {
        self.complaint.borrow_mut().get_or_insert(what);
    }

    pub(crate) fn result(&self) -> Result<(), String> {
        self.complaint.borrow().clone().map_or(Ok(()), Err)
    }

    /// Starts a session with that many clients.
    pub(crate) fn begin_session(&self, clients: usize, hammered: u64) {
        self.hammered.set(hammered);
        *self.under_way.borrow_mut() = vec![None; clients];
        self.is_over.set(false);
        self.is_quiet.iter().for_each(|quiet| quiet.set(false));
    }

    /// Notes that client number `client` begins a command.
    pub(crate) fn begin(&self, client: usize, command: Command, since: Nanos) -> Tick {
        let began = self.next_tick();
        self.under_way.borrow_mut()[client] = Some(UnderWay { command, since, began });
        self.commands.set(self.commands.get() + 1);
        began
    }

    pub(crate) fn end(&self, client: usize) {
        self.under_way.borrow_mut()[client] = None;
    }

    /// Returns the command that has been in flight longest.
    pub(crate) fn longest(&self) -> Option<(usize, UnderWay)> {
        let under_way = self.under_way.borrow();
        let all = under_way.iter().enumerate().filter_map(|(client, one)| Some((client, (*one)?)));
        all.min_by_key(|(_, one)| one.since)
    }

    pub(crate) fn new_stamp(&self) -> Stamp {
        self.stamps.set(self.stamps.get() + 1);
        self.stamps.get()
    }

    /// Notes that a write (or, with zeros, a discard) of these blocks begins: it may take effect
    /// from now on.
    pub(crate) fn ask(&self, set: u16, first: u64, blocks: u64, stamp: Stamp, is_zeros: bool) {
        let asked = self.next_tick();
        let oldest = self.under_way.borrow().iter().flatten().map(|one| one.began).min();
        let oldest = oldest.unwrap_or(asked);
        let (latest, sure, acknowledged) = (NEVER, NEVER, NEVER);
        let version =
            Version { stamp, is_zeros, asked, latest, sure, acknowledged, ..Version::INITIAL };
        self.each(set, first, blocks, |model, versions| {
            versions.push(version);
            if versions.len() > 8 {
                self.prune(model, versions, oldest);
            }
        });
    }

    /// Drops versions that neither a read nor a power cut may return any more.
    fn prune(&self, durable_before: Tick, versions: &mut Vec<Version>, oldest: Tick) {
        let is_behind_all =
            |version: &&Version| version.sure < oldest && self.is_durable(durable_before, version);
        let Some(newest) = versions.iter().filter(is_behind_all).map(|v| v.asked).max() else {
            return;
        };
        versions.retain(|version| version.latest >= newest);
    }

    fn is_durable(&self, durable_before: Tick, version: &Version) -> bool {
        let is_sure = version.sure != NEVER;
        let is_acknowledged = version.acknowledged != NEVER;
        let is_safe = self.has_capacitors || version.is_forced;
        is_sure && is_acknowledged && (is_safe || version.acknowledged < durable_before)
    }

    /// Notes the acknowledgement of a command. `is_sure`: false for a discard that may have been
    /// ignored.
    pub(crate) fn acknowledge(
        &self,
        set: u16,
        first: u64,
        blocks: u64,
        stamp: Stamp,
        is_sure: bool,
    ) {
        let now = self.next_tick();
        self.each(set, first, blocks, |_, versions| {
            let version = versions.iter_mut().find(|version| version.stamp == stamp);
            let version = version.expect("what is under way is not forgotten");
            version.acknowledged = now;
            version.latest = version.latest.min(now);
            if is_sure {
                version.sure = version.sure.min(now);
            }
        });
    }

    /// Notes that an acknowledged write was forced: a power cut must not undo it.
    pub(crate) fn forced(&self, set: u16, first: u64, blocks: u64, stamp: Stamp) {
        self.each(set, first, blocks, |_, versions| {
            let version = versions.iter_mut().find(|version| version.stamp == stamp);
            version.expect("what was just acknowledged is not forgotten").is_forced = true;
        });
    }

    /// Notes that a flush that began at `began` was acknowledged.
    pub(crate) fn flushed(&self, set: u16, began: Tick) {
        let model = &mut self.sets.borrow_mut()[usize::from(set)];
        model.durable_before = model.durable_before.max(began);
    }

    fn each(
        &self,
        set: u16,
        first: u64,
        blocks: u64,
        mut change: impl FnMut(Tick, &mut Vec<Version>),
    ) {
        let SetModel { blocks: all, durable_before } =
            &mut self.sets.borrow_mut()[usize::from(set)];
        for versions in &mut all[first as usize..(first + blocks) as usize] {
            change(*durable_before, versions);
        }
    }

    /// Checks the result `found` of a read that began at `began`.
    pub(crate) fn check(&self, set: u16, first: u64, began: Tick, found: &[Block], when: &str) {
        let now = self.next_tick();
        for (block, found) in (first..).zip(found) {
            let Some(content) = decode(found, set, block) else {
                self.complain(format!(
                    "{when}: block {block} of set {set} has strange bytes: {:?}",
                    &found.bytes()[..found.bytes().len().min(32)]
                ));
                return;
            };
            self.each(set, block, 1, |_, versions| {
                if !observe(versions, content, began, now) {
                    self.complain(format!(
                        "{when}: block {block} of set {set} has version {content} at {now}, read \
                         since {began}; its history: {}",
                        History(versions)
                    ));
                }
            });
        }
    }

    /// Notes a power cut: each block keeps one of the versions that were not replaced for certain.
    pub(crate) fn power_cut(&self) {
        let now = self.next_tick();
        for model in &mut *self.sets.borrow_mut() {
            let durable_before = model.durable_before;
            for versions in &mut model.blocks {
                settle(versions, now, |version| self.is_durable(durable_before, version));
            }
        }
    }
}

/// Notes that a read returned `content`. Returns false if that is a wrong version.
fn observe(versions: &mut Vec<Version>, content: Stamp, began: Tick, now: Tick) -> bool {
    let is_gone = |version: &Version| {
        versions.iter().any(|other| version.is_before(other) && other.sure < began)
    };
    let allowed = |(_, version): &(usize, &Version)| {
        version.content() == content && version.asked < now && !is_gone(version)
    };
    let mut matching = versions.iter().enumerate().filter(allowed).map(|(at, _)| at);
    let Some(at) = matching.next() else { return false };
    if matching.next().is_some() {
        // Zeros: it is unknown of which version.
        return true;
    }
    let version = &mut versions[at];
    version.latest = version.latest.min(now);
    version.sure = version.sure.min(now);
    if std::mem::take(&mut version.is_candidate) {
        versions.retain(|version| !version.is_candidate);
    }
    true
}

fn settle(versions: &mut Vec<Version>, now: Tick, is_durable: impl Fn(&Version) -> bool) {
    let all = versions.clone();
    let is_gone =
        |version: &Version| all.iter().any(|other| version.is_before(other) && is_durable(other));
    versions.retain(|version| !is_gone(version));
    let mut has_zeros = false;
    versions.retain(|version| !version.is_zeros || !std::mem::replace(&mut has_zeros, true));
    assert!(!versions.is_empty(), "something is left of every block");
    for version in &mut *versions {
        let Version { stamp, is_zeros, .. } = *version;
        *version = Version {
            stamp,
            is_zeros,
            asked: now,
            latest: now,
            sure: now,
            acknowledged: now,
            is_forced: false,
            is_candidate: true,
        };
    }
    if let [only] = versions.as_mut_slice() {
        only.is_candidate = false;
    }
}

/// The versions of a block, for display.
struct History<'a>(&'a [Version]);

impl fmt::Display for History<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for version in self.0 {
            let Version { asked, latest, sure, acknowledged, .. } = *version;
            let until = |tick: Tick| if tick == NEVER { "-".to_owned() } else { tick.to_string() };
            write!(f, "[{} asked {asked} latest {}", version.content(), until(latest))?;
            write!(f, " sure {} acknowledged {}", until(sure), until(acknowledged))?;
            write!(f, "{}]", if version.is_candidate { " candidate" } else { "" })?;
        }
        Ok(())
    }
}

const SHORT: u8 = 1;
const FULL: u8 = 2;
const HEADER_BYTES: usize = 15;

/// Encodes a version: the bytes identify it, and a full block is filled to its end.
pub(crate) fn encode(stamp: Stamp, set: u16, block: u64, is_full: bool) -> Block {
    let mut bytes = Vec::with_capacity(if is_full { BLOCK_BYTES as usize } else { HEADER_BYTES });
    bytes.extend_from_slice(&stamp.to_le_bytes());
    bytes.extend_from_slice(&set.to_le_bytes());
    bytes.extend_from_slice(&(block as u32).to_le_bytes());
    bytes.push(if is_full { FULL } else { SHORT });
    if is_full {
        bytes.resize(BLOCK_BYTES as usize, mix64(stamp ^ block) as u8 | 1);
    }
    Block::new(&bytes)
}

/// Returns the stamp of a version, 0 for zeros; `None` if the bytes are not those of a version of
/// this block.
fn decode(found: &Block, set: u16, block: u64) -> Option<Stamp> {
    let bytes = found.bytes();
    if bytes.is_empty() {
        return Some(0);
    }
    let stamp = u64::from_le_bytes(*bytes.first_chunk()?);
    let is_full = *bytes.get(HEADER_BYTES - 1)? == FULL;
    (*found == encode(stamp, set, block, is_full)).then_some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: UnderWay =
        UnderWay { command: Command::Flush { set: 0 }, since: Nanos::ZERO, began: 0 };

    fn read(world: &World, began: Tick, stamp: Stamp) -> Result<(), String> {
        let block = if stamp == 0 { Block::ZERO } else { encode(stamp, 0, 0, false) };
        world.check(0, 0, began, &[block], "read");
        world.complaint.borrow_mut().take().map_or(Ok(()), Err)
    }

    fn write(world: &World) -> Stamp {
        let stamp = world.new_stamp();
        world.ask(0, 0, 1, stamp, false);
        stamp
    }

    fn written(world: &World) -> Stamp {
        let stamp = write(world);
        world.acknowledge(0, 0, 1, stamp, true);
        stamp
    }

    #[test]
    fn a_read_returns_what_was_newest_or_became_so_meanwhile() {
        let world = World::new(1, 1, true);
        let one = written(&world);
        let began = world.next_tick();
        let two = write(&world);
        assert!(read(&world, began, one).is_ok() && read(&world, began, 0).is_err());
        assert!(read(&world, began, two).is_ok());
        let later = world.next_tick();
        assert!(read(&world, later, one).is_err(), "somebody has seen the newer one already");
        assert!(read(&world, began, one).is_ok(), "this read began earlier");
        world.acknowledge(0, 0, 1, two, true);
        assert!(read(&world, world.next_tick(), two).is_ok());
        assert!(read(&world, world.next_tick(), 77).is_err(), "nobody wrote that");
    }

    #[test]
    fn writes_under_way_at_the_same_time_have_no_order() {
        let world = World::new(1, 1, true);
        let (one, two) = (write(&world), write(&world));
        world.acknowledge(0, 0, 1, two, true);
        world.acknowledge(0, 0, 1, one, true);
        assert!(read(&world, world.next_tick(), one).is_ok());
        assert!(read(&world, world.next_tick(), two).is_ok());
        assert!(read(&world, world.next_tick(), 0).is_err());
    }

    #[test]
    fn capacitors_leave_what_was_acknowledged_or_under_way() {
        for survivor in 0..2 {
            let world = World::new(1, 1, true);
            written(&world);
            let stamps = [written(&world), write(&world)];
            world.power_cut();
            let began = world.next_tick();
            assert!(read(&world, began, 1).is_err());
            assert!(read(&world, began, stamps[survivor]).is_ok());
            assert!(read(&world, began, stamps[1 - survivor]).is_err(), "it has been settled");
        }
    }

    #[test]
    fn without_capacitors_a_flush_divides() {
        let world = World::new(1, 1, false);
        let stamps = [written(&world), written(&world)];
        let flush = world.next_tick();
        let late = written(&world);
        world.flushed(0, flush);
        world.power_cut();
        assert!(read(&world, world.next_tick(), stamps[0]).is_err());
        world.power_cut();
        assert!(read(&world, world.next_tick(), stamps[1]).is_ok());
        assert!(read(&world, world.next_tick(), late).is_err());
    }

    #[test]
    fn an_ignored_discard_hides_nothing() {
        let world = World::new(1, 1, true);
        let one = written(&world);
        let discard = world.new_stamp();
        world.ask(0, 0, 1, discard, true);
        world.acknowledge(0, 0, 1, discard, false);
        assert!(read(&world, world.next_tick(), one).is_ok());
        let two = written(&world);
        assert!(read(&world, world.next_tick(), 0).is_err());
        assert!(read(&world, world.next_tick(), two).is_ok());
    }

    #[test]
    fn what_may_still_be_read_is_not_forgotten() {
        let world = World::new(1, 1, true);
        world.begin_session(1, 0);
        world.under_way.borrow_mut()[0] = Some(UnderWay { began: world.next_tick(), ..FIRST });
        let first = written(&world);
        (0..30).for_each(|_| _ = written(&world));
        let began = world.under_way.borrow()[0].map_or(0, |one| one.began);
        assert!(read(&world, began, first).is_ok());
        world.end(0);
        (0..30).for_each(|_| _ = written(&world));
        assert!(world.sets.borrow()[0].blocks[0].len() <= 9);
    }
}
