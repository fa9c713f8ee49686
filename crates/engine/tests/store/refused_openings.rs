//! A medium that refuses to open an extent once: the state of the page store does not change, and
//! the next writer gets an open extent.

use std::rc::Rc;

use engine::internals::page::PageKind;
use engine::internals::{Apart, Claimant, PageStore, page};
use engine::{EngineError, MediumError, PageNo, StoreId, Stream};
use runtime::{IoClass, Nanos, Runtime};

use crate::memory::{Cells, Failing, MemoryMedium, SHAPE};
use crate::setup::cpu;

const REFUSED: EngineError = EngineError::Medium(MediumError::Io(5));

fn store(rt: &Runtime, failing: Failing) -> Rc<PageStore<MemoryMedium>> {
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(SHAPE), Some(failing));
    let planted = engine::Planted::default();
    Rc::new(PageStore::new(rt.handle(), medium, cpu(rt), planted, StoreId(1)))
}

fn page() -> Vec<u8> {
    page::finish(page::start(PageKind::Meta, 0, 0, 0, 0))
}

/// Writes three pages.
async fn write(
    store: &PageStore<MemoryMedium>,
    stream: Stream,
) -> Result<Vec<PageNo>, EngineError> {
    let groups = (0..3).map(|_| vec![page()]).collect();
    let promise = store.try_promise(stream, 3, Claimant::Compaction).expect("there is room");
    store.write_groups(groups, promise, IoClass::CompactionWrite, || 0.0).await
}

#[test]
fn of_two_that_write_at_a_time_one_is_refused_and_the_other_has_an_extent_that_is_open() {
    for stream in [Stream::Objects, Stream::Index] {
        let rt = Runtime::new(9);
        let store = store(&rt, Failing::Opening(stream, 0));
        let (first, second) = (Rc::clone(&store), Rc::clone(&store));
        let first = rt.handle().spawn("writer", async move { write(&first, stream).await });
        let second = rt.handle().spawn("writer", async move { write(&second, stream).await });
        rt.run_until(Nanos::from_millis(500));
        let outcomes = [first, second].map(|writer| writer.take().expect("it has ended"));
        let refused = outcomes.iter().filter(|outcome| **outcome == Err(REFUSED));
        let written = outcomes.iter().flatten().flatten();
        assert_eq!((refused.count(), written.count()), (1, 3), "{outcomes:?}");
        let extents = store.extents.borrow();
        assert_eq!((extents.in_use(stream), extents.free()), (1, SHAPE.extents as usize - 1));
        assert_eq!(extents.room(stream), SHAPE.pages_per_extent - 3);
    }
}

#[test]
fn whoever_writes_apart_may_ask_again() {
    let rt = Runtime::new(9);
    let store = store(&rt, Failing::Opening(Stream::Tables, 0));
    rt.block_on(async move {
        let need = store.need_of_tables(1, Claimant::Compaction);
        let promise = store.try_promise(need.stream, need.pages, need.claimant);
        let mut apart = Apart::new(&store, promise.expect("there is room"));
        assert_eq!(apart.push(page()), Err(REFUSED));
        assert_eq!(store.extents.borrow().free(), SHAPE.extents as usize);
        apart.push(page()).expect("it is asked for the second time");
        let stretches = apart.finish(IoClass::CompactionWrite).await.expect("nothing fails");
        assert_eq!((stretches.pages, stretches.extents.len()), (1, 1));
        assert_eq!(store.extents.borrow().in_use(Stream::Tables), 1);
    });
}
