//! A store on a volume of NVM sets: after a power cut and the loss of a set, acknowledged data is
//! still readable.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::SetId;
use drives::nand::{FlashProfile, Geometry};
use drives::ssd::{Precondition, Ssd, SsdProfile};
use engine::{
    Cpu, CpuCosts, Durability, Engine, ExtentId, Medium, Options as TreeOptions, PageNo,
    Setup as TreeSetup, StoreId, Surroundings, Value, WriteOptions,
};
use runtime::{Cores, Handle, IoClass, Nanos, Rng, Runtime};
use volume::{BlockRange, Layout, Options, Planted, RangeOptions, Reuse, Setup, Volume};

const SETS: u16 = 3;

pub(crate) fn profile() -> SsdProfile {
    let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
    let sets = u32::from(SETS);
    profile.sets = sets;
    profile.controller.cores = sets;
    profile.flash = FlashProfile {
        geometry: Geometry {
            channels: 2 * sets,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 20,
            pages_per_block: 48,
            page_bytes: 16_384,
            ..profile.flash.geometry.clone()
        },
        ..profile.flash
    };
    profile.buffer.bytes = u64::from(sets) * 100 * 4_096;
    profile.user_bytes = u64::from(sets) * 14_000 * 4_096;
    profile
}

pub(crate) fn set_id(set: u16) -> SetId {
    SetId::new(set + 1).expect("numbers begin with 1")
}

pub(crate) fn volume_setup(
    handle: &Handle,
    cores: &Rc<Cores>,
    ssd: &Ssd,
) -> Setup<BlockRange<Ssd>> {
    let range = |set| RangeOptions {
        set: set_id(set),
        first_block: 0,
        page_blocks: 1,
        pages_per_extent: 33,
        extents: 60,
        grows_to: 0,
        parallelism: 4,
        run_pages: 1,
        reuse: Reuse::LeastWorn,
        forces_journal: false,
    };
    let members = (0..SETS).map(|set| BlockRange::new(ssd.clone(), range(set)).expect("it fits"));
    Setup {
        handle: handle.clone(),
        cores: Rc::clone(cores),
        members: members.collect(),
        options: Options::new(Layout::Parity { chunk_pages: 2 }, 11),
        planted: Planted::default(),
    }
}

pub(crate) fn tree_setup<M: Medium + Clone>(
    handle: &Handle,
    cores: &Rc<Cores>,
    medium: &M,
) -> TreeSetup<M> {
    TreeSetup {
        handle: handle.clone(),
        medium: medium.clone(),
        options: TreeOptions {
            memtable_bytes: 16 << 10,
            durability: Durability::Log,
            ..TreeOptions::pink()
        },
        surroundings: Surroundings {
            index_dram_bytes: 64 << 10,
            iterator_dram_bytes: 0,
            expected_key_bytes: 16,
            expected_value_bytes: 100,
        },
        cpu: Cpu { cores: Rc::clone(cores), costs: CpuCosts::FREE },
        accelerator: None,
        planted: engine::Planted::default(),
        id: StoreId(7),
    }
}

/// For each key the newest value acknowledged, and the newest value requested.
pub(crate) type Asked = Rc<RefCell<BTreeMap<u64, (u64, u64)>>>;

pub(crate) async fn write<M: Medium>(engine: Engine<M>, client: u64, rounds: u64, asked: Asked) {
    for round in 1..=rounds {
        let key = (round * 7 % 100) * 4 + client;
        asked.borrow_mut().entry(key).or_default().1 = round;
        let value = Value::Synthetic { seed: round, len: 100 };
        let name = key.to_be_bytes();
        engine.put(&name, value, WriteOptions::default(), Nanos::ZERO).await.expect("it is taken");
        asked.borrow_mut().entry(key).or_default().0 = round;
    }
}

pub(crate) async fn check<M: Medium>(engine: &Engine<M>, asked: &Asked, what: &str) {
    let asked = asked.borrow().clone();
    assert!(asked.len() > 50);
    for (key, (acknowledged, newest)) in asked {
        let found = engine.get(&key.to_be_bytes(), Nanos::ZERO).await;
        let found = found.unwrap_or_else(|error| panic!("{what}: key {key}: {error}"));
        let found = found.value.map_or(0, |value| match value {
            Value::Synthetic { seed, .. } => seed,
            Value::Bytes(_) => unreachable!("none was written"),
        });
        let range = acknowledged..=newest;
        assert!(range.contains(&found), "{what}: key {key} has {found}, not {range:?}");
    }
}

#[test]
fn a_store_survives_a_power_cut_and_the_loss_of_a_set() {
    for seed in 0..3 {
        let profile = profile();
        let asked = Asked::default();
        let rt = Runtime::new(seed);
        let handle = rt.handle();
        let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
        let ssd = Ssd::new(&handle, &profile, Precondition::Empty);
        let sets = Volume::create(volume_setup(&handle, &cores, &ssd)).expect("they fit");
        let engine = Engine::create(tree_setup(&handle, &cores, &sets)).expect("it fits");
        for client in 0..4 {
            let write = write(engine.clone(), client, u64::MAX, Rc::clone(&asked));
            handle.spawn("client", write);
        }
        rt.run_until(Nanos::from_millis(300 + 37 * seed));
        let (image, _) = ssd.power_cut(&mut Rng::new(seed));
        drop((engine, sets, ssd, rt));

        let rt = Runtime::new(seed + 100);
        let handle = rt.handle();
        let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
        rt.block_on(async move {
            let ssd = Ssd::recover(&handle, &profile, image, drives::ssd::Planted::default()).await;
            if seed > 0 {
                ssd.fail_set(set_id(seed as u16)).expect("there is one");
            }
            let setup = volume_setup(&handle, &cores, &ssd);
            let sets = Volume::recover(setup).await.expect("they are its own");
            sets.begin_filling();
            let tree = tree_setup(&handle, &cores, &sets);
            let engine = Engine::open(tree).await.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            check(&engine, &asked, "after recovery").await;
            if seed == 0 {
                ssd.fail_set(set_id(2)).expect("there is one");
                check(&engine, &asked, "with a set lost").await;
            }
            write(engine.clone(), 0, 50, Rc::clone(&asked)).await;
            check(&engine, &asked, "after writes").await;
            assert!(sets.stats().rebuilt_reads > 0, "{:?}", sets.stats());
        });
    }
}

#[test]
fn a_page_of_a_set_comes_back_up_to_its_last_byte() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
    let ssd = Ssd::new(&handle, &profile(), Precondition::Empty);
    let sets = Volume::create(volume_setup(&handle, &cores, &ssd)).expect("they fit");
    rt.block_on(async move {
        sets.open(ExtentId(2), 1, engine::Stream::Objects).expect("it opens");
        let first = sets.shape().page(ExtentId(2), 0);
        let unit = (0..4).map(|at| runtime::PageImage::new(&[at + 1, 0])).collect();
        sets.append(first, unit, IoClass::Flush).await.expect("it is written");
        for at in 0..4 {
            let page = PageNo(first.0 + at);
            let image = sets.read(page, IoClass::ClientRead).await.expect("it is there");
            assert!(volume::parity::is_same(image.bytes(), &[at as u8 + 1]));
            assert!(image.bytes().len() < 4096, "zeros at the end are not kept");
            let versions = sets.read_versions(page, IoClass::ClientRead).await;
            assert_eq!(versions.len(), 1, "by the others");
            assert!(volume::parity::is_same(versions[0].bytes(), image.bytes()));
        }
    });
}
