//! The order of operations on a die, and the causes of demand read waits.

use drives::nand::Blocker;
use runtime::IoClass;

use crate::small_drive::{BACKGROUND, CLIENT, Drive, profile, profile_of, us};

#[test]
fn demand_reads_pass_background_reads_that_wait() {
    let drive = Drive::new(&profile());
    let first = drive.read(0, 0, BACKGROUND);
    let background = [1, 2].map(|at| drive.read(at, 0, BACKGROUND));
    let demand = drive.read(3, 0, CLIENT);
    assert_eq!(drive.ends([first, demand]), [46, 92]);
    assert_eq!(drive.ends(background), [138, 184]);
}

#[test]
fn demand_reads_pass_programs_and_erases_that_wait() {
    let drive = Drive::new(&profile());
    let first = drive.read(0, 0, BACKGROUND);
    let (program, erase) = (drive.program(1, 0, BACKGROUND), drive.erase(2, 0, BACKGROUND));
    let demand = drive.read(3, 0, CLIENT);
    assert_eq!(drive.ends([first, demand]), [46, 92]);
    assert_eq!((drive.end(program), drive.end(erase)), (298, 3_299));
}

#[test]
fn prefetches_come_between_demand_and_background() {
    let drive = Drive::new(&profile());
    let classes = [CLIENT, BACKGROUND, IoClass::ValuePrefetch, CLIENT];
    let reads = [0, 1, 2, 3].map(|at| drive.read(at, 0, classes[at as usize]));
    assert_eq!(drive.ends(reads), [46, 184, 138, 92]);
}

#[test]
fn a_prefetch_that_is_waited_for_is_on_demand() {
    let drive = Drive::new(&profile());
    let first = drive.read(0, 0, CLIENT);
    let prefetches = [1, 2].map(|at| drive.read_page(u64::from(at), 0, at, IoClass::ValuePrefetch));
    let demand = drive.read(3, 0, CLIENT);
    drive.promote(4, 0, 2);
    // No read of that page is in flight.
    drive.promote(4, 0, 9);
    let late = drive.read(5, 0, CLIENT);
    assert_eq!(drive.ends([first, demand, late]), [46, 92, 184]);
    assert_eq!(drive.ends(prefetches), [230, 138]);
}

#[test]
fn a_prefetch_on_the_bus_does_not_keep_demand_reads_from_its_die() {
    let mut profile = profile_of(1, 4);
    profile.timing.channel_mb_per_s = 200.0; // 25 us a page: three reading dies fill the bus
    let drive = Drive::new(&profile);
    let mut reads = Vec::new();
    for die in 1..4 {
        reads.extend((0..200).map(|_| drive.read(0, die, CLIENT)));
    }
    let prefetch = drive.read(10, 0, IoClass::ValuePrefetch);
    let behind = drive.read(20, 0, CLIENT);
    let (prefetch, behind) = (drive.end(prefetch), drive.end(behind));
    assert!(behind < 600, "the prefetch ended at {prefetch} us, the read behind it at {behind} us");
}

#[test]
fn background_work_passed_over_until_its_deadline_goes_first() {
    let mut profile = profile();
    profile.timing.background_deadline_us = 100.0;
    let drive = Drive::new(&profile);
    let reads: Vec<_> = (0..6).map(|at| drive.read(at, 0, CLIENT)).collect();
    let program = drive.program(6, 0, BACKGROUND); // first passed over at 46, overdue at 146
    assert_eq!(drive.ends(reads), [46, 92, 138, 184, 436, 482]);
    assert_eq!(drive.end(program), 184 + 206);
}

#[test]
fn waiting_behind_other_background_work_is_not_being_passed_over() {
    let mut profile = profile();
    profile.timing.background_deadline_us = 100.0;
    let drive = Drive::new(&profile);
    let background: Vec<_> = (0..12).map(|_| drive.read(0, 0, BACKGROUND)).collect();
    let demand = drive.read(300, 0, CLIENT);
    // The seventh background read ends at 322; the others are 322 us old, but they wait.
    assert_eq!(drive.end(demand), 322 + 46);
    assert_eq!(drive.ends(background).into_iter().max(), Some(13 * 46));
}

