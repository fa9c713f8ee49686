//! A store in memory with random delays that lies on request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::Value;
use runtime::{Handle, Nanos, Rng, Runtime};
use workload::{
    ClientOptions, CoreWorkload, KvIterator, KvTarget, Pair, RunReport, Session, builtin,
};

/// The lie of a store.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Lie {
    None,
    /// A Get sometimes returns the previous value.
    Stale,
    /// A Put is sometimes acknowledged but not executed.
    LostWrite,
    /// A Get sometimes returns the value of the previous key.
    WrongKey,
    /// A Get sometimes returns no value.
    Missing,
    /// Deletes are acknowledged but not executed.
    Undeleted,
    /// A value sometimes has a changed byte, or is too short.
    Damaged,
    /// Every operation fails after this number of operations.
    FullAfter(u64),
    /// Iterators return wrong pairs.
    Scan(ScanLie),
}

/// The lie of an iterator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ScanLie {
    /// Sometimes a key is skipped.
    Skips,
    /// Sometimes the scan ends too early.
    EndsEarly,
    /// Sometimes a key is returned twice.
    Repeats,
    /// Sometimes two keys are swapped.
    Swaps,
    /// Sometimes a deleted key is returned with its former value.
    ShowsDeleted,
    /// The iterator reads the current store instead of a snapshot.
    NoSnapshot,
    /// Every second key is read as of the iterator's request, the others as of a later time.
    Torn,
    /// Sometimes a key is returned with its previous value.
    Stale,
    /// Sometimes a key is returned with the value of the next one.
    WrongValue,
    /// Sometimes a Seek moves to the previous key.
    SeeksBelow,
    /// The bound is ignored.
    Boundless,
    /// Sometimes a key is returned that was never written.
    Invents,
    /// Bulk reads return one pair too many.
    GivesMore,
}

type Pairs = BTreeMap<Vec<u8>, [Option<Value>; 2]>;

/// A linearizable store, if it does not lie: every operation takes effect at one instant between
/// its begin and its end, with random delays before and after.
#[derive(Clone)]
pub(crate) struct Store {
    handle: Handle,
    inner: Rc<Inner>,
}

struct Inner {
    /// The last two values of every key; snapshots share them until they change.
    values: RefCell<Rc<Pairs>>,
    rng: RefCell<Rng>,
    lie: Lie,
    longest: Nanos,
    operations: Cell<u64>,
    under_way: Cell<usize>,
    most_under_way: Cell<usize>,
    iterators: Cell<u64>,
    open_iterators: Cell<u64>,
}

impl Store {
    pub(crate) fn new(handle: Handle, lie: Lie, longest: Nanos) -> Self {
        let rng = RefCell::new(handle.rng("store"));
        let inner = Inner {
            values: RefCell::default(),
            rng,
            lie,
            longest,
            operations: Cell::new(0),
            under_way: Cell::new(0),
            most_under_way: Cell::new(0),
            iterators: Cell::new(0),
            open_iterators: Cell::new(0),
        };
        Self { handle, inner: Rc::new(inner) }
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.inner.most_under_way.get()
    }

    /// Returns the iterators created, and those of them not destroyed.
    pub(crate) fn iterators(&self) -> (u64, u64) {
        (self.inner.iterators.get(), self.inner.open_iterators.get())
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.values.borrow().len()
    }

    async fn take_time(&self) {
        let time = self.inner.rng.borrow_mut().below(self.inner.longest.0 + 1);
        self.handle.sleep(Nanos(time)).await;
    }

    async fn begin(&self) -> Result<(), String> {
        let inner = &self.inner;
        inner.operations.set(inner.operations.get() + 1);
        inner.under_way.set(inner.under_way.get() + 1);
        inner.most_under_way.set(inner.most_under_way.get().max(inner.under_way.get()));
        self.take_time().await;
        match inner.lie {
            Lie::FullAfter(most) if inner.operations.get() > most => Err("full".to_owned()),
            _ => Ok(()),
        }
    }

    async fn end(&self) {
        self.take_time().await;
        self.inner.under_way.set(self.inner.under_way.get() - 1);
    }

