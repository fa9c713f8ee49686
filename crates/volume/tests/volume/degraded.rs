//! Behaviour of a volume with a missing member, step by step.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Cores, Handle, IoClass, Nanos, PageImage, Runtime};
use volume::{Layout, Options, Planted, Progress, Setup, Volume, VolumeError};

use crate::memory::{Disk, MemoryMedium};

const SHAPE: Shape = Shape {
    payload_bytes: 512,
    page_bytes: 512,
    pages_per_extent: 9,
    extents: 4,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};

type Disks = Vec<Rc<RefCell<Disk>>>;

fn disks(members: u64) -> Disks {
    (0..members).map(|seed| Rc::new(RefCell::new(Disk::new(SHAPE, true, seed)))).collect()
}

/// A shape for media with a frontier: a unit is two pages, and an extent is a header and four
/// units.
const IN_ORDER: Shape = Shape { pages_per_extent: 10, append_unit: 2, ..SHAPE };

fn disk_in_order(seed: u64) -> Rc<RefCell<Disk>> {
    Rc::new(RefCell::new(Disk::new(IN_ORDER, false, seed)))
}

fn setup(handle: &Handle, disks: &Disks, layout: Layout) -> Setup<MemoryMedium> {
    Setup {
        handle: handle.clone(),
        cores: Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000))),
        members: disks.iter().map(|disk| MemoryMedium::new(handle, disk)).collect(),
        options: Options { refill_bytes_per_second: 1_000_000, ..Options::new(layout, 7) },
        planted: Planted::default(),
    }
}

async fn fill_extent(volume: &Volume<MemoryMedium>, extent: u32) {
    let shape = volume.shape();
    volume.open(ExtentId(extent), 1, Stream::Objects).expect("it opens");
    for row in 0..shape.pages_per_extent / shape.append_unit {
        let first = shape.page(ExtentId(extent), row * shape.append_unit);
        let pages = (0..shape.append_unit).map(|at| PageImage::new(&[1, (first.0 + at) as u8]));
        volume.append(first, pages.collect(), IoClass::Flush).await.expect("it is written");
    }
    volume.sync(Stream::Objects).await.expect("it is synced");
}

/// Checks that every page of the first extent has the written bytes.
async fn assert_all_readable(volume: &Volume<MemoryMedium>) {
    for page in (0..volume.shape().pages_per_extent).map(PageNo) {
        let found = volume.read(page, IoClass::ClientRead).await;
        assert!(starts_with(&found, page), "page {}: {found:?}", page.0);
    }
}

fn starts_with(found: &Result<PageImage, MediumError>, page: PageNo) -> bool {
    found.as_ref().is_ok_and(|image| image.bytes().starts_with(&[1, page.0 as u8]))
}

#[test]
fn a_lost_member_is_rebuilt_and_a_second_loss_is_told() {
    let (rt, disks) = (Runtime::new(1), disks(3));
    let volume = Volume::create(setup(&rt.handle(), &disks, Layout::Parity { chunk_pages: 2 }));
    let volume = volume.expect("they fit");
    rt.block_on(async move {
        fill_extent(&volume, 1).await;
        let pages = volume.shape().pages_per_extent;
        let first = volume.shape().page(ExtentId(1), 0);
        disks[0].borrow_mut().is_gone = true;
        let run = volume.read_run(first, pages, IoClass::ClientRead).await;
        assert!((first.0..).map(PageNo).zip(&run).all(|(page, found)| starts_with(found, page)));
        assert_eq!(volume.failed_members(), [0]);
        assert!(volume.stats().rebuilt_reads > 0);
        disks[1].borrow_mut().is_gone = true;
        let run = volume.read_run(first, pages, IoClass::ClientRead).await;
        for (page, found) in (first.0..).map(PageNo).zip(&run) {
            let is_gone = matches!(found, Err(MediumError::Gone));
            assert!(is_gone || starts_with(found, page), "{found:?}");
        }
        assert_eq!(volume.open(ExtentId(2), 2, Stream::Log), Err(MediumError::Gone));
    });
}