#[test]
fn a_program_gets_the_bus_although_demand_reads_never_stop() {
    let mut profile = profile_of(1, 4);
    profile.timing.channel_mb_per_s = 200.0; // 25 us a page: three reading dies fill the bus
    let drive = Drive::new(&profile);
    let mut reads = Vec::new();
    for die in 1..4 {
        reads.extend((0..200).map(|_| drive.read(0, die, CLIENT)));
    }
    let program = drive.program(10, 0, BACKGROUND);
    let behind = drive.read(20, 0, CLIENT);
    let (program, behind) = (drive.end(program), drive.end(behind));
    assert!(program < 1_000, "the program ended at {program} us");
    assert!(behind < 1_200, "the read behind it ended at {behind} us");
}

#[test]
fn background_work_before_its_deadline_is_passed_over() {
    let drive = Drive::new(&profile());
    let reads: Vec<_> = (0..6).map(|at| drive.read(at, 0, CLIENT)).collect();
    let program = drive.program(6, 0, BACKGROUND);
    assert_eq!(drive.ends(reads), [46, 92, 138, 184, 230, 276]);
    assert_eq!(drive.end(program), 276 + 206);
}

#[test]
fn in_a_write_stall_reads_get_as_long_a_turn_as_the_program_before_took() {
    let drive = Drive::new(&profile());
    drive.flash.set_write_stall(true);
    let reads: Vec<_> = (0..12).map(|at| drive.read(at, 0, CLIENT)).collect();
    let program = drive.program(6, 0, BACKGROUND);
    let erase = drive.erase(7, 0, BACKGROUND);
    assert_eq!(drive.end(program), 92 + 206);
    // The erase was overtaken from 298 on, for as long as the program took.
    assert_eq!(drive.end(erase), 528 + 3_001);
    assert_eq!(drive.ends(reads)[..8], [46, 92, 344, 390, 436, 482, 528, 3_575]);
}

#[test]
fn wait_statistics_name_what_a_demand_read_found() {
    let drive = Drive::new(&profile());
    let reads = [
        drive.read(0, 0, CLIENT),         // finds nothing
        drive.read(10, 0, CLIENT),        // finds a read, waits for 36
        drive.read(1_003, 0, CLIENT),     // finds a program on the bus, waits for 203
        drive.read(2_106, 0, CLIENT),     // finds a program in the array, waits for 100
        drive.read(3_001, 0, CLIENT),     // finds an erase, waits for 3000
        drive.read(7_000, 0, BACKGROUND), // is not counted
    ];
    let programs = [drive.program(1_000, 0, BACKGROUND)];
    let (flash, handle) = (drive.flash.clone(), drive.rt.handle());
    let second = drive.page(0, 1, 1);
    drive.rt.handle().spawn("second program", async move {
        handle.sleep_until(us(2_000)).await;
        flash.program(second, crate::small_drive::images(1), BACKGROUND).await;
    });
    let erase = drive.erase(3_000, 0, BACKGROUND);
    assert_eq!(drive.ends(reads), [46, 92, 1_252, 2_252, 6_047, 7_046]);
    assert_eq!((drive.ends(programs), drive.end(erase)), (vec![1_206], 6_001));
    let waits = |blocker| {
        let waits = drive.flash.stats().waits(blocker);
        (waits.reads, waits.waited)
    };
    assert_eq!(waits(Blocker::None), (1, us(0)));
    assert_eq!(waits(Blocker::Read), (1, us(36)));
    assert_eq!(waits(Blocker::Program), (2, us(303)));
    assert_eq!(waits(Blocker::Erase), (1, us(3_000)));
}