    /// Returns whether to lie now.
    fn lies(&self, lie: Lie) -> bool {
        self.inner.lie == lie && self.inner.rng.borrow_mut().chance(0.02)
    }

    fn look_up(&self, key: &[u8]) -> Option<Value> {
        let values = self.inner.values.borrow();
        let [last, before] = values.get(key)?.clone();
        if self.lies(Lie::Stale) && before.is_some() {
            return before;
        }
        if self.lies(Lie::WrongKey)
            && let Some((_, [other, _])) = values.range(..key.to_vec()).next_back()
        {
            return other.clone();
        }
        if self.lies(Lie::Missing) {
            return None;
        }
        if self.lies(Lie::Damaged) {
            let mut bytes = last?.to_bytes().to_vec();
            if self.inner.rng.borrow_mut().chance(0.5) {
                bytes.pop();
            } else {
                let at = self.inner.rng.borrow_mut().below(bytes.len() as u64);
                bytes[at as usize] ^= 0x10;
            }
            return Some(Value::from_bytes(&bytes));
        }
        last
    }

    fn change(&self, key: &[u8], value: Option<Value>) {
        let mut values = self.inner.values.borrow_mut();
        let last_two = Rc::make_mut(&mut values).entry(key.to_vec()).or_default();
        last_two.rotate_right(1);
        last_two[0] = value;
    }
}

impl KvTarget for Store {
    type Error = String;
    type Iterator = StoreIterator;

    async fn get(&self, key: &[u8]) -> Result<Option<Value>, String> {
        self.begin().await?;
        let value = self.look_up(key);
        self.end().await;
        Ok(value)
    }

    async fn put(&self, key: &[u8], value: Value) -> Result<(), String> {
        self.begin().await?;
        if !self.lies(Lie::LostWrite) {
            self.change(key, Some(value));
        }
        self.end().await;
        Ok(())
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, String> {
        self.begin().await?;
        let existed = self.inner.values.borrow().get(key).is_some_and(|two| two[0].is_some());
        if self.inner.lie != Lie::Undeleted {
            self.change(key, None);
        }
        self.end().await;
        Ok(existed)
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        None
    }

    async fn create_iterator(&self, upper_bound: Option<&[u8]>) -> Result<StoreIterator, String> {
        self.begin().await?;
        let mut snapshot = Rc::clone(&self.inner.values.borrow());
        if self.inner.lie == Lie::Scan(ScanLie::Torn) {
            self.handle.sleep(self.inner.longest * 4).await;
            let later = self.inner.values.borrow();
            let halves = later.iter().filter(|(key, _)| key.last().is_some_and(|end| end % 2 == 0));
            Rc::make_mut(&mut snapshot).extend(halves.map(|(key, two)| (key.clone(), two.clone())));
        }
        self.inner.iterators.set(self.inner.iterators.get() + 1);
        self.inner.open_iterators.set(self.inner.open_iterators.get() + 1);
        self.end().await;
        let upper_bound = upper_bound.map(<[u8]>::to_vec);
        Ok(StoreIterator { store: self.clone(), snapshot, upper_bound, from: None, held: None })
    }
}

/// A snapshot, and an iterator's position in it.
pub(crate) struct StoreIterator {
    store: Store,
    snapshot: Rc<Pairs>,
    upper_bound: Option<Vec<u8>>,
    /// The next pair is the first whose key is not below this; `None` before the first Seek.
    from: Option<Vec<u8>>,
    /// A pair to return first.
    held: Option<Pair>,
}

impl StoreIterator {
    fn lies(&self, lie: ScanLie) -> bool {
        self.store.lies(Lie::Scan(lie))
    }

    fn tells(&self, lie: ScanLie) -> bool {
        self.store.inner.lie == Lie::Scan(lie)
    }