#[test]
fn a_page_that_was_wrong_is_rebuilt_though_its_member_was_replaced_since() {
    for (layout, members) in [(Layout::Parity { chunk_pages: 2 }, 3), (Layout::Mirrored, 2)] {
        let (rt, disks) = (Runtime::new(1), disks(members));
        let volume = Volume::create(setup(&rt.handle(), &disks, layout)).expect("they fit");
        let handle = rt.handle();
        rt.block_on(async move {
            fill_extent(&volume, 0).await;
            for place in 1..SHAPE.pages_per_extent {
                assert!(disks[0].borrow_mut().flip(place), "a stripe is written there");
            }
            let mut page = PageNo(0);
            while starts_with(&volume.read(page, IoClass::ClientRead).await, page) {
                page.0 += 1;
            }
            let fresh = Rc::new(RefCell::new(Disk::new(SHAPE, true, 9)));
            volume.replace(0, MemoryMedium::new(&handle, &fresh)).expect("it is alike");
            let rebuilt = volume.read_versions(page, IoClass::ClientRead).await;
            let rebuilt = rebuilt.into_iter().next().ok_or(MediumError::Gone);
            assert!(starts_with(&rebuilt, page), "{layout:?}: {rebuilt:?}");
        });
    }
}

#[test]
fn a_fresh_member_is_filled_at_its_rate() {
    let (rt, disks) = (Runtime::new(1), disks(3));
    let volume = Volume::create(setup(&rt.handle(), &disks, Layout::Parity { chunk_pages: 2 }));
    let (volume, handle) = (volume.expect("they fit"), rt.handle());
    rt.block_on(async move {
        fill_extent(&volume, 0).await;
        fill_extent(&volume, 2).await;
        let fresh = Rc::new(RefCell::new(Disk::new(SHAPE, true, 9)));
        volume.replace(1, MemoryMedium::new(&handle, &fresh)).expect("it is alike");
        assert_eq!(volume.progress(1), Some(Progress { extent: None, done: 0, of: 8 }));
        let begun = handle.now();
        volume.filled().await;
        assert_eq!(volume.progress(1), None);
        // Eight chunks of 1,024 bytes at 1 MB/s; the volume does not wait after the last one.
        let span = handle.now().saturating_since(begun);
        assert!(span >= Nanos::from_micros(7 * 1_024), "{span:?}");
        assert_eq!(volume.stats().refilled_bytes, 8 * 1_024);
        disks[0].borrow_mut().is_gone = true;
        for page in (0..volume.shape().pages_per_extent).map(PageNo) {
            assert!(starts_with(&volume.read(page, IoClass::ClientRead).await, page));
        }
    });
}

#[test]
fn members_that_are_not_in_their_place_are_refused() {
    let disks = disks(3);
    let layout = Layout::Parity { chunk_pages: 2 };
    let rt = Runtime::new(1);
    let volume = Volume::create(setup(&rt.handle(), &disks, layout)).expect("they fit");
    rt.block_on(async move { fill_extent(&volume, 0).await });
    let recover = |disks: &Disks, layout, id| {
        let rt = Runtime::new(2);
        let mut setup = setup(&rt.handle(), disks, layout);
        setup.options.id = id;
        rt.block_on(async move { Volume::recover(setup).await.map(|_| ()) })
    };
    assert_eq!(recover(&disks, layout, 7), Ok(()));
    assert_eq!(recover(&disks, layout, 8), Err(VolumeError::Foreign { member: 0 }));
    assert_eq!(recover(&disks, Layout::Mirrored, 7), Err(VolumeError::Foreign { member: 0 }));
    let swapped = vec![Rc::clone(&disks[1]), Rc::clone(&disks[0]), Rc::clone(&disks[2])];
    assert_eq!(recover(&swapped, layout, 7), Err(VolumeError::Swapped { member: 0, says: 1 }));
}

#[test]
fn a_unit_that_was_torn_while_its_member_was_filled_is_filled_again() {
    let layout = Layout::Parity { chunk_pages: 2 };
    let mut disks: Disks = (0..3).map(disk_in_order).collect();
    let fresh = disk_in_order(3);
    let rt = Runtime::new(1);
    let volume = Volume::create(setup(&rt.handle(), &disks, layout)).expect("they fit");
    let (handle, into) = (rt.handle(), Rc::clone(&fresh));
    let filled = rt.handle().spawn("fill", async move {
        fill_extent(&volume, 0).await;
        volume.replace(1, MemoryMedium::new(&handle, &into)).expect("it is alike");
        volume.filled().await;
    });
    // The place of the second stripe.
    let second = IN_ORDER.append_unit * 2;
    rt.run_until_true(|| fresh.borrow().writes_behind(second) || filled.is_finished());
    assert!(!filled.is_finished(), "it was filled too fast for the test");
    drop(rt);
    disks[1] = fresh;
    for disk in &disks {
        disk.borrow_mut().tear();
    }
    assert!(disks[1].borrow().at(second).is_none() && disks[1].borrow().at(second + 1).is_some());
    let rt = Runtime::new(2);
    let setup = setup(&rt.handle(), &disks, layout);
    rt.block_on(async move {
        let volume = Volume::recover(setup).await.expect("it is this volume");
        volume.begin_filling();
        volume.filled().await;
        disks[0].borrow_mut().is_gone = true;
        assert_all_readable(&volume).await;
    });
}

