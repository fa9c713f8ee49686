//! State that must be remembered: a member is replaced while another is behind, two members are
//! replaced, or a path is away for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::{
    Engine, ExtentId, Medium, MediumError, OpenError, PageNo, Shape, Stream, Value, WriteOptions,
};
use runtime::{Cores, First, Handle, IoClass, Nanos, PageImage, Runtime, first};
use volume::{Layout, Options, Planted, Setup, Volume, header};

use crate::memory::{Command, Disk, Fails, MemoryMedium};
use crate::store::tree_setup;

type Memory = Volume<MemoryMedium>;

const PARITY: Layout = Layout::Parity { chunk_pages: 2 };

/// The shape of members that hold a store.
const LARGE: Shape = Shape {
    payload_bytes: 4_096,
    page_bytes: 4_096,
    pages_per_extent: 33,
    extents: 40,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};

/// A small shape: an extent is a header and four stripes.
const SMALL: Shape =
    Shape { payload_bytes: 512, page_bytes: 512, pages_per_extent: 9, extents: 2, ..LARGE };

/// `ETIMEDOUT`.
const TIMED_OUT: i32 = 110;

const EXTENT: ExtentId = ExtentId(0);

/// The members of a volume, and its layout.
struct World {
    layout: Layout,
    shape: Shape,
    disks: Vec<Rc<RefCell<Disk>>>,
}

impl World {
    fn new(layout: Layout, shape: Shape, members: u64) -> Self {
        let disk = |seed| Rc::new(RefCell::new(Disk::new(shape, true, seed)));
        Self { layout, shape, disks: (0..members).map(disk).collect() }
    }

    fn disk(&self, member: usize) -> std::cell::RefMut<'_, Disk> {
        self.disks[member].borrow_mut()
    }

    fn replace(&self, member: usize) {
        *self.disk(member) = Disk::new(self.shape, true, 100 + member as u64);
    }

    fn content(&self, member: usize) -> BTreeMap<u32, Vec<u8>> {
        self.disk(member).content()
    }

    fn setup(&self, handle: &Handle) -> Setup<MemoryMedium> {
        Setup {
            handle: handle.clone(),
            cores: cores(handle),
            members: self.disks.iter().map(|disk| MemoryMedium::new(handle, disk)).collect(),
            options: Options::new(self.layout, 7),
            planted: Planted::default(),
        }
    }

    /// Runs the volume, and ends its process.
    fn run<F: Future<Output = ()> + 'static>(
        &self,
        seed: u64,
        what: impl FnOnce(Handle, Memory) -> F + 'static,
    ) {
        let rt = Runtime::new(seed);
        let (handle, setup) = (rt.handle(), self.setup(&rt.handle()));
        rt.block_on(async move {
            let volume = Volume::recover(setup).await.expect("they are its own");
            what(handle, volume).await;
        });
        drop(rt);
        self.disks.iter().for_each(|disk| disk.borrow_mut().tear());
    }

    /// Returns the members that are behind before any is filled.
    fn behind_at_opening(&self) -> Vec<usize> {
        let rt = Runtime::new(9);
        let setup = self.setup(&rt.handle());
        rt.block_on(async move {
            Volume::recover(setup).await.expect("they are its own").members_behind()
        })
    }

    /// Opens a store that [`Self::run_store`] wrote, and reads all of it.
    fn read_store(&self, seed: u64, writes: u64) -> Result<(), OpenError> {
        let rt = Runtime::new(seed);
        let (handle, setup) = (rt.handle(), self.setup(&rt.handle()));
        rt.block_on(async move {
            let volume = Volume::recover(setup).await.expect("they are its own");
            let engine = Engine::open(tree_setup(&handle, &cores(&handle), &volume)).await?;
            for key in 0..writes {
                let found = engine.get(&key.to_be_bytes(), Nanos::ZERO).await.expect("it is read");
                assert!(found.value.is_some(), "key {key} was acknowledged");
            }
            Ok(())
        })
    }

    /// Opens a store, writes to it, and drops it.
    fn run_store(&self, seed: u64, writes: u64) -> Result<(), OpenError> {
        let rt = Runtime::new(seed);
        let (handle, setup) = (rt.handle(), self.setup(&rt.handle()));
        let opened = rt.block_on(async move {
            let volume = Volume::recover(setup).await.expect("they are its own");
            let tree = tree_setup(&handle, &cores(&handle), &volume);
            let engine = Engine::open(tree).await?;
            engine.begun().await.expect("it is written");
            volume.note_tenures().await;
            for key in 0..writes {
                let value = Value::Synthetic { seed: key, len: 100 };
                let name = key.to_be_bytes();
                let put = engine.put(&name, value, WriteOptions::default(), Nanos::ZERO);
                put.await.expect("it is taken");
            }
            engine.sync().await.expect("it is synced");
            Ok(())
        });
        drop(rt);
        self.disks.iter().for_each(|disk| disk.borrow_mut().tear());
        opened
    }
}

