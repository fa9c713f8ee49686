//! Clients of a trial: the commands they send to the drive, and their reports to the model.

use std::cell::RefCell;
use std::rc::Rc;

use block::{BlockDevice, DeviceError, Force};
use drives::ssd::Ssd;
use runtime::{Handle, IoClass, Nanos, Rng};

use crate::harness::{ClientIo, set_id};
use crate::world::{Command, World, encode};

/// Most blocks of a read or write.
const MOST: u64 = 32;

/// Kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A mix of all operations.
    Mixed,
    /// Sequential reads.
    Reader,
    /// Repeated reads of the same few blocks.
    Hammer,
}

/// One client of one set.
pub(crate) struct Client {
    pub ssd: Ssd,
    pub handle: Handle,
    pub world: Rc<World>,
    pub rng: RefCell<Rng>,
    pub number: usize,
    pub set: u16,
    pub blocks: u64,
}

impl Client {
    pub(crate) async fn run(self, kind: Kind) {
        while !self.world.is_over.get() {
            match kind {
                Kind::Mixed => self.do_something().await,
                Kind::Reader => self.read_in_order().await,
                Kind::Hammer => self.hammer().await,
            }
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng.borrow_mut().below(bound)
    }

    /// Returns a range of up to `most` blocks. Half of all ranges are in a sixteenth of the set.
    fn place(&self, most: u64) -> (u64, u64) {
        let rng = &mut *self.rng.borrow_mut();
        let all = if rng.chance(0.5) { self.blocks / 16 } else { self.blocks }.max(1);
        let most = if rng.chance(0.5) { 1 } else { most.min(all) };
        let count = rng.below(most) + 1;
        (rng.below(all - count + 1), count)
    }

    async fn do_something(&self) {
        let is_quiet = self.world.is_quiet[usize::from(self.set)].get();
        let dice = if is_quiet { 50 + self.below(25) } else { self.below(100) };
        match dice {
            0..50 => {
                let (first, count) = self.place(MOST);
                self.write(first, count).await;
            }
            50..74 => {
                let (first, count) = self.place(MOST);
                self.read(first, count).await;
            }
            74 => self.handle.sleep(Nanos(self.below(2_000_000))).await,
            75..82 => {
                let most = if self.below(10) == 0 { self.blocks } else { 100 };
                let (first, count) = self.place(most);
                self.discard(first, count).await;
            }
            82..88 => self.flush().await,
            88 => self.write_in_order().await,
            _ => {
                let (first, count) = self.place(4);
                self.write(first, count).await;
            }
        }
    }

    async fn read_in_order(&self) {
        let (mut at, step) = (self.below(self.blocks), self.below(8) + 1);
        for _ in 0..self.below(100) {
            let count = step.min(self.blocks - at);
            if count == 0 || self.world.is_over.get() {
                return;
            }
            self.read(at, count).await;
            at += count;
        }
    }

    async fn write_in_order(&self) {
        let (mut at, step) = (self.below(self.blocks), self.below(MOST) + 1);
        for _ in 0..self.below(20) {
            let count = step.min(self.blocks - at);
            let is_quiet = self.world.is_quiet[usize::from(self.set)].get();
            if count == 0 || is_quiet || self.world.is_over.get() {
                return;
            }
            self.write(at, count).await;
            at += count;
        }
    }

    async fn hammer(&self) {
        let place = self.world.hammered.get() % self.blocks;
        for _ in 0..100 {
            self.read(place, 1).await;
        }
        self.handle.sleep(Nanos(self.below(3) * 100_000)).await;
    }

    fn begin(&self, command: Command) -> u64 {
        self.world.begin(self.number, command, self.handle.now())
    }

    pub(crate) async fn read(&self, first: u64, count: u64) {
        let (set, blocks) = (self.set, count as u32);
        let began = self.begin(Command::Read { set, first, blocks });
        match self.ssd.client_read(set_id(set), first, blocks).await {
            Ok(found) if found.len() as u64 == count => {
                self.world.check(set, first, began, &found, "read");
            }
            other => self.complain("read", &other.map(|found| found.len())),
        }
        self.world.end(self.number);
    }

    async fn write(&self, first: u64, count: u64) {
        let set = self.set;
        self.begin(Command::Write { set, first, blocks: count as u32 });
        let stamp = self.world.new_stamp();
        let is_full = self.below(8) == 0;
        let blocks = (first..first + count).map(|block| encode(stamp, set, block, is_full));
        self.world.ask(set, first, count, stamp, false);
        let force = if self.below(12) == 0 { Force::Unit } else { Force::No };
        let write = self.ssd.write(set_id(set), first, blocks.collect(), IoClass::Flush, force);
        match write.await {
            Ok(()) => {
                self.world.acknowledge(set, first, count, stamp, true);
                if force == Force::Unit {
                    self.world.forced(set, first, count, stamp);
                }
            }
            other => self.complain("write", &other),
        }
        self.world.end(self.number);
    }

    async fn discard(&self, first: u64, count: u64) {
        let set = self.set;
        self.begin(Command::Discard { set, first, blocks: count });
        let stamp = self.world.new_stamp();
        self.world.ask(set, first, count, stamp, true);
        let ignored =
            || self.ssd.report(set_id(set)).map(|report| report.firmware.discards_ignored);
        let before = ignored();
        match self.ssd.discard(set_id(set), first, count).await {
            Ok(()) => self.world.acknowledge(set, first, count, stamp, before == ignored()),
            other => self.complain("discard", &other),
        }
        self.world.end(self.number);
    }

    async fn flush(&self) {
        let set = self.set;
        let began = self.begin(Command::Flush { set });
        match self.ssd.flush(set_id(set)).await {
            Ok(()) => self.world.flushed(set, began),
            other => self.complain("flush", &other),
        }
        self.world.end(self.number);
    }

    fn complain<T: std::fmt::Debug>(&self, what: &str, outcome: &Result<T, DeviceError>) {
        self.world.complain(format!("{what} of set {}: {outcome:?}", self.set));
    }
}
