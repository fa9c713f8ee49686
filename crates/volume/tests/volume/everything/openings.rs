//! Openings of a store whose members may fail commands, and the checks of its content.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use engine::{Engine, OpenError, Setup as TreeSetup};
use runtime::{Handle, Nanos, Rng, Runtime};
use volume::{Volume, header};

use super::clients;
use super::clients::{Clients, check_all, round_of, twin_of};
use super::history::Life;
use crate::faults::{Memory, SHAPE, World, cores};
use crate::memory::MemoryMedium;
use crate::store::tree_setup;

fn tree(handle: &Handle, volume: &Memory) -> TreeSetup<Memory> {
    let mut tree = tree_setup(handle, &cores(handle), volume);
    tree.surroundings.iterator_dram_bytes = 512 << 10;
    tree
}

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    pub engine: Engine<Memory>,
    pub volume: Memory,
}

/// Opens the store, checks all its content, and starts the clients.
pub(crate) async fn open(
    life: Rc<Life>,
    setup: volume::Setup<MemoryMedium>,
    is_new: bool,
    seed: u64,
) {
    let handle = life.clients.handle.clone();
    let opened = open_store(&handle, setup, is_new).await;
    *life.opened.borrow_mut() = Some(opened);
    let store = match &*life.opened.borrow() {
        Some(Ok(store)) => store.clone(),
        _ => return,
    };
    store.volume.note_tenures().await;
    store.volume.begin_filling();
    if let Err(error) = compare(&store.engine, &life.clients).await {
        life.clients.complaints.borrow_mut().push(format!("opened, {error}"));
    }
    life.clients.start(&store.engine, &mut Rng::new(seed));
}

pub(crate) async fn open_store(
    handle: &Handle,
    setup: volume::Setup<MemoryMedium>,
    is_new: bool,
) -> Result<Store, OpenError> {
    let volume = if is_new { Volume::create(setup) } else { Volume::recover(setup).await };
    let volume = volume.expect("they are its own");
    let tree = tree(handle, &volume);
    let engine = if is_new { Engine::create(tree) } else { Engine::open(tree).await };
    Ok(Store { engine: engine?, volume })
}

/// Checks that each key has the last acknowledged value or a later requested one. While commands
/// fail, a key may also be unreadable. The value found becomes the acknowledged one.
pub(crate) async fn compare(engine: &Engine<Memory>, clients: &Clients) -> Result<(), String> {
    let asked: Vec<_> =
        clients.asked.borrow().iter().map(|(key, rounds)| (*key, *rounds)).collect();
    for (key, (low, high)) in asked {
        let mut found = Vec::new();
        for name in [Some(key), twin_of(key)].into_iter().flatten() {
            let get = clients.call("get", engine.get(&name.to_be_bytes(), Nanos::ZERO)).await;
            match get {
                Ok(lookup) => found.push(round_of(lookup.value)),
                Err(_) if clients.has_failed.get() => {}
                Err(error) => return Err(format!("key {key}: {error}")),
            }
        }
        let Some(first) = found.first() else { continue };
        if found.iter().any(|other| other != first) {
            return Err(format!("key {key} and its twin have {found:?}"));
        }
        let round = clients::check(key, *first, low, high)?;
        clients.asked.borrow_mut().insert(key, (round, high));
    }
    Ok(())
}

/// Opens a copy of the store and checks that it has all data, without member `away` if given. If
/// pages were declared lost (`may_fail`), opening and reads may fail instead.
pub(crate) fn open_whole(
    world: &World,
    seed: u64,
    away: Option<usize>,
    may_fail: bool,
) -> Result<(), String> {
    let aside = world.fork();
    if let Some(member) = away {
        aside.disks[member].borrow_mut().is_gone = true;
    }
    let before: Vec<_> = aside.disks.iter().map(|disk| disk.borrow().content()).collect();
    open_for_good(&aside, seed, may_fail).map_err(|error| format!("{error}\n{}", headers(&before)))
}

/// Like [`open_whole`], but on the store itself, not a copy.
pub(crate) fn open_for_good(world: &World, seed: u64, may_fail: bool) -> Result<(), String> {
    let (rt, asked) = (Runtime::new(seed), Rc::clone(&world.asked));
    let (handle, setup) = (rt.handle(), world.setup(&rt.handle()));
    let is_away = world.disks.iter().any(|disk| disk.borrow().is_gone);
    rt.block_on(async move {
        let clients = Clients::new(&handle, &asked, &Rc::new(Cell::new(may_fail)));
        let store = open_store(&handle, setup, false).await;
        let Store { engine, volume } =
            store.map_err(|error| format!("it does not open: {error}"))?;
        volume.note_tenures().await;
        volume.begin_filling();
        compare(&engine, &clients).await?;
        check_scan(&engine, &clients).await?;
        volume.filled().await;
        // Releases in progress end before the store is closed.
        handle.sleep(Nanos::from_millis(200)).await;
        let behind = volume.members_behind();
        if !is_away && !may_fail && !behind.is_empty() {
            return Err(format!("{behind:?} are behind when all is filled"));
        }
        Ok(())
    })
}

async fn check_scan(engine: &Engine<Memory>, clients: &Rc<Clients>) -> Result<(), String> {
    let Some(found) = clients.pairs_of(engine).await else {
        let error = "it cannot be read in order".to_owned();
        return if clients.has_failed.get() { Ok(()) } else { Err(error) };
    };
    let asked: BTreeMap<_, _> = clients.asked.borrow().clone();
    check_all(&asked, &found)
}

/// Formats the members' headers of each extent, to analyse a complaint.
fn headers(contents: &[BTreeMap<u32, Vec<u8>>]) -> String {
    let mut text = String::new();
    for id in 0..SHAPE.extents {
        let of = |content: &BTreeMap<u32, Vec<u8>>| {
            let header =
                content.get(&(id * SHAPE.pages_per_extent)).and_then(|it| header::decode(it));
            header.map_or("none".to_owned(), |it| {
                let (run, revision) = (it.run >> 32, (it.revision >> 32, it.revision as u32));
                format!(
                    "{:?} {}/{run}/{revision:?} absent {:b}",
                    it.stream, it.generation, it.absent
                )
            })
        };
        let all: Vec<String> = contents.iter().map(of).collect();
        let _ = writeln!(text, "  extent {id}: {}", all.join(" | "));
    }
    text
}
