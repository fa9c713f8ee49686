//! Crash point enumeration: see [`torture::crash_points`].

use runtime::Nanos;
use stacks::host::{Arrangement, JournalPlace};
use torture::crash_points::{KeptBy, Scenario, cut_everywhere, cut_in_slots};
use volume::windows::slot::SlotPolicy;

#[test]
fn power_may_fail_at_any_command_of_a_store_on_one_set() {
    for has_capacitors in [false, true] {
        cut_everywhere(&Scenario::new(Arrangement::Plain, JournalPlace::Beside, has_capacitors));
    }
}

#[test]
fn power_may_fail_at_any_command_of_a_store_with_parity() {
    for has_capacitors in [false, true] {
        cut_everywhere(&Scenario::new(Arrangement::Parity, JournalPlace::Beside, has_capacitors));
    }
}

#[test]
fn power_may_fail_at_any_command_of_a_store_with_its_journal_apart() {
    for arrangement in [Arrangement::Plain, Arrangement::Parity] {
        for has_capacitors in [false, true] {
            cut_everywhere(&Scenario::new(arrangement, JournalPlace::OwnSet, has_capacitors));
        }
    }
}

const CONSTANT: SlotPolicy = SlotPolicy::Constant(Nanos::ZERO);

#[test]
fn power_may_fail_at_any_command_of_a_store_with_windows() {
    for (keeper, slots) in [
        (KeptBy::Host, CONSTANT),
        (KeptBy::Host, SlotPolicy::Dynamic),
        (KeptBy::Drive, CONSTANT),
        (KeptBy::Drive, SlotPolicy::Dynamic),
    ] {
        cut_everywhere(&Scenario::with_windows(keeper, slots, false));
    }
    cut_everywhere(&Scenario::with_windows(KeptBy::Drive, SlotPolicy::Dynamic, true));
}

#[test]
fn power_may_fail_in_any_part_of_a_slot() {
    for keeper in [KeptBy::Host, KeptBy::Drive] {
        for slots in [CONSTANT, SlotPolicy::Dynamic] {
            cut_in_slots(&Scenario::with_windows(keeper, slots, false));
        }
    }
}