    /// Returns the next pair of the snapshot, and moves past it.
    fn step(&mut self) -> Option<Pair> {
        let live;
        let pairs = if self.tells(ScanLie::NoSnapshot) {
            live = Rc::clone(&self.store.inner.values.borrow());
            &*live
        } else {
            &*self.snapshot
        };
        let from = self.from.clone().expect("a Seek comes first");
        for (key, [last, before]) in pairs.range(from..) {
            let is_beyond = self.upper_bound.as_ref().is_some_and(|bound| bound <= key);
            if is_beyond && !self.tells(ScanLie::Boundless) {
                return None;
            }
            let value = match last {
                Some(_) if before.is_some() && self.lies(ScanLie::Stale) => before,
                None if before.is_some() && self.lies(ScanLie::ShowsDeleted) => before,
                last => last,
            };
            let Some(value) = value.clone() else { continue };
            self.from = Some([key.as_slice(), &[0]].concat());
            return Some(Pair { key: key.as_slice().into(), value });
        }
        None
    }

    /// Returns the next pair, or a lie.
    fn advance(&mut self) -> Option<Pair> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if self.lies(ScanLie::Skips) {
            self.step()?;
        }
        if self.lies(ScanLie::EndsEarly) {
            return None;
        }
        let mut pair = self.step()?;
        if self.lies(ScanLie::Repeats) {
            self.held = Some(pair.clone());
        }
        if self.lies(ScanLie::Swaps)
            && let Some(next) = self.step()
        {
            self.held = Some(pair);
            return Some(next);
        }
        if self.lies(ScanLie::WrongValue)
            && let Some((_, [other, _])) = self.snapshot.range(self.from.clone()?..).next()
        {
            pair.value = other.clone()?;
        }
        if self.lies(ScanLie::Invents) {
            *pair.key.last_mut()? ^= 0x40;
        }
        Some(pair)
    }

    async fn reply<R>(&self, reply: R) -> Result<R, String> {
        self.store.begin().await?;
        self.store.end().await;
        Ok(reply)
    }
}

impl KvIterator for StoreIterator {
    type Error = String;

    async fn seek(&mut self, target: &[u8]) -> Result<Option<Pair>, String> {
        let below = self.snapshot.range(..target.to_vec()).next_back().map(|(key, _)| key.clone());
        self.from = Some(match below {
            Some(below) if self.lies(ScanLie::SeeksBelow) => below,
            _ => target.to_vec(),
        });
        let pair = self.advance();
        self.reply(pair).await
    }

    async fn next(&mut self) -> Result<Option<Pair>, String> {
        let pair = self.advance();
        self.reply(pair).await
    }

    async fn next_many(&mut self, count: usize) -> Result<Vec<Pair>, String> {
        let count = if self.tells(ScanLie::GivesMore) { count + 1 } else { count };
        let pairs = std::iter::from_fn(|| self.advance()).take(count).collect();
        self.reply(pairs).await
    }

    async fn destroy(self) -> Result<(), String> {
        self.store.inner.open_iterators.set(self.store.inner.open_iterators.get() - 1);
        self.reply(()).await
    }
}

/// Returns a built-in workload with some properties changed.
pub(crate) fn workload(name: &str, overrides: &[&str]) -> CoreWorkload {
    let mut properties = builtin(name).unwrap();
    for assignment in overrides {
        properties.set_assignment(assignment).unwrap();
    }
    CoreWorkload::from_properties(&properties).unwrap()
}

/// Results of a load and a run on a store.
pub(crate) struct Trial {
    pub(crate) load: RunReport,
    pub(crate) run: RunReport,
    pub(crate) trace_hash: u64,
    pub(crate) store: Store,
}

/// Loads with 16 clients, then runs with `options`.
pub(crate) fn trial(seed: u64, lie: Lie, workload: CoreWorkload, options: ClientOptions) -> Trial {
    let runtime = Runtime::new(seed);
    let handle = runtime.handle();
    let store = Store::new(handle.clone(), lie, Nanos::from_micros(50));
    let target = store.clone();
    let mut session = Session::new(handle.clone(), target, workload, seed).unwrap();
    let (load, run) = runtime.block_on(async move {
        let load = session.load(&ClientOptions::closed(16), |_, _| {}).await.unwrap();
        (load, session.run(&options, |_, _| {}).await.unwrap())
    });
    Trial { load, run, trace_hash: handle.trace_hash(), store }
}
