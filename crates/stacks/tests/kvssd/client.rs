//! A client with a mix of all commands.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{LogSync, Value};
use runtime::{Handle, Nanos, Rng};
use stacks::kvssd::{KvDrive, Status, StoreMode, StoreOptions};
use testkit::trial::loads::{random_key, random_sync, random_value};
use testkit::trial::{Kind, World};

use crate::answers::{answer as as_answer, of_status};

/// A client that writes its own keys, so that their histories are ordered, and reads any key.
pub(crate) struct Client {
    pub drive: KvDrive,
    pub handle: Handle,
    pub world: Rc<World>,
    pub rng: RefCell<Rng>,
    pub number: usize,
    pub clients: usize,
    /// Bytes of the longest values, except rare ones.
    pub usual_value: u32,
    /// Bytes of the longest values.
    pub longest_value: u32,
    pub is_filling: bool,
    /// Acknowledgement of writes that do not specify it.
    pub usual_sync: LogSync,
    /// Whether each write specifies its acknowledgement.
    pub draws_sync: bool,
}

impl Client {
    pub(crate) async fn run(self) {
        let keys = self.world.keys();
        if self.is_filling {
            for key in (self.number..keys).step_by(self.clients) {
                self.world.count_command(self.number);
                self.store(key, StoreMode::Upsert).await;
            }
        }
        loop {
            self.world.count_command(self.number);
            let (dice, key) = {
                let mut rng = self.rng.borrow_mut();
                (rng.below(100), random_key(&mut rng, keys))
            };
            let own = key - key % self.clients + self.number;
            let own = if own < keys { own } else { self.number };
            match dice {
                0..60 => self.store(own, StoreMode::Upsert).await,
                60..64 => self.store(own, StoreMode::MustExist).await,
                64..68 => self.store(own, StoreMode::MustNotExist).await,
                68..75 => self.delete(own).await,
                75..97 => self.retrieve(key).await,
                97..99 => self.exist(key).await,
                _ => {
                    let pause = self.rng.borrow_mut().below(3_000_000);
                    self.handle.sleep(Nanos(pause)).await;
                }
            }
        }
    }

    fn random_value(&self) -> Value {
        random_value(&mut self.rng.borrow_mut(), self.usual_value, self.longest_value)
    }

    /// Returns the acknowledgement of the next write, if it specifies one.
    fn random_sync(&self) -> Option<LogSync> {
        self.draws_sync.then(|| random_sync(&mut self.rng.borrow_mut()))?
    }

    fn acknowledge(&self, key: usize, index: usize, sync: Option<LogSync>) {
        let sync = sync.unwrap_or(self.usual_sync);
        self.world.acknowledge(key, index, sync, self.handle.now());
    }

    async fn store(&self, key: usize, mode: StoreMode) {
        let value = self.random_value();
        // The outcome of a condition is unknown for a key whose state is open after a power cut.
        let exists = self.world.exists(key);
        let mode = if exists.is_none() { StoreMode::Upsert } else { mode };
        let sync = self.random_sync();
        let index = self.world.ask(key, Some(value.clone()));
        let options = StoreOptions { mode, sync };
        let outcome = self.drive.store(&self.world.names.of(key), value, options).await;
        let expected = match mode {
            StoreMode::MustExist if exists == Some(false) => Err(Status::KeyDoesNotExist),
            StoreMode::MustNotExist if exists == Some(true) => Err(Status::KeyExists),
            _ => Ok(()),
        };
        if outcome.is_ok() {
            self.acknowledge(key, index, sync);
        } else {
            self.world.refuse(key);
        }
        let is_full = outcome == Err(Status::CapacityExceeded);
        if is_full {
            self.world.count_refused();
        } else if outcome != expected {
            self.complain_of_store(key, mode, expected, outcome);
        }
    }

    fn complain_of_store(
        &self,
        key: usize,
        mode: StoreMode,
        expected: Result<(), Status>,
        outcome: Result<(), Status>,
    ) {
        let kind = match (expected, outcome) {
            (_, Err(Status::UnrecoveredError)) => Kind::Corrupt,
            (Err(Status::KeyExists), _) | (_, Err(Status::KeyDoesNotExist)) => Kind::Lost,
            (Err(Status::KeyDoesNotExist), _) | (_, Err(Status::KeyExists)) => Kind::Stale,
            _ => Kind::Refused,
        };
        self.world.complain(kind, format!("store {mode:?} of key {key}: {outcome:?}"));
    }

    async fn delete(&self, key: usize) {
        let sync = self.random_sync();
        let index = self.world.ask(key, None);
        match self.drive.delete_with(&self.world.names.of(key), sync).await {
            Ok(()) => self.acknowledge(key, index, sync),
            Err(status) => {
                let state = self.drive.engine().background();
                let what = format!("delete of key {key}; {state}");
                self.world.complain_of(of_status(status, &what));
            }
        }
    }

    async fn retrieve(&self, key: usize) {
        let from = self.world.acknowledged(key);
        let answer = self.drive.retrieve(&self.world.names.of(key), u32::MAX).await;
        self.world.check_answer(key, from, &as_answer(answer.map(|found| found.value)), "retrieve");
    }

    async fn exist(&self, key: usize) {
        let from = self.world.acknowledged(key);
        let outcome = self.drive.exist(&self.world.names.of(key)).await;
        let values = self.world.values_since(key, from);
        let may_be = |exists: bool| values.iter().any(|value| value.is_some() == exists);
        let kind = match outcome {
            Ok(()) if !may_be(true) => Kind::Stale,
            Err(Status::KeyDoesNotExist) if !may_be(false) => Kind::Lost,
            Ok(()) | Err(Status::KeyDoesNotExist) => return,
            Err(Status::UnrecoveredError) => Kind::Corrupt,
            Err(_) => Kind::Refused,
        };
        self.world.complain(kind, format!("exist of key {key}: {outcome:?}"));
    }
}
