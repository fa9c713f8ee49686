//! Members that come back after the others continued without them.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{ExtentId, Medium, PageNo, Shape, Stream};
use runtime::{Cores, Handle, IoClass, Nanos, PageImage, Runtime};
use volume::{Layout, Options, Planted, Setup, Volume};

use crate::memory::{Disk, MemoryMedium};

const EXTENT: ExtentId = ExtentId(0);
const SHAPE: Shape = Shape {
    payload_bytes: 512,
    page_bytes: 512,
    pages_per_extent: 9,
    extents: 2,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};

/// The disks of a volume, over several runs with power cuts between them.
struct Cycle {
    layout: Layout,
    disks: Vec<Rc<RefCell<Disk>>>,
}

impl Cycle {
    fn new(layout: Layout, members: u64, is_anywhere: bool) -> Self {
        let disk = |seed| Rc::new(RefCell::new(Disk::new(SHAPE, is_anywhere, seed)));
        Self { layout, disks: (0..members).map(disk).collect() }
    }

    fn setup(&self, handle: &Handle) -> Setup<MemoryMedium> {
        Setup {
            handle: handle.clone(),
            cores: Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000))),
            members: self.disks.iter().map(|disk| MemoryMedium::new(handle, disk)).collect(),
            options: Options::new(self.layout, 7),
            planted: Planted::default(),
        }
    }

    /// Runs the volume once.
    fn run<F: Future<Output = ()> + 'static>(
        &self,
        seed: u64,
        what: impl FnOnce(Volume<MemoryMedium>) -> F + 'static,
    ) {
        let rt = Runtime::new(seed);
        let setup = self.setup(&rt.handle());
        rt.block_on(async move {
            let volume = Volume::recover(setup).await.expect("they are its own");
            volume.begin_filling();
            what(volume).await;
        });
    }

    /// Cuts power: one member keeps all acknowledged data, the others only synced data.
    fn cut_all_but(&self, member: usize) {
        for (other, disk) in self.disks.iter().enumerate() {
            let mut disk = disk.borrow_mut();
            if other == member { disk.tear() } else { disk.forget_unsynced() }
        }
    }
}

/// Opens the extent and writes a stripe of it.
async fn write(volume: &Volume<MemoryMedium>, generation: u64, stream: Stream, mark: u8) {
    volume.open(EXTENT, generation, stream).expect("enough members are there");
    write_row(volume, 0, mark).await;
}

async fn write_row(volume: &Volume<MemoryMedium>, row: u32, mark: u8) {
    let unit = volume.shape().append_unit;
    let pages = vec![PageImage::new(&[mark; 8]); unit as usize];
    volume.append(PageNo(row * unit), pages, IoClass::Journal).await.expect("it is written");
}

/// Checks that every page of the first stripe has the written bytes, read from any source.
async fn assert_all_are(volume: &Volume<MemoryMedium>, mark: u8) {
    assert_row_is(volume, 0, mark).await;
}

async fn assert_row_is(volume: &Volume<MemoryMedium>, row: u32, mark: u8) {
    let unit = volume.shape().append_unit;
    for page in (row * unit..(row + 1) * unit).map(PageNo) {
        let read = volume.read(page, IoClass::ClientRead).await;
        let read = read.expect("it can be read");
        assert!(read.bytes().starts_with(&[mark; 8]), "page {} is another", page.0);
        for rebuilt in volume.read_versions(page, IoClass::ClientRead).await {
            assert!(
                rebuilt.bytes().starts_with(&[mark; 8]),
                "page {} is rebuilt as another",
                page.0
            );
        }
    }
}

/// Opens an extent `openings` times, with increasing generations. Power fails before anything is
/// synced; one member keeps the data all the same, and stays away. A store that does not know of
/// these openings opens the extent again.
fn opened_again_without(cycle: &Cycle, away: usize, openings: u64) {
    cycle.run(1, move |volume| async move {
        for generation in 1..=openings {
            if generation > 1 {
                volume.release(EXTENT).await.expect("it is released");
            }
            write(&volume, generation, Stream::Log, 1).await;
        }
    });
    cycle.cut_all_but(away);
    cycle.disks[away].borrow_mut().is_gone = true;
    cycle.run(2, |volume| async move {
        write(&volume, 1, Stream::Manifest, 2).await;
        volume.sync(Stream::Manifest).await.expect("it is synced");
    });
    cycle.cut_all_but(away);
    cycle.disks[away].borrow_mut().come_back();
    let other = Rc::clone(&cycle.disks[(away + 1) % cycle.disks.len()]);
    cycle.run(3, |volume| async move {
        assert_all_are(&volume, 2).await;
        volume.filled().await;
        other.borrow_mut().is_gone = true;
        assert_all_are(&volume, 2).await;
    });
}

#[test]
fn what_a_member_missed_is_not_told_by_a_generation_that_was_given_twice() {
    let parity = Layout::Parity { chunk_pages: 2 };
    for (layout, members) in [(Layout::Mirrored, 2), (Layout::Mirrored, 3), (parity, 3)] {
        for is_anywhere in [true, false] {
            for away in 0..members {
                // The second generation is higher than that of the extent that counts.
                for openings in [1, 2] {
                    let cycle = Cycle::new(layout, members as u64, is_anywhere);
                    opened_again_without(&cycle, away, openings);
                }
            }
        }
    }
}

/// Fills a member with an extent. Then power fails before the others are synced, so only this
/// member has the header that marks it as filled. The others continue without it, and their headers
/// seem to note its absence already.
fn gone_on_without_after_it_was_filled(cycle: &Cycle, away: usize) {
    cycle.disks[away].borrow_mut().is_gone = true;
    cycle.run(1, |volume| async move {
        write(&volume, 1, Stream::Objects, 1).await;
        volume.sync(Stream::Objects).await.expect("it is synced");
    });
    cycle.cut_all_but(away);
    cycle.disks[away].borrow_mut().come_back();
    cycle.run(2, |volume| async move { volume.filled().await });
    cycle.cut_all_but(away);
    cycle.disks[away].borrow_mut().is_gone = true;
    cycle.run(3, |volume| async move {
        write_row(&volume, 1, 2).await;
        volume.sync(Stream::Objects).await.expect("it is synced");
    });
    cycle.cut_all_but(away);
    cycle.disks[away].borrow_mut().come_back();
    cycle.run(4, |volume| async move {
        assert_row_is(&volume, 0, 1).await;
        assert_row_is(&volume, 1, 2).await;
    });
}

#[test]
fn a_header_that_only_a_member_keeps_that_was_filled_is_not_the_newest_for_ever() {
    let parity = Layout::Parity { chunk_pages: 2 };
    for (layout, members) in [(Layout::Mirrored, 2), (Layout::Mirrored, 3), (parity, 3)] {
        for away in 0..members {
            gone_on_without_after_it_was_filled(&Cycle::new(layout, members as u64, true), away);
        }
    }
}
