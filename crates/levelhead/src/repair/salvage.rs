//! Salvage of a store that does not open: its files are read page by page, inside a separate
//! runtime, and the pairs are written to a new store.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use block::{BlockDevice, SetShape};
use engine::{Engine, IndexState, PageFault, PageNo, Salvage};
use files::FileOptions;
use runtime::{Handle, Shared};
use volume::Volume;

use super::infer_identity;
use crate::checkpoint::Copy;
use crate::device::Device;
use crate::device::open_files::{file_options, open_files};
use crate::directory;
use crate::directory::capacity::of_data;
use crate::directory::identity::Identity;
use crate::drive::first_byte;
use crate::error::Error;
use crate::error::place::Place;
use crate::file_engine::Files;
use crate::options::{Options, check};
use crate::reading::Pair;
use crate::report::{Finding, Report, Salvaged};
use crate::set_up::{ranges, setup, volume_setup};
use crate::store_runtime::{drive, real_options};

/// The facts that are known before the first pair is copied.
struct Found {
    damaged: Vec<(PageNo, PageFault)>,
    place: Place,
    capacity_of_data: u64,
    index: IndexState,
    missing_log_groups: u64,
    is_empty: bool,
    unsure: u64,
    unordered: u64,
    lost: Vec<Box<[u8]>>,
    older: Vec<Box<[u8]>>,
}

/// The salvage inside the runtime. The reader of the next pairs takes it out meanwhile.
type Taken = Rc<RefCell<Option<Salvage<Files>>>>;
type Reader = Shared<Result<Old, Error>>;

/// A store whose pairs are being copied.
struct Old {
    taken: Taken,
    place: Place,
    capacity_of_data: u64,
}

/// Saves the pairs of the store in `directories`, which does not open because of `why`.
pub(crate) fn salvage(
    directories: &[PathBuf],
    into: &Path,
    options: &Options,
    why: Error,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, Error> {
    check(directories.len(), options)?;
    let identities = infer_identity::identities(directories)?;
    let mut best = None;
    // The first identity with which an index is found is the right one. Each attempt needs
    // exclusive access to the files, so the first identity is tried again at the end if none has an
    // index.
    for identity in identities.iter().chain(identities.first().filter(|_| identities.len() > 1)) {
        drop(best.take());
        let (reader, found) = look(directories, options, identity)?;
        let has_index = found.index != IndexState::Lost;
        best = Some((reader, found));
        if has_index {
            break;
        }
    }
    let Some((reader, found)) = best.filter(|(_, found)| !found.is_empty) else { return Err(why) };
    let copy = Copy::begin(into, options, found.capacity_of_data)?;
    let mut report = Report::default();
    take_out(&reader, &copy, &|_| true, &mut report, progress)?;
    copy.finish()?;
    let damaged = found.damaged.iter().map(|(page, fault)| found.place.damaged(*page, fault));
    let errors = std::iter::once(why.clone()).chain(damaged);
    report.findings = errors
        .map(|error| Finding { error, after: None, before: None, is_redundancy: false })
        .collect();
    report.salvaged = Some(salvaged(why, found));
    Ok(report)
}

/// Adds to the copy of a store that opens: the pairs, found in its pages, of those key ranges whose
/// index cannot be read.
pub(crate) fn rescue(
    directories: &[PathBuf],
    copy: &Copy,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let identity = directory::read_all(directories)?;
    let identity = identity.ok_or_else(|| Error::Missing("the store is gone".to_owned()))?;
    let (reader, _) = look(directories, options, &identity)?;
    let parts = std::mem::take(&mut report.unreadable);
    let is_wanted = |key: &[u8]| parts.iter().any(|part| part.covers(key));
    let before = report.pairs;
    take_out(&reader, copy, &is_wanted, report, progress)?;
    report.rescued = report.pairs - before;
    report.unreadable = parts;
    Ok(())
}

/// Opens the files as the store that `identity` describes. Returns a reader and its findings.
fn look(
    directories: &[PathBuf],
    options: &Options,
    identity: &Identity,
) -> Result<(Arc<Reader>, Found), Error> {
    let (paths, wanted, identity) = (directories.to_vec(), options.clone(), identity.clone());
    let shared = Shared::new(real_options(options), |handle| {
        let handle = handle.clone();
        async move { begin(handle, paths, wanted, identity).await }
    });
    let shared = shared.map_err(|error| Error::no_runtime(&error))?;
    let found = shared.call(|root| {
        let found = root.as_ref().map(found).map_err(Clone::clone);
        async move { found }
    })?;
    Ok((Arc::new(shared), found))
}

fn found(old: &Old) -> Found {
    let salvage = old.taken.borrow();
    let salvage = salvage.as_ref().expect("nobody takes anything out yet");
    Found {
        damaged: salvage.damaged().to_vec(),
        place: old.place.clone(),
        capacity_of_data: old.capacity_of_data,
        index: salvage.index,
        missing_log_groups: salvage.missing_log_groups,
        is_empty: salvage.is_empty(),
        unsure: salvage.unsure(),
        unordered: salvage.unordered,
        lost: salvage.lost.clone(),
        older: salvage.older.clone(),
    }
}

async fn begin(
    handle: Handle,
    directories: Vec<PathBuf>,
    options: Options,
    identity: Identity,
) -> Result<Old, Error> {
    let files: Vec<PathBuf> = directories.iter().map(|d| directory::data_file(d)).collect();
    let bears_damage = files.len() > 1;
    let file_options = FileOptions { read_only: true, bears_damage, ..file_options() };
    let device = open_files(&handle, &files, file_options).await?;
    let device = Device::new(device).refusing_writes();
    let place = Place { files: files.into(), page_bytes: u64::from(identity.page_bytes) };
    let bytes_of = |(set, path): (&SetShape, &PathBuf)| {
        (set.blocks * u64::from(block::BLOCK_BYTES)).saturating_sub(first_byte(path))
    };
    let sets = device.sets();
    let shortest = sets.iter().zip(place.files.iter()).map(bytes_of).min().unwrap_or(0);
    let there = shortest / identity.extent_bytes;
    // Of a truncated file, the remaining extents.
    let capacity_bytes = identity.capacity_bytes.min(there * identity.extent_bytes);
    let identity = Identity { capacity_bytes, ..identity };
    if identity.extents() == 0 {
        return Err(Error::Missing("the files are shorter than a part of a store".to_owned()));
    }
    let mut members = ranges(&device, &identity, &place);
    let files = if members.len() == 1 {
        Files::One(members.swap_remove(0))
    } else {
        let mut setup = volume_setup(&handle, members, &options, &identity);
        setup.options.last_resort = true;
        let volume = Box::pin(Volume::recover(setup)).await;
        Files::Many(volume.map_err(|error| Error::of_volume(&error, &place))?)
    };
    let setup = setup(&handle, files, &options, &identity);
    let salvage = Box::pin(Engine::salvage(setup, |_| ())).await;
    let salvage = salvage.map_err(|error| Error::of_opening(&error, &place, &device.troubles()))?;
    let capacity_of_data = of_data(directories.len(), identity.capacity_bytes);
    Ok(Old { taken: Rc::new(RefCell::new(Some(salvage))), place, capacity_of_data })
}

/// Writes the wanted pairs of a reader to a new store.
fn take_out(
    reader: &Arc<Reader>,
    copy: &Copy,
    is_wanted: &dyn Fn(&[u8]) -> bool,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let driven = Driven { reader, driver: Some(drive(reader)?) };
    pour(driven.reader, copy, is_wanted, report, progress)
}

/// A reader and the thread that drives it. Dropping this ends the thread, also after a panic in
/// `progress`; else the thread would keep the files open forever.
struct Driven<'a> {
    reader: &'a Reader,
    driver: Option<JoinHandle<()>>,
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        self.reader.stop();
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
    }
}

