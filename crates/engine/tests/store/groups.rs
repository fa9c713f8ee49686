//! Groups of pages written by several tasks at the same time: each group stays together.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use engine::internals::page::PageKind;
use engine::internals::{Claimant, PageStore, page};
use engine::{PageNo, StoreId, Stream};
use runtime::{IoClass, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::cpu;

#[test]
fn groups_stay_together_whoever_writes_beside_them() {
    let rt = Runtime::new(5);
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(SHAPE), None);
    let store =
        PageStore::new(rt.handle(), medium, cpu(&rt), engine::Planted::default(), StoreId(1));
    let store = Rc::new(store);
    let written = Rc::<RefCell<Vec<(PageNo, u32)>>>::default();
    let writers = (0..3_u64).map(|writer| {
        let (store, written) = (Rc::clone(&store), Rc::clone(&written));
        let rng = &mut rt.handle().rng(&format!("writer {writer}"));
        let lengths: Vec<u32> = (0..12).map(|_| 1 + rng.below(7) as u32).collect();
        rt.handle().spawn("writer", async move {
            let page = || page::finish(page::start(PageKind::Meta, 0, 0, 0, 0));
            let groups = lengths.iter().map(|length| (0..*length).map(|_| page()).collect());
            let most = lengths.iter().map(|length| 2 * length).sum();
            let promise = store.try_promise(Stream::Index, most, Claimant::Compaction);
            let promise = promise.expect("there is room");
            let class = IoClass::CompactionWrite;
            let firsts = store.write_groups(groups.collect(), promise, class, || 0.0).await;
            let firsts = firsts.expect("nothing fails");
            written.borrow_mut().extend(firsts.into_iter().zip(lengths));
        })
    });
    let writers: Vec<_> = writers.collect();
    rt.run_until(runtime::Nanos::from_millis(500));
    assert!(writers.iter().all(runtime::JoinHandle::is_finished));
    let mut pages = BTreeSet::new();
    for (first, length) in written.borrow().iter() {
        let last = PageNo(first.0 + length - 1);
        assert_eq!(SHAPE.extent_of(*first), SHAPE.extent_of(last), "{first:?}, {length} pages");
        for page in first.0..=last.0 {
            assert!(pages.insert(page), "page {page} belongs to two");
        }
    }
    assert_eq!(written.borrow().len(), 36);
}
