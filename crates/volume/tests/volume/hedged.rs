//! Hedged reads: a late read is also rebuilt from the other members.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{ExtentId, Medium, Shape, Stream};
use runtime::{Cores, Handle, IoClass, Nanos, PageImage, Runtime};
use volume::{Layout, Options, Planted, Setup, Volume, VolumeStats};

use crate::memory::{Disk, MemoryMedium};

const SHAPE: Shape = Shape {
    payload_bytes: 512,
    page_bytes: 512,
    pages_per_extent: 65,
    extents: 4,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};
/// Reads of the memory medium take 5 to 25 us, one in ten 40 to 200 us.
const AFTER: Nanos = Nanos::from_micros(30);

fn volume(handle: &Handle, layout: Layout, disks: &[Rc<RefCell<Disk>>]) -> Volume<MemoryMedium> {
    let setup = Setup {
        handle: handle.clone(),
        cores: Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000))),
        members: disks.iter().map(|disk| MemoryMedium::new(handle, disk)).collect(),
        options: Options { hedge_after: Some(AFTER), ..Options::new(layout, 7) },
        planted: Planted::default(),
    };
    Volume::create(setup).expect("they fit")
}

/// Reads every page twenty times, one at a time. Returns the sorted latencies, and the statistics.
fn read_all(layout: Layout, class: IoClass, spoil: fn(&mut Disk)) -> (Vec<Nanos>, VolumeStats) {
    let rt = Runtime::new(5);
    let handle = rt.handle();
    let disks: Vec<_> =
        (0..3).map(|seed| Rc::new(RefCell::new(Disk::new(SHAPE, true, seed)))).collect();
    let volume = volume(&handle, layout, &disks);
    rt.block_on(async move {
        let shape = volume.shape();
        volume.open(ExtentId(1), 1, Stream::Objects).expect("it opens");
        let pages = shape.pages_per_extent / shape.append_unit * shape.append_unit;
        let all = (0..pages).map(|index| shape.page(ExtentId(1), index));
        for first in all.clone().step_by(shape.append_unit as usize) {
            let pages = (first.0..first.0 + shape.append_unit).map(image);
            volume.append(first, pages.collect(), IoClass::Flush).await.expect("it is written");
        }
        volume.sync(Stream::Objects).await.expect("it is synced");
        spoil(&mut disks[0].borrow_mut());
        let mut spans = Vec::new();
        for page in (0..20).flat_map(|_| all.clone()) {
            let since = handle.now();
            let found = volume.read(page, class).await.expect("it can be read");
            assert!(found.bytes().starts_with(image(page.0).bytes()), "page {}", page.0);
            spans.push(handle.now() - since);
        }
        spans.sort_unstable();
        (spans, volume.stats())
    })
}

fn image(page: u32) -> PageImage {
    PageImage::new(&[1, page as u8])
}

#[test]
fn a_late_read_is_rebuilt_and_the_first_to_come_is_taken() {
    for layout in [Layout::Parity { chunk_pages: 2 }, Layout::Mirrored] {
        let (spans, stats) = read_all(layout, IoClass::ClientRead, |_| {});
        let (late, reads) = (stats.hedged_reads, spans.len() as u64);
        assert!((reads / 14..reads / 7).contains(&late), "{late} of {reads} were late");
        // Sometimes the other members are late too.
        let won = stats.hedges_won;
        assert!(won > late / 2 && won < late, "{won} of {late} came from the others");
        // One read in ten is late. If the other members are late too, hedging does not help: that
        // is one read in a hundred with a mirror, and one in fifty with two other members.
        let rank = if layout == Layout::Mirrored { 985 } else { 970 };
        let span = spans[spans.len() * rank / 1_000];
        assert!(span < AFTER + Nanos::from_micros(26), "{rank} of 1,000 take {span}");
    }
}

#[test]
fn tasks_in_the_background_wait() {
    let parity = Layout::Parity { chunk_pages: 2 };
    let (spans, stats) = read_all(parity, IoClass::CompactionRead, |_| {});
    assert_eq!((stats.hedged_reads, stats.rebuilt_reads), (0, 0));
    assert!(spans[spans.len() * 95 / 100] > AFTER + AFTER);
}

#[test]
fn nothing_else_holds_what_is_striped() {
    let striped = Layout::Striped { chunk_pages: 2 };
    let (_, stats) = read_all(striped, IoClass::ClientRead, |_| {});
    assert_eq!(stats.hedged_reads, 0);
}

#[test]
fn what_a_member_cannot_read_or_has_lost_is_rebuilt_as_without() {
    for layout in [Layout::Parity { chunk_pages: 2 }, Layout::Mirrored] {
        let rotten = |disk: &mut Disk| disk.unreadable.extend(0..200);
        let (_, stats) = read_all(layout, IoClass::ClientRead, rotten);
        assert!(stats.rebuilt_reads > 300, "{stats:?}");
        let (_, stats) = read_all(layout, IoClass::ClientRead, |disk| disk.is_gone = true);
        assert_eq!(stats.lost_members, 1);
    }
}
