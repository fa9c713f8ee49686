//! A device with simple timing and a simple stream, for the tests of this module.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect, WindowStatus};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use runtime::{Handle, IoClass, JoinHandle, Nanos, Semaphore};

use crate::block_sizes::Sizes;
use crate::operation::Direction;
use crate::plan::StreamPlan;

/// The duration of each operation.
pub(super) const SERVICE: Nanos = Nanos::from_micros(10);
/// Blocks of each of the two sets.
pub(super) const BLOCKS: u64 = 1_000;

pub(super) fn set(number: u16) -> SetId {
    SetId::new(number).expect("not zero")
}

/// Returns a stream of reads in order, for tests to change.
pub(super) fn stream_plan() -> StreamPlan {
    StreamPlan {
        name: "stream".to_owned(),
        sets: vec![(set(1), 0)],
        parts: std::iter::once(0..100).collect(),
        sizes: Sizes::One(1).into(),
        directions: vec![Direction::Read],
        distribution: None,
        has_map: false,
        read_share: 1.0,
        trim_share: 0.0,
        writes_what_it_trims: false,
        replay: None,
        clients: 1,
        rates: None,
        thinks: None,
        waits_for: Vec::new(),
        counts_from_there: false,
        delay: Nanos::ZERO,
        duration: None,
        operations: u64::MAX,
        blocks: u64::MAX,
        loops: None,
        flush_every: None,
    }
}

/// A device of two sets with `servers` operations at a time, each in [`SERVICE`].
#[derive(Clone)]
pub(super) struct Fake {
    handle: Handle,
    /// One permit per server: while a test holds the last one, no operation proceeds.
    pub servers: Semaphore,
    blocks: Rc<RefCell<BTreeMap<(SetId, u64), Block>>>,
    /// Writes that are still kept; later writes are lost.
    pub loses_after: Rc<Cell<u64>>,
    /// Reads fail from this time.
    pub fails_at: Rc<Cell<Nanos>>,
    /// The requests, in order.
    pub asked: Rc<RefCell<Vec<&'static str>>>,
}

impl Fake {
    pub(super) fn new(handle: &Handle, servers: usize) -> Self {
        Self {
            handle: handle.clone(),
            servers: Semaphore::new(servers),
            blocks: Rc::default(),
            loses_after: Rc::new(Cell::new(u64::MAX)),
            fails_at: Rc::new(Cell::new(Nanos::MAX)),
            asked: Rc::default(),
        }
    }

    /// Executes a request once a server is free, even if nothing awaits the request, and returns
    /// `result`.
    fn serve<T: 'static>(
        &self,
        what: &'static str,
        result: impl FnOnce(&Self) -> T + 'static,
    ) -> JoinHandle<T> {
        let fake = self.clone();
        self.handle.spawn("serve", async move {
            fake.asked.borrow_mut().push(what);
            let _server = fake.servers.acquire(1).await;
            fake.handle.sleep(SERVICE).await;
            result(&fake)
        })
    }

    fn keep(&self, set: SetId, first: u64, blocks: Vec<Block>) {
        let left = self.loses_after.get();
        if left > 0 {
            self.loses_after.set(left - 1);
            let numbered = (first..).zip(blocks).map(|(number, block)| ((set, number), block));
            self.blocks.borrow_mut().extend(numbered);
        }
    }

    fn find(&self, set: SetId, first: u64, blocks: u32) -> Result<Vec<Block>, DeviceError> {
        if self.handle.now() >= self.fails_at.get() {
            return Err(DeviceError::Unreadable { set, block: first });
        }
        let all = self.blocks.borrow();
        let of = |block| all.get(&(set, block)).cloned().unwrap_or(Block::ZERO);
        Ok((first..first + u64::from(blocks)).map(of).collect())
    }
}

impl BlockDevice for Fake {
    fn sets(&self) -> Vec<SetShape> {
        let shape = |number| SetShape {
            id: set(number),
            blocks: BLOCKS,
            optimal_write_bytes: 4_096,
            has_windows: number == 1,
        };
        vec![shape(1), shape(2)]
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        _class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        self.serve("read", move |fake| fake.find(set, first, blocks))
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        _class: IoClass,
        _force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.serve("write", move |fake| {
            fake.keep(set, first, blocks);
            Ok(())
        })
    }

    fn flush(&self, _set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.serve("flush", |_| Ok(()))
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.serve("discard", move |fake| {
            let range = first..first + blocks;
            fake.blocks.borrow_mut().retain(|(of, block), _| *of != set || !range.contains(block));
            Ok(())
        })
    }

    fn configure_plm(
        &self,
        _set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.serve(if config.enabled { "plm on" } else { "plm off" }, |_| Ok(()))
    }

    fn select_window(
        &self,
        _set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.serve(if window == WindowSelect::Dtwin { "to DTWIN" } else { "to NDWIN" }, |_| Ok(()))
    }

    fn plm_log(
        &self,
        _set: SetId,
        _retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        let estimate = std::num::NonZeroU64::new(7);
        self.serve("log", move |_| {
            Ok(PerSetLog {
                status: WindowStatus::Ndwin,
                lockdown_estimate_us: estimate,
                ..PerSetLog::default()
            })
        })
    }
}