fn cores(handle: &Handle) -> Rc<Cores> {
    Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)))
}

/// Writes all stripes of the extent, and syncs them.
async fn write_all(volume: &Memory) {
    volume.open(EXTENT, 1, Stream::Objects).expect("enough members are there");
    for row in 0..volume.shape().pages_per_extent / volume.shape().append_unit {
        write_row(volume, row).await;
    }
    volume.sync(Stream::Objects).await.expect("it is synced");
}

async fn write_row(volume: &Memory, row: u32) {
    let unit = volume.shape().append_unit;
    let pages = (row * unit..(row + 1) * unit).map(|page| PageImage::new(&[page as u8 + 1; 8]));
    let written = volume.append(PageNo(row * unit), pages.collect(), IoClass::Journal);
    written.await.expect("it is written");
}

/// Reads all pages. Returns those that could not be read.
async fn unreadable(volume: &Memory) -> Vec<u32> {
    let mut failed = Vec::new();
    for page in 0..volume.shape().pages_per_extent {
        match volume.read(PageNo(page), IoClass::ClientRead).await {
            Ok(image) => assert!(image.bytes().starts_with(&[page as u8 + 1; 8]), "page {page}"),
            Err(_) => failed.push(page),
        }
    }
    failed
}

/// Writes the store without the first member, which comes back after the last member was replaced.
fn refused_without_what_one_missed(world: &World, runs: u64) {
    world.disk(0).is_gone = true;
    for run in 0..runs {
        world.run_store(2 + run, 300).expect("one may be missing");
    }
    world.disk(0).come_back();
    world.replace(2);
    let before = [0, 1].map(|member| world.content(member));
    let opened = world.run_store(99, 0);
    assert!(opened.is_err(), "{runs} runs: it was opened, and what only one has is not there");
    let is_same = before == [0, 1].map(|member| world.content(member));
    assert!(is_same, "{runs} runs: something was written");
}

#[test]
fn a_store_written_without_one_member_is_refused_when_another_one_was_replaced() {
    for runs in [1, 2, 8] {
        // The first member was absent from the start, or for a time.
        refused_without_what_one_missed(&World::new(PARITY, LARGE, 3), runs);
        let world = World::new(PARITY, LARGE, 3);
        world.run_store(1, 300).expect("it is new");
        refused_without_what_one_missed(&world, runs);
    }
}

#[test]
fn a_store_of_which_two_members_were_replaced_is_refused() {
    for runs in [1, 2] {
        let world = World::new(PARITY, LARGE, 3);
        for run in 0..runs {
            world.run_store(run, 300).expect("all are there");
        }
        world.replace(1);
        world.replace(2);
        let before = world.content(0);
        assert!(world.run_store(9, 0).is_err(), "{runs} runs: it was opened as a new one");
        assert!(before == world.content(0), "{runs} runs: something was written");
    }
}

#[test]
fn a_member_in_doubt_keeps_what_it_may_have_alone() {
    for place in 1..SMALL.pages_per_extent {
        let world = World::new(PARITY, SMALL, 3);
        world.run(1, |_, volume| async move { write_all(&volume).await });
        world.disk(0).unreadable.insert(place);
        world.disk(1).fails.push(Fails { command: Command::Read, after: 0, times: u64::MAX });
        let second = Rc::clone(&world.disks[1]);
        world.run(2, move |_, volume| async move {
            volume.begin_filling();
            volume.filled().await;
            second.borrow_mut().fails.clear();
            assert_eq!(unreadable(&volume).await, [], "place {place}");
        });
    }
}

