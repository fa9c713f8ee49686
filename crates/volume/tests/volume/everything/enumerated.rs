//! Every command of a commit, of an extent opening, and of a filling fails: once, for a while, and
//! for good; on one member, two, and all. Power is also cut after each of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::{Rng, Runtime};
use testkit::fuzz::from_environment;

use super::FILLS_WITHIN;
use super::clients::Clients;
use super::history::with_data;
use super::openings::{compare, open_for_good, open_store, open_whole};
use crate::faults::{MEMBERS, Memory, SHAPE, World};
use crate::memory::{Command, Disk, Fails};

/// The work after an opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Script {
    /// Writes pairs and flushes them into the index, which opens and releases extents.
    Commit,
    /// Fills an empty member.
    Filling,
}

/// The member that is empty.
const BLANK: usize = 1;

fn given(world: &World) -> [u64; 4] {
    let of = |command: usize| world.disks.iter().map(|disk| disk.borrow().given[command]).sum();
    [of(0), of(1), of(2), of(3)]
}

/// The state of a volume after a script.
struct Left {
    /// Whether pages were declared lost.
    has_lost_pages: bool,
    /// Whether no member lacks data.
    is_whole: bool,
}

/// Runs the script until `until` commands were submitted, or to its end.
fn run(world: &World, script: Script, until: u64) -> Result<Left, String> {
    let rt = Runtime::new(3);
    let (handle, setup) = (rt.handle(), world.setup(&rt.handle()));
    let has_failed = Rc::new(Cell::new(true));
    let clients = Clients::new(&handle, &world.asked, &has_failed);
    let volume = Rc::<RefCell<Option<Memory>>>::default();
    let script = {
        let (handle, opened) = (handle.clone(), Rc::clone(&volume));
        handle.clone().spawn("script", async move {
            let Ok(store) = open_store(&handle, setup, false).await else { return };
            *opened.borrow_mut() = Some(store.volume.clone());
            store.volume.begin_filling();
            match script {
                Script::Filling => {
                    // Extents are opened while the filling begins.
                    clients.write_some(&store.engine).await;
                    store.volume.filled().await;
                }
                Script::Commit => {
                    clients.write_some(&store.engine).await;
                    store.engine.flush().await;
                }
            }
        })
    };
    let is_over = || {
        let commands: u64 = given(world).iter().sum();
        script.is_finished() || commands >= until || handle.now() > FILLS_WITHIN
    };
    rt.run_until_true(is_over);
    if script.is_finished() || given(world).iter().sum::<u64>() >= until {
        let volume = volume.borrow();
        let (volume, lost) = (volume.as_ref(), |volume: &Memory| volume.stats().lost_pages > 0);
        let is_whole = |volume: &Memory| volume.members_behind().is_empty();
        Ok(Left {
            has_lost_pages: volume.is_some_and(lost),
            is_whole: volume.is_some_and(is_whole),
        })
    } else {
        Err("the script stands still".to_owned())
    }
}

/// Returns the members of a store with data, one of them empty if the script fills it.
fn prepared(script: Script) -> World {
    let world = with_data(1);
    if script == Script::Filling {
        *world.disks[BLANK].borrow_mut() = Disk::new(SHAPE, true, 77);
    }
    world.disks.iter().for_each(|disk| disk.borrow_mut().given = [0; 4]);
    world
}

/// Fails every command. Returns the number of stores that were opened again.
fn every_failure(script: Script, step: u64) -> Result<u64, String> {
    let world = prepared(script);
    let whole = world.fork();
    run(&whole, script, u64::MAX)?;
    let mut runs = 0;
    for command in Command::ALL {
        let last = given(&whole)[command as usize] / MEMBERS as u64 + 1;
        for after in (0..last).step_by(step as usize) {
            for (times, members) in
                [1, 3, u64::MAX].into_iter().flat_map(|t| (1..=MEMBERS).map(move |m| (t, m)))
            {
                let (fork, fails) = (world.fork(), Fails { command, after, times });
                for member in 0..members {
                    fork.fail((member + after as usize) % MEMBERS, fails);
                }
                let what = |error| format!("{script:?}, {members} members, {fails:?}: {error}");
                let left = run(&fork, script, u64::MAX).map_err(what)?;
                end(&fork, after, left.has_lost_pages).map_err(what)?;
                runs += 1;
            }
        }
    }
    Ok(runs)
}

