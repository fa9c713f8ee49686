//! Checks of the checker: each planted bug must be caught by some trial, by its effect.
//!
//! `LEVELHEAD_FAULT=N` plants only the bug with the number N in the output of the test.
//! `LEVELHEAD_SEED=N` runs one trial.

use drives::ssd::Fault as InDrive;
use engine::Fault as InEngine;
use stacks::host::{Arrangement, JournalPlace};
use testkit::fuzz::from_environment;
use testkit::trial::Kind;
use torture::{Fault, Shape, outcome};
use volume::Fault as InVolume;

/// The number of seeds within which a fault must be caught.
const WITHIN: u64 = 300;

/// The storage below a store.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The arrangement of the data, and the place of the journal.
    On(Arrangement, JournalPlace),
    /// A volume with windows that the host keeps.
    Windows,
}

impl Place {
    fn shape(self, seed: u64) -> Shape {
        match self {
            Self::On(arrangement, journal) => Shape::of(seed, arrangement, journal),
            Self::Windows => Shape::windows_of_seed(seed),
        }
    }
}

/// Returns the faults that matter on hosts, the storage to plant each on, and the kinds of
/// complaint that count as caught. Panics do not count, nor do complaints that also occur without
/// the fault.
fn faults() -> Vec<(Fault, Place, &'static [Kind])> {
    let lost: &[Kind] = &[Kind::Lost, Kind::Stale];
    // A journal is checked as a whole when it is read, so the data that it refers to is found or
    // missing as a whole.
    let gone: &[Kind] = &[Kind::Lost, Kind::Stale, Kind::Unopened, Kind::Corrupt, Kind::Iterator];
    let (plain, windows) = (Place::On(Arrangement::Plain, JournalPlace::Beside), Place::Windows);
    let parity = Place::On(Arrangement::Parity, JournalPlace::Beside);
    let plain_apart = Place::On(Arrangement::Plain, JournalPlace::OwnSet);
    let parity_apart = Place::On(Arrangement::Parity, JournalPlace::OwnSet);
    vec![
        (Fault::Engine(InEngine::AcknowledgeEarly), plain, lost),
        (Fault::Engine(InEngine::DeleteNotLogged), plain, lost),
        (Fault::Engine(InEngine::TakeTornGroup), plain, &[Kind::Unopened]),
        (Fault::Engine(InEngine::TrimLogEarly), plain, gone),
        (Fault::Engine(InEngine::CommitBeforeTables), plain, &[Kind::Unopened, Kind::Corrupt]),
        (Fault::Engine(InEngine::ReleaseBeforeNoted), plain, &[Kind::Unopened, Kind::Corrupt]),
        (Fault::Engine(InEngine::TrimLogBeforeCommit), plain, gone),
        (Fault::Engine(InEngine::TrimLogBeforeCommit), parity_apart, gone),
        (Fault::Engine(InEngine::DropTombstonesEarly), plain, &[Kind::Stale, Kind::Iterator]),
        (Fault::Drive(InDrive::FlushTooEarly), plain, gone),
        (Fault::Drive(InDrive::DumpWithoutBuffer), plain, gone),
        (Fault::Volume(InVolume::ParityLeftOut), parity, gone),
        (Fault::Volume(InVolume::ParityNotRotated), parity, gone),
        (Fault::Volume(InVolume::SyncAllButOne), parity, gone),
        (Fault::Volume(InVolume::BelieveStaleExtents), parity, gone),
        (Fault::Engine(InEngine::AcknowledgeEarly), parity, lost),
        (Fault::Engine(InEngine::CommitBeforeTables), parity, &[Kind::Unopened, Kind::Corrupt]),
        (Fault::Engine(InEngine::AcknowledgeEarly), plain_apart, lost),
        (Fault::Engine(InEngine::TrimLogEarly), plain_apart, gone),
        (
            Fault::Engine(InEngine::CommitBeforeTables),
            plain_apart,
            &[Kind::Unopened, Kind::Corrupt],
        ),
        (
            Fault::Engine(InEngine::CommitBeforeTables),
            parity_apart,
            &[Kind::Unopened, Kind::Corrupt],
        ),
        (Fault::Engine(InEngine::CheckpointBeforeDurable), windows, gone),
        (Fault::Engine(InEngine::TrimLogBeforeCommit), windows, gone),
        (Fault::Engine(InEngine::CommitBeforeTables), windows, gone),
        (Fault::Volume(InVolume::SyncWithoutSlots), windows, gone),
        // The write hole: a stripe with only some chunks written is read through parity.
        (Fault::Volume(InVolume::DropImagesEarly), windows, &[Kind::Corrupt, Kind::Iterator]),
        (Fault::Volume(InVolume::BelieveStaleExtents), windows, gone),
        (Fault::Volume(InVolume::ReadBusyMembers), windows, &[Kind::Window]),
        (Fault::Volume(InVolume::EndSlotsEarly), windows, &[Kind::Window]),
    ]
}

#[test]
fn every_planted_fault_is_caught_by_what_it_does() {
    let only = from_environment("LEVELHEAD_FAULT");
    let seeds = from_environment("LEVELHEAD_SEED").map_or(0..WITHIN, |seed| seed..seed + 1);
    let faults = (0..).zip(faults());
    for (number, (fault, place, kinds)) in
        faults.filter(|(number, _)| only.is_none_or(|only| only == *number))
    {
        let mut others = 0;
        let caught = seeds.clone().find_map(|seed| {
            let shape = || place.shape(seed);
            let found = outcome(seed, shape, Some(fault));
            let complaint = found.as_ref().ok().and_then(|found| found.as_ref().err());
            let is_it = complaint.is_some_and(|complaint| kinds.contains(&complaint.kind));
            others += u64::from(!is_it && !matches!(found, Ok(Ok(_))));
            let complaint = complaint.filter(|_| is_it)?.to_string();
            matches!(outcome(seed, shape, None), Ok(Ok(_))).then_some((seed, complaint))
        });
        let Some((seed, complaint)) = caught else {
            panic!(
                "{fault:?} on {place:?} was not caught as {kinds:?}, and {others} times as something else\n\
                 replay: LEVELHEAD_FAULT={number} cargo test -p torture --test trials -- --nocapture planted"
            );
        };
        let line = complaint.lines().next().unwrap_or_default();
        println!(
            "{number} {fault:?} on {place:?}: seed {seed}, after {others} other complaints: {line}"
        );
    }
}