/// The last member was replaced, and `is_away` switches failures of the others' reads. Checks that
/// none of the members it is filled from counts as failed, and that no page is lost.
fn filled_while_away(layout: Layout, members: u64, is_away: fn(&mut Disk, bool)) {
    let world = World::new(layout, SMALL, members);
    world.run(1, |_, volume| async move { write_all(&volume).await });
    let (first, last) = (Rc::clone(&world.disks[0]), members as usize - 1);
    world.replace(last);
    let others: Vec<_> = world.disks[..last].iter().map(Rc::clone).collect();
    // With mirrors all other members are away.
    let away = if layout == Layout::Mirrored { others.clone() } else { vec![first] };
    world.run(2, move |handle, volume| async move {
        for disk in &away {
            is_away(&mut disk.borrow_mut(), true);
        }
        volume.begin_filling();
        handle.sleep(Nanos::from_millis(20_000)).await;
        let lost: [usize; 0] = [];
        assert_eq!(volume.failed_members(), lost, "{layout:?}: no command of it has failed");
        for disk in &away {
            is_away(&mut disk.borrow_mut(), false);
        }
        volume.filled().await;
        assert_eq!(volume.failed_members(), lost, "{layout:?}");
        assert_eq!(volume.members_behind(), lost, "{layout:?}: it is filled later");
        assert_eq!(volume.stats().lost_pages, 0, "{layout:?}");
        others[0].borrow_mut().is_gone = true;
        assert_eq!(unreadable(&volume).await, [], "{layout:?}");
    });
}

#[test]
fn a_member_that_is_filled_is_not_condemned_when_reads_of_another_one_time_out() {
    for (layout, members) in [(PARITY, 3), (Layout::Mirrored, 2), (Layout::Mirrored, 3)] {
        filled_while_away(layout, members, |disk, is_away| {
            disk.reads_end_with = is_away.then_some(TIMED_OUT);
        });
    }
}

#[test]
fn pages_are_not_lost_when_another_member_cannot_be_read_for_longer_than_patience_lasts() {
    for (layout, members) in [(PARITY, 3), (Layout::Mirrored, 2), (Layout::Mirrored, 3)] {
        filled_while_away(layout, members, |disk, is_away| {
            disk.fails.clear();
            let times = if is_away { u64::MAX } else { 0 };
            disk.fails.push(Fails { command: Command::Read, after: 0, times });
        });
    }
}

#[test]
fn a_member_that_is_replaced_while_its_filling_is_put_off_is_filled_at_once() {
    let world = World::new(PARITY, SMALL, 3);
    world.run(1, |_, volume| async move { write_all(&volume).await });
    world.replace(2);
    let others: Vec<_> = world.disks[..2].iter().map(Rc::clone).collect();
    let fresh = Rc::new(RefCell::new(Disk::new(SMALL, true, 200)));
    world.run(2, move |handle, volume| async move {
        others[0].borrow_mut().reads_end_with = Some(TIMED_OUT);
        volume.begin_filling();
        handle.sleep(Nanos::from_millis(20_000)).await;
        others[0].borrow_mut().reads_end_with = None;
        volume.replace(2, MemoryMedium::new(&handle, &fresh)).expect("it is like the others");
        let begun = handle.now();
        volume.filled().await;
        assert!(handle.now() - begun < Nanos::from_millis(1_000), "it waited for what was put off");
        others[0].borrow_mut().is_gone = true;
        assert_eq!(unreadable(&volume).await, []);
    });
}

/// Requests a sync. A second sync finds a lost member before the first is awaited. `ends` awaits
/// them in some order. Then power fails, and only data that was durable at the end of `ends` is
/// kept. Returns the members that are behind afterwards.
fn behind_after<F: Future<Output = ()> + 'static>(
    seed: u64,
    ends: impl FnOnce(Handle, Syncs, Syncs) -> F + 'static,
) -> Vec<usize> {
    let mut world = World::new(PARITY, SMALL, 3);
    for (number, disk) in (0..).zip(&mut world.disks) {
        *disk = Rc::new(RefCell::new(Disk::new(SMALL, true, 3 * seed + number)));
    }
    let disks = world.disks.clone();
    world.run(1, move |handle, volume| async move {
        volume.open(EXTENT, 1, Stream::Objects).expect("all are there");
        write_row(&volume, 0).await;
        volume.sync(Stream::Objects).await.expect("it is synced");
        write_row(&volume, 1).await;
        let asked = Box::pin(volume.sync(Stream::Objects));
        disks[2].borrow_mut().fails.push(Fails { command: Command::Sync, after: 0, times: 1 });
        volume.sync(Stream::Log).await.expect("two others are left");
        assert_eq!(volume.failed_members(), [2]);
        let other = Box::pin(volume.sync(Stream::Objects));
        ends(handle, asked, other).await;
        for disk in &disks {
            disk.borrow_mut().forget_unsynced();
        }
    });
    let behind = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&behind);
    world.run(2, |_, volume| async move { *found.borrow_mut() = volume.members_behind() });
    behind.take()
}

type Syncs = std::pin::Pin<Box<dyn Future<Output = Result<(), MediumError>>>>;

