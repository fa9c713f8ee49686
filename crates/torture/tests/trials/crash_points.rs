//! Crash points enumerated: see [`torture::crash_points`].

use host::{Arrangement, JournalPlace};
use torture::crash_points::{Scenario, cut_everywhere};

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
