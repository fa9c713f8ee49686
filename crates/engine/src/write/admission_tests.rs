//! Tests of admission without a flush: a write that waits for a flush waits forever, a refused
//! write returns.

use std::cell::Cell;
use std::future::{pending, ready};
use std::rc::Rc;

use runtime::{Cores, IoClass, Nanos, PageImage, Runtime};

use super::batch::BatchWrite;
use super::{Admission, Front, Index};
use crate::effort::CpuCosts;
use crate::error::{EngineError, UsedUp};
use crate::format::object::Sequence;
use crate::format::page::StoreId;
use crate::format::value::Value;
use crate::manifest::Manifest;
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use crate::memtable::MemtableLimits;
use crate::operations::{BatchOptions, Fullness, WriteOptions};
use crate::planted::Planted;
use crate::space::{Cpu, Lack, NO_ROOM, PageStore};
use crate::wal::LogSync;

/// A medium that stores nothing.
struct Nowhere;

impl Medium for Nowhere {
    fn shape(&self) -> Shape {
        Shape {
            payload_bytes: 1072,
            page_bytes: 1024,
            pages_per_extent: 16,
            extents: 60,
            grows_to: 0,
            append_unit: 1,
            parallelism: 1,
        }
    }

    fn open(&self, _: ExtentId, _: u64, _: Stream) -> Result<(), MediumError> {
        Ok(())
    }

    fn append(
        &self,
        _: PageNo,
        _: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        pending()
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        pending()
    }

    fn read(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        ready(Err(MediumError::Unreadable(page)))
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        _: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        let numbers = (first.0..first.0 + pages).map(PageNo);
        ready(numbers.map(|page| Err(MediumError::Unreadable(page))).collect())
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, _: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        ready(Ok(0))
    }

    fn release(&self, _: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Ok(()))
    }

    fn wear(&self, extent: ExtentId, _: Stream) -> u32 {
        extent.0
    }
}

/// An index that always admits.
struct Silent;

impl Index for Silent {
    async fn exists(&self, _: &[u8], _: Nanos) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn admits_put(&self) -> Admission {
        Admission::Now
    }

    fn admits_delete(&self) -> Admission {
        Admission::Now
    }

    fn wants_flush(&self) -> bool {
        false
    }

    fn newest_snapshot(&self) -> Option<Sequence> {
        None
    }
}

/// The limit of writes in a memtable.
const ENTRIES: usize = 12;

fn front(rt: &Runtime) -> Rc<Front<Nowhere>> {
    let cores = Rc::new(Cores::new(rt.handle(), 1, Nanos(10_000)));
    let cpu = Cpu { cores, costs: CpuCosts::FREE };
    let store = PageStore::new(rt.handle(), Nowhere, cpu, Planted::default(), StoreId(7));
    let limits = MemtableLimits {
        entries: ENTRIES,
        bytes: 8 << 10,
        index_pages: 1,
        checkpoint_bytes: 0,
        frozen: 1,
        leaves_room: true,
    };
    Rc::new(Front::new(Rc::new(store), limits))
}

fn deletes(count: u64) -> Vec<BatchWrite> {
    (0..count).map(|n| (n.to_be_bytes().into(), None)).collect()
}

/// Returns a batch with more deletes than puts.
fn exchange(count: u64) -> Vec<BatchWrite> {
    let mut batch = deletes(count);
    batch[0].1 = Some(Value::from_bytes(&[7; 20]));
    batch
}

const MAKES_ROOM: BatchOptions = BatchOptions { sync: None, makes_room: true };

/// Deletes a different key at each call.
async fn delete(front: &Front<Nowhere>) -> Result<bool, EngineError> {
    let key = format!("key {}", front.writes());
    front.write(&Silent, key.as_bytes(), None, WriteOptions::default(), Nanos::ZERO).await
}

/// Freezes one memtable and fills the active one, so that it has room for one write less than a
/// batch of `batch` writes.
async fn fill_up_to(front: &Front<Nowhere>, batch: usize) {
    for _ in 0..2 * ENTRIES - (batch - 1) {
        delete(front).await.expect("there is room");
    }
}