#[test]
fn a_sync_that_was_asked_for_before_a_member_was_lost_makes_the_note_of_that_durable() {
    let behind = behind_after(0, |_, asked, _| async move {
        asked.await.expect("two others are left");
    });
    assert_eq!(behind, [2], "it is noted by the sync");
}

#[test]
fn a_sync_waits_for_the_note_that_another_one_writes() {
    // Before it notes anything the second sync syncs the members; then it writes headers, and syncs
    // these.
    for (seed, micros) in (0..40).flat_map(|seed| (0..1_500).step_by(50).map(move |it| (seed, it)))
    {
        let behind = behind_after(seed, move |handle, asked, other| async move {
            handle.spawn("other", other);
            handle.sleep(Nanos::from_micros(micros)).await;
            asked.await.expect("two others are left");
        });
        assert_eq!(behind, [2], "seed {seed}: the other one notes it, {micros} us before");
    }
}

#[test]
fn pages_that_are_lost_side_by_side_do_not_hold_up_a_filling() {
    let world = World::new(PARITY, SMALL, 3);
    world.run(1, |_, volume| async move { write_all(&volume).await });
    world.disk(0).unreadable.extend(3..7);
    world.replace(2);
    world.run(2, |handle, volume| async move {
        let begun = handle.now();
        volume.begin_filling();
        volume.filled().await;
        assert!(handle.now() - begun < Nanos::from_millis(7_000), "it has tried more than once");
        assert_eq!(volume.stats().lost_pages, 4);
        assert!(volume.members_behind().is_empty());
    });
}

/// Power failed while the first extent of a new store was opened: one member has its header. If
/// another member were lost, nothing would show that it did not have the extent.
#[test]
fn who_has_a_header_that_does_not_count_is_behind_until_that_is_gone_for_good() {
    for lost in [1, 2] {
        let world = World::new(PARITY, LARGE, 3);
        world.run(1, |handle, volume| async move {
            volume.open(EXTENT, 1, Stream::Manifest).expect("all are there");
            handle.sleep(Nanos::from_millis(10)).await;
        });
        world.replace(1);
        world.replace(2);
        let disks: Vec<_> = world.disks.iter().map(Rc::clone).collect();
        world.run(2, move |_, volume| async move {
            volume.begin_filling();
            assert_eq!(volume.members_behind(), [0]);
            volume.filled().await;
            assert!(volume.members_behind().is_empty());
            for disk in &disks {
                disk.borrow_mut().forget_unsynced();
            }
        });
        world.disk(lost).is_gone = true;
        world.run_store(3, 10).unwrap_or_else(|error| panic!("without {lost}: {error}"));
    }
}

/// Power failed before the manifest referred to an extent of objects. Afterwards only the headers
/// of the extent can be read.
#[test]
fn an_extent_of_data_that_nobody_needs_and_that_cannot_be_read_keeps_no_store_shut() {
    let world = World::new(PARITY, LARGE, 3);
    world.run_store(1, 10).expect("it is made");
    let last = ExtentId(LARGE.extents - 1);
    world.run(2, move |_, volume| async move {
        volume.open(last, 1, Stream::Objects).expect("all are there");
        let pages = vec![PageImage::new(&[7; 8]); volume.shape().append_unit as usize];
        let first = volume.shape().page(last, 0);
        volume.append(first, pages, IoClass::Journal).await.expect("it is written");
        volume.sync(Stream::Objects).await.expect("it is synced");
    });
    let behind_header = LARGE.page(last, LARGE.append_unit).0..LARGE.page(last, 0).0 + 33;
    for member in [0, 1] {
        world.disk(member).unreadable.extend(behind_header.clone());
    }
    world.run_store(3, 10).expect("the manifest does not refer to it");
}

/// Returns three members of which the last was replaced and filled, and the store written; then the
/// former last member was put back.
fn with_a_former_member() -> World {
    let world = World::new(PARITY, LARGE, 3);
    world.run_store(1, 300).expect("all are there");
    let former = world.disk(2).clone();
    world.replace(2);
    world.run(2, |_, volume| async move {
        volume.begin_filling();
        volume.filled().await;
        assert!(volume.members_behind().is_empty(), "it was filled");
    });
    world.run_store(3, 900).expect("all are there");
    *world.disk(2) = former;
    world
}

