//! Clients. Most clients write and read; scanners iterate.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::{EngineError, LogSync};
use runtime::{Handle, Nanos, Rng};
use testkit::trial::loads::{random_key, random_sync, random_value};
use testkit::trial::{Kind, Walk, World};

use crate::shape::Load;
use crate::store::{Cursor, Pair, Store, of_error};

/// The state that clients share.
#[derive(Clone)]
pub(crate) struct Clients {
    pub store: Store,
    pub handle: Handle,
    pub world: Rc<World>,
    pub load: Rc<Load>,
    /// The default durability of writes.
    pub usual_sync: LogSync,
    /// Whether data without redundancy is damaged: then errors are correct, wrong bytes are not.
    pub may_fail: Rc<Cell<bool>>,
}

impl Clients {
    /// Starts all clients.
    pub(crate) fn start(&self, rng: &mut Rng) {
        let Load { clients, scanners, .. } = *self.load;
        let scanners = if self.store.has_order() { scanners } else { 0 };
        self.world.begin_session(clients + scanners);
        for number in 0..clients + scanners {
            let rng = RefCell::new(Rng::new(rng.next_u64()));
            let client = Client { all: self.clone(), rng, number };
            let is_scanner = number >= clients;
            self.handle.spawn("client", async move {
                if is_scanner { client.scan_for_ever().await } else { client.run().await }
            });
        }
    }

    fn complain(&self, error: &EngineError, what: &str) {
        if !self.may_fail.get() {
            self.world.complain_of(of_error(error, what));
        }
    }

    /// Reads all pairs in key order.
    pub(crate) async fn check_order(&self, when: &str) {
        let before = self.world.acknowledged_all();
        let made = match self.store.iterate(None) {
            Ok(made) => made,
            Err(error) => return self.complain(&error, when),
        };
        let Some(mut cursor) = made else { return };
        let mut walk = Walk::new(&self.world, &before, None);
        let mut pair = cursor.seek(&[0]).await;
        loop {
            match self.meet(&mut walk, pair) {
                Ok(true) => return,
                Ok(false) => pair = cursor.next().await,
                // The store needed the space that the snapshot held.
                Err(EngineError::SnapshotTooOld(_)) => return self.world.count_expired(),
                Err(error) => return self.complain(&error, when),
            }
        }
    }

    /// Checks a returned pair. Returns true at the end of the iteration.
    fn meet(
        &self,
        walk: &mut Walk,
        pair: Result<Option<Pair>, EngineError>,
    ) -> Result<bool, EngineError> {
        let met = match pair? {
            Some((key, value)) => walk.meet(&key, &value),
            None => walk.meet_the_end().map(|()| true),
        };
        Ok(met.unwrap_or_else(|complaint| {
            self.world.complain(Kind::Iterator, complaint);
            true
        }))
    }
}

struct Client {
    all: Clients,
    rng: RefCell<Rng>,
    number: usize,
}

impl Client {
    /// Writes only keys of this client, so that the history of each key is ordered. Reads any key.
    async fn run(self) {
        let (world, clients) = (&self.all.world, self.all.load.clients);
        let keys = world.keys();
        loop {
            world.count_command(self.number);
            let (dice, key) = {
                let mut rng = self.rng.borrow_mut();
                (rng.below(100), random_key(&mut rng, keys))
            };
            let own = key - key % clients + self.number;
            let own = if own < keys { own } else { self.number };
            match dice {
                0..60 => self.write(own, false).await,
                60..70 => self.write(own, true).await,
                70..98 => self.get(key).await,
                _ => self.pause(3_000_000).await,
            }
        }
    }

    async fn pause(&self, most: u64) {
        let pause = self.rng.borrow_mut().below(most);
        self.all.handle.sleep(Nanos(pause)).await;
    }

    async fn write(&self, key: usize, is_delete: bool) {
        let Clients { store, world, load, handle, .. } = &self.all;
        let (value, sync) = {
            let rng = &mut self.rng.borrow_mut();
            let longest = load.longest_value.min(store.max_value_bytes());
            let value = random_value(rng, load.usual_value, longest);
            (value, if load.draws_sync { random_sync(rng) } else { None })
        };
        let value = (!is_delete).then_some(value);
        let index = world.ask(key, value.clone());
        match store.write(&world.names.of(key), value, sync).await {
            Ok(()) => {
                world.acknowledge(key, index, sync.unwrap_or(self.all.usual_sync), handle.now());
            }
            Err(EngineError::Full(_)) if !is_delete => {
                world.refuse(key);
                world.count_refused();
            }
            Err(error) => {
                // The outcome of the write is unknown.
                self.all.complain(&error, &format!("write of key {key}"));
                handle.sleep(Nanos::from_millis(1)).await;
            }
        }
    }

    async fn get(&self, key: usize) {
        let Clients { store, world, .. } = &self.all;
        let from = world.acknowledged(key);
        match store.get(&world.names.of(key)).await {
            Ok(found) => world.check(key, from, found.as_ref(), "get"),
            Err(error) => self.all.complain(&error, &format!("get of key {key}")),
        }
    }

    async fn scan_for_ever(self) {
        loop {
            self.all.world.count_command(self.number);
            match self.scan().await {
                Ok(()) | Err(EngineError::IteratorMemory) => {}
                Err(EngineError::SnapshotTooOld(_)) => self.all.world.count_expired(),
                Err(error) => self.all.complain(&error, "scan"),
            }
            self.pause(2_000_000).await;
        }
    }

    fn random_name(&self) -> Vec<u8> {
        let (mut rng, world) = (self.rng.borrow_mut(), &self.all.world);
        let name = world.names.of(rng.below(world.keys() as u64) as usize);
        let cut = rng.below(name.len() as u64) as usize;
        name[..name.len() - cut / 2].to_vec()
    }

    /// Creates an iterator and scans from a few random keys.
    async fn scan(&self) -> Result<(), EngineError> {
        let before = self.all.world.acknowledged_all();
        let is_bounded = self.rng.borrow_mut().chance(0.3);
        let bound = is_bounded.then(|| self.random_name());
        let made = self.all.store.iterate(bound.as_deref())?;
        let mut walk = Walk::new(&self.all.world, &before, bound.as_deref());
        let mut cursor = made.expect("scanners are for stores with an order");
        let walks = 1 + self.rng.borrow_mut().below(3);
        for _ in 0..walks {
            self.walk(&mut cursor, &mut walk).await?;
            self.pause(20_000_000).await;
        }
        Ok(())
    }

    async fn walk(&self, cursor: &mut Cursor, walk: &mut Walk) -> Result<(), EngineError> {
        let target = self.random_name();
        walk.seek(&target);
        let mut pair = cursor.seek(&target).await;
        let steps = self.rng.borrow_mut().below(200);
        for _ in 0..steps {
            self.all.world.count_command(self.number);
            if self.all.meet(walk, pair)? {
                return Ok(());
            }
            pair = cursor.next().await;
        }
        self.all.meet(walk, pair).map(|_| ())
    }
}
