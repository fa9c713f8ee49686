//! Tests of the tests: some trial must catch each planted fault by its symptoms.

use volume::Fault;

use crate::model::complaint_or_tally;
use crate::trial::World;

/// Number of seeds within which a fault must show. Most show at once, the last one at seed 875.
const WITHIN: u64 = 2_000;

/// Returns the symptoms of a fault: parts of complaint messages. Other complaints do not count.
fn symptoms(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::ParityNotRotated
        | Fault::ServeBeforeFilled
        | Fault::BelieveStaleExtents
        | Fault::ParityLeftOut
        | Fault::ForgetAbsence
        | Fault::FillWithoutRecheck
        | Fault::LostAsEmpty
        | Fault::RunsWithoutNumbers
        | Fault::MixGenerations => &["wrong bytes"],
        // Old headers or discards overwrite the next life of the extent.
        Fault::ReleaseUnderFill | Fault::SyncAllButOne => {
            &["wrong bytes", "cannot be read", "is gone", "was synced"]
        }
        Fault::DropImagesEarly => &["wrong bytes", "cannot be read", "is gone"],
        Fault::SyncWithoutSlots => &["wrong bytes", "cannot be read", "was synced"],
        Fault::NoteTooMany
        | Fault::UnreadAsBlank
        | Fault::UnreadAsUnwritten
        | Fault::ForgetOpenings
        | Fault::AcknowledgeBeforeNote
        | Fault::BelieveReleased
        | Fault::BelieveReplaced
        | Fault::GiveUpAtOnce
        | Fault::LeaveStrayHeaders => unreachable!("faults.rs and everything/planted.rs have them"),
        Fault::ReadBusyMembers => &["reads went to busy members"],
        Fault::EndSlotsEarly => &["writes ended in DTWIN"],
    }
}

#[test]
fn every_planted_fault_is_caught_by_what_it_does() {
    for fault in Fault::ALL.into_iter().filter(|fault| !fault.is_of_failures()) {
        let caught = (0..WITHIN).any(|seed| {
            let world_of =
                if fault.is_of_windows() { World::with_windows_of_seed } else { World::of_seed };
            let complaint = complaint_or_tally(seed, world_of(seed), Some(fault)).err();
            let Some(text) = complaint else { return false };
            let is_it = symptoms(fault).iter().any(|symptom| text.contains(symptom));
            let shown: String =
                text.split("}: ").last().unwrap_or_default().chars().take(60).collect();
            println!("{fault:?}: seed {seed}{}: {shown}", if is_it { "" } else { " (not it)" });
            // A complaint that also occurs without the fault does not count.
            is_it && complaint_or_tally(seed, world_of(seed), None).is_ok()
        });
        assert!(caught, "{fault:?} was not caught as one of {:?}", symptoms(fault));
    }
}
