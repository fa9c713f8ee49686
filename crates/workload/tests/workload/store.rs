//! A store in memory that takes its time, and tells lies on request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::Value;
use runtime::{Handle, Nanos, Rng, Runtime};
use workload::{ClientOptions, CoreWorkload, KvTarget, RunReport, Session, builtin};

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Lie {
    None,
    /// Now and then a Get returns the value before the last.
    Stale,
    /// Now and then a Put is acknowledged and not done.
    LostWrite,
    /// Now and then a Get returns the value of the key before.
    WrongKey,
    /// Now and then a Get returns nothing.
    Missing,
    /// Deletes are acknowledged and not done.
    Undeleted,
    /// Now and then a value comes back with a byte changed, or too short.
    Damaged,
    /// Every operation fails after so many.
    FullAfter(u64),
}

/// A linearizable store if it does not lie: every operation takes effect at one instant between its
/// begin and its end, after a time and before another that are drawn.
#[derive(Clone)]
pub(crate) struct Store {
    handle: Handle,
    inner: Rc<Inner>,
}

struct Inner {
    /// The last two values of every key.
    values: RefCell<BTreeMap<Vec<u8>, [Option<Value>; 2]>>,
    rng: RefCell<Rng>,
    lie: Lie,
    longest: Nanos,
    operations: Cell<u64>,
    under_way: Cell<usize>,
    most_under_way: Cell<usize>,
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
        };
        Self { handle, inner: Rc::new(inner) }
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.inner.most_under_way.get()
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

    /// Whether to tell the lie now.
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
        let last_two = values.entry(key.to_vec()).or_default();
        last_two.rotate_right(1);
        last_two[0] = value;
    }
}

impl KvTarget for Store {
    type Error = String;

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
}

/// A built-in workload with some properties changed.
pub(crate) fn workload(name: &str, overrides: &[&str]) -> CoreWorkload {
    let mut properties = builtin(name).unwrap();
    for assignment in overrides {
        properties.set_assignment(assignment).unwrap();
    }
    CoreWorkload::from_properties(&properties).unwrap()
}

/// What a load and a run on a store gave.
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
