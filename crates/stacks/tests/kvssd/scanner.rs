//! A client that iterates: it must read the store as it was when the iterator was created.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Handle, Nanos, Rng};
use stacks::kvssd::{IteratorHandle, KvDrive, Pair, Status};
use testkit::trial::{Kind, Walk, World};

use crate::answers::of_status;

/// A client that reads snapshots forever.
pub(crate) struct Scanner {
    pub drive: KvDrive,
    pub handle: Handle,
    pub world: Rc<World>,
    pub rng: RefCell<Rng>,
    pub number: usize,
}

impl Scanner {
    pub(crate) async fn run(self) {
        loop {
            self.world.count_command(self.number);
            if let Err(status) = self.scan().await {
                match status {
                    Status::SnapshotTooOld => self.world.count_expired(),
                    Status::IteratorMemory | Status::TooManyIterators => {}
                    other => self.world.complain_of(of_status(other, "scan")),
                }
            }
            self.pause(2_000_000).await;
        }
    }

    async fn pause(&self, most: u64) {
        let pause = self.rng.borrow_mut().below(most);
        self.handle.sleep(Nanos(pause)).await;
    }

    /// Creates an iterator, reads random ranges, and destroys it.
    async fn scan(&self) -> Result<(), Status> {
        let before = self.world.acknowledged_all();
        let is_bounded = self.rng.borrow_mut().chance(0.3);
        let bound = is_bounded.then(|| self.random_name());
        let handle = self.drive.create_iterator(bound.as_deref()).await?;
        let mut walk = Walk::new(&self.world, &before, bound.as_deref());
        let outcome = self.walks(handle, &mut walk).await;
        // A forgotten iterator holds its snapshot until that expires.
        let is_forgotten = self.rng.borrow_mut().chance(0.1);
        if !is_forgotten || outcome.is_err() {
            self.drive.destroy_iterator(handle).await?;
            let stale = self.drive.next(handle).await;
            if stale != Err(Status::InvalidIterator) {
                let text = format!("a destroyed iterator answered {stale:?}");
                self.world.complain(Kind::Iterator, text);
            }
        }
        outcome
    }

    fn random_name(&self) -> Vec<u8> {
        let mut rng = self.rng.borrow_mut();
        let name = self.world.names.of(rng.below(self.world.keys() as u64) as usize);
        let cut = rng.below(name.len() as u64) as usize;
        name[..name.len() - cut / 2].to_vec()
    }

    async fn walks(&self, handle: IteratorHandle, walk: &mut Walk) -> Result<(), Status> {
        let walks = self.rng.borrow_mut().below(4);
        for _ in 0..=walks {
            let target = self.random_name();
            walk.seek(&target);
            let first = self.drive.seek(handle, &target).await;
            if self.meet(walk, first)? {
                continue;
            }
            let steps = self.rng.borrow_mut().below(200);
            let is_one_by_one = self.rng.borrow_mut().chance(0.5);
            if is_one_by_one {
                self.one_by_one(handle, walk, steps).await?;
            } else {
                self.in_bulk(handle, walk, steps as u32 + 1).await?;
            }
            self.pause(40_000_000).await;
        }
        Ok(())
    }

    async fn one_by_one(
        &self,
        handle: IteratorHandle,
        walk: &mut Walk,
        steps: u64,
    ) -> Result<(), Status> {
        for _ in 0..steps {
            let pair = self.drive.next(handle).await;
            if self.meet(walk, pair)? {
                break;
            }
            let rests = self.rng.borrow_mut().chance(0.05);
            if rests {
                self.pause(10_000_000).await;
            }
        }
        Ok(())
    }

    async fn in_bulk(
        &self,
        handle: IteratorHandle,
        walk: &mut Walk,
        count: u32,
    ) -> Result<(), Status> {
        let buffer = 500 + self.rng.borrow_mut().below(20_000);
        match self.drive.next_many(handle, count, buffer).await {
            Ok(batch) => {
                for pair in batch.pairs {
                    self.meet(walk, Ok(pair))?;
                }
                if batch.is_last {
                    self.meet(walk, Err(Status::EndOfRange))?;
                }
                Ok(())
            }
            Err(status) => self.meet(walk, Err(status)).map(|_| ()),
        }
    }

    /// Checks a result. Returns true at the end.
    fn meet(&self, walk: &mut Walk, answer: Result<Pair, Status>) -> Result<bool, Status> {
        self.world.count_command(self.number);
        let complaint = match answer {
            Ok(pair) => walk.meet(&pair.key, &pair.value),
            Err(Status::EndOfRange) => walk.meet_the_end().map(|()| true),
            Err(Status::AskAgain) => Ok(false),
            Err(other) => return Err(other),
        };
        Ok(complaint.unwrap_or_else(|complaint| {
            self.world.complain(Kind::Iterator, complaint);
            true
        }))
    }
}