/// Returns the outcome of a batch that finds too little room in the memtables, after `say` has set
/// the state; `None` if it waits.
fn outcome(
    batch: Vec<BatchWrite>,
    say: impl Fn(&Front<Nowhere>),
) -> Option<Result<(), EngineError>> {
    let rt = Runtime::new(1);
    let front = front(&rt);
    let own = Rc::clone(&front);
    let client = rt.handle().spawn("client", async move {
        fill_up_to(&own, batch.len()).await;
        own.write_batch(&Silent, batch, MAKES_ROOM, Nanos::ZERO).await
    });
    rt.run_until(Nanos::from_millis(10));
    assert!(!client.is_finished(), "there is no room for it");
    say(&front);
    rt.run_until(Nanos::from_millis(20));
    client.is_finished().then(|| rt.block_on(client))
}

#[test]
fn a_batch_that_the_memtables_do_not_take_is_told_of_a_full_disk() {
    let lack = |front: &Front<Nowhere>| front.set_lack(Lack { journal: false, others: true });
    for batch in [deletes(5), exchange(5)] {
        assert_eq!(outcome(batch.clone(), |_| {}), None, "a flush would make room");
        assert_eq!(outcome(batch, lack), Some(Err(NO_ROOM)));
    }
}

#[test]
fn a_batch_that_the_memtables_do_not_take_is_refused_where_nothing_can_be_flushed() {
    let is_stuck = |front: &Front<Nowhere>| front.set_fullness(Fullness::Stuck);
    for batch in [deletes(5), exchange(5)] {
        let refused = EngineError::Full(UsedUp::Space);
        assert_eq!(outcome(batch, is_stuck), Some(Err(refused)));
    }
}

#[test]
fn what_fits_is_taken_from_a_full_disk_and_by_a_store_that_is_stuck() {
    let (lack, is_stuck) = (Lack { journal: false, others: true }, Fullness::Stuck);
    for (lack, fullness) in [(lack, Fullness::Room), (Lack::default(), is_stuck)] {
        let rt = Runtime::new(1);
        let front = front(&rt);
        rt.block_on(async move {
            fill_up_to(&front, 5).await;
            front.set_lack(lack);
            front.set_fullness(fullness);
            for count in [3, 1] {
                let batch = deletes(count);
                let written = front.write_batch(&Silent, batch, MAKES_ROOM, Nanos::ZERO).await;
                assert_eq!(written, Ok(()), "{count}");
            }
        });
    }
}

#[test]
fn a_full_log_refuses_deletes_where_nothing_can_be_flushed() {
    let rt = Runtime::new(1);
    let front = front(&rt);
    front.begin(&Manifest::new(Vec::new()), LogSync::None);
    front.store.set_aside[Stream::Log as usize].set(0);
    let own = Rc::clone(&front);
    let client = rt.handle().spawn("client", async move { delete(&own).await });
    rt.run_until(Nanos::from_millis(10));
    assert!(!client.is_finished(), "a flush would make room");
    front.set_fullness(Fullness::Stuck);
    rt.run_until(Nanos::from_millis(20));
    assert!(client.is_finished(), "it waits for a flush");
    assert_eq!(rt.block_on(client), Err(EngineError::Full(UsedUp::Space)));
}

/// Puts a short value.
async fn put(front: &Front<Nowhere>) -> Result<bool, EngineError> {
    let value = Some(Value::from_bytes(&[7; 20]));
    front.write(&Silent, b"a", value, WriteOptions::default(), Nanos::ZERO).await
}

#[test]
fn a_refused_put_has_the_collector_look_again_if_there_were_writes_and_not_too_often() {
    let rt = Runtime::new(1);
    let front = front(&rt);
    let (handle, looks) = (rt.handle(), Rc::new(Cell::new(0)));
    let (own, counted) = (Rc::clone(&front), Rc::clone(&looks));
    rt.handle().spawn("collector", async move {
        loop {
            own.store.work.notified().await;
            counted.set(counted.get() + 1);
        }
    });
    rt.block_on(async move {
        front.set_fullness(Fullness::Full(UsedUp::Space));
        let refused = async |times: u32| {
            for _ in 0..times {
                put(&front).await.expect_err("it is full");
                handle.sleep(Nanos::from_millis(1)).await;
            }
            looks.replace(0)
        };
        assert_eq!(refused(5).await, 1, "nobody has written since");
        handle.sleep(Nanos::from_millis(2_000)).await;
        assert_eq!(refused(5).await, 0, "nobody has written since");
        delete(&front).await.expect("there is room");
        assert_eq!(refused(5).await, 1);
        delete(&front).await.expect("there is room");
        assert_eq!(refused(5).await, 0, "it has just looked");
        handle.sleep(Nanos::from_millis(1_000)).await;
        assert_eq!(refused(5).await, 1);
    });
}