#[test]
fn a_hole_stays_where_filling_it_would_cost_the_only_copy_of_a_page() {
    let layout = Layout::Parity { chunk_pages: 2 };
    let disks: Disks = (0..3).map(disk_in_order).collect();
    let rt = Runtime::new(1);
    let volume = Volume::create(setup(&rt.handle(), &disks, layout)).expect("they fit");
    rt.block_on(async move { fill_extent(&volume, 0).await });
    // A page of the last unit of one member, and a page of the first stripe of another.
    disks[1].borrow_mut().unreadable.insert(IN_ORDER.pages_per_extent - 1);
    disks[0].borrow_mut().unreadable.insert(IN_ORDER.append_unit);
    let rt = Runtime::new(2);
    let setup = setup(&rt.handle(), &disks, layout);
    rt.block_on(async move {
        let volume = Volume::recover(setup).await.expect("it is this volume");
        volume.begin_filling();
        assert_eq!(volume.stats().stale_extents, 0);
        volume.filled().await;
        assert_all_readable(&volume).await;
    });
}

#[test]
fn what_looks_torn_is_not_emptied_while_another_member_takes_no_writes() {
    let layout = Layout::Parity { chunk_pages: 2 };
    let disks: Disks = (0..3).map(disk_in_order).collect();
    let rt = Runtime::new(1);
    let volume = Volume::create(setup(&rt.handle(), &disks, layout)).expect("they fit");
    rt.block_on(async move { fill_extent(&volume, 0).await });
    disks[1].borrow_mut().unreadable.insert(IN_ORDER.pages_per_extent - 1);
    disks[0].borrow_mut().is_read_only = true;
    let rt = Runtime::new(2);
    let (handle, setup) = (rt.handle(), setup(&rt.handle(), &disks, layout));
    rt.block_on(async move {
        let volume = Volume::recover(setup).await.expect("it is this volume");
        volume.begin_filling();
        assert_eq!(volume.failed_members(), [0], "it says so before anything is decided");
        assert_eq!((volume.stats().stale_extents, volume.stats().kept_holes), (0, 1));
        volume.replace(0, MemoryMedium::new(&handle, &disk_in_order(9))).expect("it is alike");
        volume.filled().await;
        let shape = volume.shape();
        for page in (0..shape.pages_per_extent - shape.append_unit).map(PageNo) {
            let found = volume.read(page, IoClass::ClientRead).await;
            assert!(starts_with(&found, page), "page {}: {found:?}", page.0);
        }
    });
}

#[test]
fn nothing_is_written_where_a_member_that_does_not_answer_may_have_something_else() {
    let disks: Disks = (0..2).map(disk_in_order).collect();
    let recover = |seed| {
        let rt = Runtime::new(seed);
        let setup = setup(&rt.handle(), &disks, Layout::Mirrored);
        rt.block_on(async move {
            let volume = Volume::recover(setup).await.expect("it is this volume");
            volume.begin_filling();
            volume.frontier(ExtentId(0)).await.expect("it is known")
        })
    };
    let rt = Runtime::new(1);
    let volume = Volume::create(setup(&rt.handle(), &disks, Layout::Mirrored)).expect("they fit");
    rt.block_on(async move {
        let shape = volume.shape();
        volume.open(ExtentId(0), 1, Stream::Log).expect("it opens");
        for row in 0..2 {
            let pages = vec![PageImage::new(&[1, row as u8]); shape.append_unit as usize];
            let first = shape.page(ExtentId(0), row * shape.append_unit);
            volume.append(first, pages, IoClass::Journal).await.expect("it is written");
            if row == 0 {
                volume.sync(Stream::Log).await.expect("it is synced");
            }
        }
    });
    // One member keeps the second stripe, the other one loses it.
    disks[0].borrow_mut().tear();
    disks[1].borrow_mut().forget_unsynced();
    disks[0].borrow_mut().is_gone = true;
    let all = IN_ORDER.pages_per_extent - IN_ORDER.append_unit;
    assert_eq!(recover(2), all, "the extent counts as full");
    disks[0].borrow_mut().come_back();
    assert_eq!(recover(3), 2 * IN_ORDER.append_unit, "both have the second stripe again");
}