fn pour(
    reader: &Reader,
    copy: &Copy,
    is_wanted: &dyn Fn(&[u8]) -> bool,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    while let Some(pairs) = next(reader) {
        for (key, value) in pairs.into_iter().filter(|(key, _)| is_wanted(key)) {
            copy.put(&key, &value)?;
            report.pairs += 1;
            report.bytes += (key.len() + value.len()) as u64;
        }
        progress(report.pairs);
    }
    Ok(())
}

/// Returns the next pairs, in no particular order.
fn next(reader: &Reader) -> Option<Vec<Pair>> {
    reader.call(|root| {
        let taken = root.as_ref().map(|old| Rc::clone(&old.taken)).ok();
        async move {
            let taken = taken?;
            let mut salvage = taken.take()?;
            let saved = salvage.next().await;
            taken.replace(Some(salvage));
            Some(saved?.into_iter().map(|(key, value)| (key, value.into())).collect())
        }
    })
}

fn salvaged(why: Error, found: Found) -> Salvaged {
    let doubts = doubts(&found);
    let Found { unsure, lost, older, .. } = found;
    Salvaged { why, doubts, unsure, lost, older }
}

/// Describes the doubts about the saved pairs, as text.
fn doubts(found: &Found) -> Vec<String> {
    let mut doubts = Vec::new();
    match found.index {
        IndexState::Whole => {}
        IndexState::Earlier => doubts.push(
            "the manifest could be read up to a damaged edit only: keys that were deleted behind it may be back".to_owned(),
        ),
        IndexState::Lost => doubts.push(
            "no checkpoint of the manifest is whole: keys that were deleted may be back, unless the log still had their deletion".to_owned(),
        ),
    }
    if found.missing_log_groups > 0 {
        let groups = found.missing_log_groups;
        doubts.push(format!(
            "{groups} groups of the log are damaged or gone (the last one may be what a power cut left unfinished): what was written in them is not there, \
             older versions of its keys may stand for it, and what was deleted in them may be back; of a batch parts may be there"
        ));
    }
    if !found.older.is_empty() {
        let keys = found.older.len();
        doubts.push(format!("{keys} keys have an older value, because the newest cannot be read"));
    }
    if !found.lost.is_empty() {
        let keys = found.lost.len();
        doubts.push(format!("{keys} keys had a value of which nothing can be read"));
    }
    if found.unordered > 0 {
        let keys = found.unordered;
        doubts.push(format!(
            "{keys} keys have a value that stood beside them in a page of the index, of which nothing says whether it is the newest"
        ));
    }
    if found.unsure > 0 {
        let pairs = found.unsure;
        doubts.push(format!("of {pairs} pairs nothing says whether they were deleted"));
    }
    doubts
}
