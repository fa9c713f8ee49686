//! A store with its log and manifest on a mirrored volume and its data on a parity volume.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{Engine, OpenError, Setup as TreeSetup, Shape, StoreId};
use runtime::{Cores, Handle, Nanos, Rng, Runtime};
use volume::{Layout, Options, Planted, Setup, Volume};

use crate::memory::{Disk, MemoryMedium};
use crate::store::{Asked, check, tree_setup, write};

type Memory = Volume<MemoryMedium>;

type Disks = Vec<Rc<RefCell<Disk>>>;

const DATA: Shape = Shape {
    payload_bytes: 4_096,
    page_bytes: 4_096,
    pages_per_extent: 33,
    extents: 60,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};

/// Smaller extents and pages than those of the data.
const JOURNAL: Shape =
    Shape { payload_bytes: 2_048, page_bytes: 2_048, pages_per_extent: 25, extents: 30, ..DATA };

fn disks(members: u64, shape: Shape, is_anywhere: bool, seed: u64) -> Disks {
    let disk = |number| Rc::new(RefCell::new(Disk::new(shape, is_anywhere, seed + number)));
    (0..members).map(disk).collect()
}

/// Two sets of members, with the clock and processor of one run.
struct Media {
    handle: Handle,
    cores: Rc<Cores>,
    data: Disks,
    journal: Disks,
}

impl Media {
    fn new(rt: &Runtime, data: &Disks, journal: &Disks) -> Self {
        let handle = rt.handle();
        let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
        Self { handle, cores, data: data.clone(), journal: journal.clone() }
    }

    fn setup(&self, disks: &Disks, layout: Layout) -> Setup<MemoryMedium> {
        Setup {
            handle: self.handle.clone(),
            cores: Rc::clone(&self.cores),
            members: disks.iter().map(|disk| MemoryMedium::new(&self.handle, disk)).collect(),
            options: Options::new(layout, 11),
            planted: Planted::default(),
        }
    }

    fn setup_of_data(&self) -> Setup<MemoryMedium> {
        self.setup(&self.data, Layout::Parity { chunk_pages: 2 })
    }

    fn setup_of_journal(&self) -> Setup<MemoryMedium> {
        self.setup(&self.journal, Layout::Mirrored)
    }

    fn tree(&self, data: &Memory, id: u32) -> TreeSetup<Memory> {
        TreeSetup { id: StoreId(id), ..tree_setup(&self.handle, &self.cores, data) }
    }

    fn create(&self, id: u32) -> Engine<Memory> {
        let data = Volume::create(self.setup_of_data()).expect("they fit");
        let journal = Volume::create(self.setup_of_journal()).expect("they fit");
        Engine::create_with_journal(self.tree(&data, id), journal).expect("it fits")
    }

    /// Opens the store. Returns it with the volumes of its data and its journal.
    async fn open(&self) -> Result<(Engine<Memory>, [Memory; 2]), OpenError> {
        let data = Volume::recover(self.setup_of_data()).await.expect("it is this volume");
        data.begin_filling();
        let journal = Volume::recover(self.setup_of_journal()).await.expect("it is this volume");
        journal.begin_filling();
        let engine = Engine::open_with_journal(self.tree(&data, 99), journal.clone()).await?;
        Ok((engine, [data, journal]))
    }
}

/// Runs clients for some time, then cuts power.
fn run_and_cut(media: &(Disks, Disks), id: u32, seed: u64, asked: &Asked) {
    let rt = Runtime::new(seed);
    let engine = Media::new(&rt, &media.0, &media.1).create(id);
    for client in 0..4 {
        let write = write(engine.clone(), client, u64::MAX, Rc::clone(asked));
        rt.handle().spawn("client", write);
    }
    rt.run_until(Nanos::from_millis(300 + 37 * seed));
    assert!(engine.stats().flushes > 3 && engine.epoch() > 0);
    drop((engine, rt));
    let rng = &mut Rng::new(seed);
    media.0.iter().chain(&media.1).for_each(|disk| disk.borrow_mut().power_cut(rng));
}

fn media(is_anywhere: bool, seed: u64) -> (Disks, Disks) {
    (disks(3, DATA, is_anywhere, seed), disks(2, JOURNAL, is_anywhere, seed + 10))
}

#[test]
fn a_journal_apart_survives_power_cuts_and_the_loss_of_members() {
    for seed in 0..8 {
        let media = media(seed % 2 == 0, seed);
        let lost = [&media.0[seed as usize % 3], &media.1[seed as usize % 2]].map(Rc::clone);
        let asked = Asked::default();
        run_and_cut(&media, 7, seed, &asked);
        for life in 0..3 {
            let rt = Runtime::new(seed + 100 * life);
            let both = Media::new(&rt, &media.0, &media.1);
            let (asked, leaving) = (Rc::clone(&asked), lost.clone());
            rt.block_on(async move {
                let what = format!("seed {seed}, life {life}");
                let opened = both.open().await;
                let (engine, volumes) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&engine, &asked, &what).await;
                write(engine.clone(), 0, 300, Rc::clone(&asked)).await;
                // Torn stripes regain their redundancy before a member is lost. The member is back
                // in the next life.
                for volume in &volumes {
                    volume.filled().await;
                }
                if life == 1 {
                    for disk in leaving {
                        disk.borrow_mut().is_gone = true;
                    }
                }
                check(&engine, &asked, &what).await;
                write(engine.clone(), 1, 300, Rc::clone(&asked)).await;
                check(&engine, &asked, &what).await;
                assert!(life != 1 || volumes[0].stats().rebuilt_reads > 0);
                assert!(volumes[1].stats().reads > 0, "the journal was read from its own medium");
            });
            for disk in lost.iter().filter(|_| life == 1) {
                disk.borrow_mut().come_back();
            }
            let rng = &mut Rng::new(seed + 10 * life);
            media.0.iter().chain(&media.1).for_each(|disk| disk.borrow_mut().power_cut(rng));
        }
    }
}

#[test]
fn a_journal_of_another_store_is_refused_and_so_are_data_without_theirs() {
    let (one, other) = (media(true, 1), media(true, 20));
    run_and_cut(&one, 7, 1, &Asked::default());
    run_and_cut(&other, 8, 2, &Asked::default());
    let rt = Runtime::new(3);
    let swapped = Media::new(&rt, &one.0, &other.1);
    let opened = rt.block_on(async move { swapped.open().await.map(|_| ()) });
    assert_eq!(opened, Err(OpenError::ForeignJournal));
    let rt = Runtime::new(4);
    let blank = disks(2, JOURNAL, true, 30);
    let without = Media::new(&rt, &one.0, &blank);
    let opened = rt.block_on(async move { without.open().await.map(|_| ()) });
    assert_eq!(opened, Err(OpenError::NoManifest));
}