#[test]
fn a_member_that_was_replaced_lacks_all_when_it_comes_back() {
    let world = with_a_former_member();
    let behind = world.behind_at_opening();
    assert_eq!(behind, [2], "it has nothing that counts");
    world.run(4, |_, volume| async move {
        volume.begin_filling();
        volume.filled().await;
        assert!(volume.members_behind().is_empty(), "it was filled");
        assert_eq!(volume.stats().lost_pages, 0, "the others have all");
    });
    world.disk(0).is_gone = true;
    world.read_store(5, 900).expect("it has all that the first one had");
}

#[test]
fn a_member_that_was_replaced_stands_in_for_no_one() {
    let world = with_a_former_member();
    world.disk(0).is_gone = true;
    world.run_store(4, 0).expect_err("two members lack what was written");
}

/// An operator puts back an older copy, and the volume was not notified.
#[test]
fn an_older_copy_of_a_member_lacks_all() {
    for runs in 1..4 {
        let world = World::new(PARITY, LARGE, 3);
        world.run_store(1, 300).expect("all are there");
        let copy = world.disk(2).clone();
        for run in 0..runs {
            world.run_store(2 + run, 300 + 100 * run).expect("all are there");
        }
        *world.disk(2) = copy;
        assert_eq!(world.behind_at_opening(), [2], "{runs} runs later it has nothing that counts");
        world.run(9, |_, volume| async move {
            volume.begin_filling();
            volume.filled().await;
            assert!(volume.members_behind().is_empty(), "it was filled");
        });
        world.run_store(10, 900).expect("all are there");
        world.disk(0).is_gone = true;
        world.read_store(11, 900).expect("it has all that the first one had");
    }
}

/// The others' notes of its absence are kept while it is away, despite other writes to them.
#[test]
fn a_member_that_missed_something_is_filled_when_it_comes_back_a_run_later() {
    let world = World::new(PARITY, SMALL, 3);
    let third = Rc::clone(&world.disks[2]);
    world.run(1, |_, volume| async move {
        volume.open(EXTENT, 1, Stream::Objects).expect("all are there");
        write_row(&volume, 0).await;
        volume.sync(Stream::Objects).await.expect("it is synced");
        third.borrow_mut().is_read_only = true;
        write_row(&volume, 1).await;
        volume.sync(Stream::Objects).await.expect("one may be missing");
    });
    world.disk(2).is_read_only = false;
    world.disk(2).is_gone = true;
    world.run(2, |_, volume| async move {
        volume.open(ExtentId(1), 2, Stream::Manifest).expect("one may be missing");
        let at = PageNo(volume.shape().pages_per_extent);
        let pages = (0..volume.shape().append_unit).map(|_| PageImage::new(&[1; 8])).collect();
        volume.append(at, pages, IoClass::Journal).await.expect("it is written");
        volume.sync(Stream::Manifest).await.expect("one may be missing");
        volume.note_tenures().await;
        volume.begin_filling();
    });
    world.disk(2).come_back();
    world.run(3, |_, volume| async move {
        volume.begin_filling();
        volume.filled().await;
    });
    world.disk(0).is_gone = true;
    world.run(4, |_, volume| async move {
        for page in 0..2 * volume.shape().append_unit {
            let read = volume.read(PageNo(page), IoClass::ClientRead).await.expect("it is read");
            assert!(read.bytes().starts_with(&[page as u8 + 1; 8]), "page {page}");
        }
    });
}

#[test]
fn a_header_that_notes_members_that_there_are_not_is_none() {
    let world = World::new(PARITY, SMALL, 3);
    world.run(1, |_, volume| async move {
        volume.open(EXTENT, 1, Stream::Objects).expect("all are there");
        write_row(&volume, 0).await;
        volume.sync(Stream::Objects).await.expect("it is synced");
    });
    let bytes = world.disk(0).at(0).expect("a header is there");
    let rotten = header::Header {
        absent: 1 << 7,
        revision: u64::from(u32::MAX) << 8,
        ..header::decode(&bytes).expect("it is one")
    };
    world.disk(0).put(0, header::encode(&rotten, &[0; 3]));
    let second = Rc::clone(&world.disks[1]);
    world.run(2, move |handle, volume| async move {
        assert_eq!(volume.unread_members(), [0]);
        volume.begin_filling();
        volume.filled().await;
        second.borrow_mut().is_read_only = true;
        write_row(&volume, 1).await;
        let mut sync = Box::pin(volume.sync(Stream::Objects));
        let mut late = handle.sleep(Nanos::from_millis(10_000));
        match first(&mut sync, &mut late).await {
            First::Left(synced) => synced.expect("one may be missing"),
            First::Right(()) => panic!("the sync waits for a member that there is not"),
        }
    });
}