/// Cuts power, mends all failures, and opens the store. If pages were declared lost, opening may
/// fail.
fn end(world: &World, number: u64, has_lost_pages: bool) -> Result<(), String> {
    let rng = &mut Rng::new(number);
    world.mend();
    world.disks.iter().for_each(|disk| disk.borrow_mut().power_cut(rng));
    open_whole(world, rng.next_u64(), None, has_lost_pages)
}

/// Cuts power after every command, of one member first, or of all. Then a member is lost; while
/// another one is still behind, the store may refuse to open.
fn every_cut(script: Script, step: u64) -> Result<u64, String> {
    let world = prepared(script);
    let whole = world.fork();
    run(&whole, script, u64::MAX)?;
    let last: u64 = given(&whole).iter().sum();
    let mut runs = 0;
    for until in (0..last).step_by(step as usize) {
        for first in [None, Some(until as usize % MEMBERS)] {
            let fork = world.fork();
            let what = |error| format!("{script:?}, cut after {until}, first {first:?}: {error}");
            let is_whole = run(&fork, script, until).map_err(what)?.is_whole;
            if let Some(first) = first {
                fork.disks[first].borrow_mut().power_cut(&mut Rng::new(until));
            }
            end(&fork, until, false).map_err(what)?;
            if script == Script::Filling && first.is_none() {
                let other = (BLANK + 1 + until as usize % 2) % MEMBERS;
                open_in_doubt(&fork, until, other)
                    .map_err(|error| what(format!("headers of {other} unreadable: {error}")))?;
            }
            let away = (until as usize / 3) % MEMBERS;
            let opened = open_away(&fork, until, away);
            // Beyond the tolerance of the layout the store may refuse to open, but must not open
            // with less data.
            let may_refuse = |error: &String| !is_whole && error.contains("does not open");
            match opened {
                Err(error) if !may_refuse(&error) => {
                    return Err(what(format!("without {away}: {error}")));
                }
                _ => runs += 1,
            }
        }
    }
    Ok(runs)
}

fn open_away(world: &World, seed: u64, away: usize) -> Result<(), String> {
    let fork = world.fork();
    fork.disks[away].borrow_mut().is_gone = true;
    open_for_good(&fork, seed, false)
}

/// Opens the store while no header of one member can be read and another member is being filled.
/// Each extent is still readable.
fn open_in_doubt(world: &World, seed: u64, member: usize) -> Result<(), String> {
    let fork = world.fork();
    let headers = (0..SHAPE.extents).map(|id| id * SHAPE.pages_per_extent);
    fork.disks[member].borrow_mut().unreadable.extend(headers);
    let rt = Runtime::new(seed);
    let (handle, setup) = (rt.handle(), fork.setup(&rt.handle()));
    let clients = Clients::new(&handle, &fork.asked, &Rc::default());
    rt.block_on(async move {
        let store = open_store(&handle, setup, false).await;
        let store = store.map_err(|error| format!("it does not open: {error}"))?;
        compare(&store.engine, &clients).await
    })
}

#[test]
fn every_command_of_a_commit_and_of_a_filling_may_fail() {
    let step = from_environment("LEVELHEAD_EVERY").unwrap_or(23);
    for script in [Script::Commit, Script::Filling] {
        let runs = every_failure(script, step).unwrap_or_else(|error| panic!("{error}"));
        println!("{script:?}: {runs} stores opened again");
    }
}

#[test]
fn power_may_be_cut_behind_every_command_of_a_commit_and_of_a_filling() {
    let step = from_environment("LEVELHEAD_EVERY").unwrap_or(23);
    for script in [Script::Commit, Script::Filling] {
        let runs = every_cut(script, step).unwrap_or_else(|error| panic!("{error}"));
        println!("{script:?}: {runs} stores opened again");
    }
}
