//! Programs and erases that are suspended for demand reads. The numbers of `small_drive` apply: 10
//! us to suspend a program, 20 us an erase, 5 us to resume, 30 us of progress, at most two
//! suspensions of up to 150 us.

use drives::nand::Blocker;

use crate::small_drive::{BACKGROUND, CLIENT, Drive, images, profile, profile_with_suspend, us};

fn suspends(drive: &Drive) -> (u64, u64) {
    let stats = drive.flash.stats();
    (stats.program_suspends, stats.erase_suspends)
}

#[test]
fn a_program_gives_way_and_takes_its_remaining_time_afterwards() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND); // in the array from 5, would end at 206
    let read = drive.read(100, 0, CLIENT);
    assert_eq!(drive.end(read), 100 + 10 + 46);
    assert_eq!(drive.end(program), 206 + 10 + 46 + 5);
    assert_eq!(suspends(&drive), (1, 0));
    let waits = drive.flash.stats().waits(Blocker::Program);
    assert_eq!((waits.reads, waits.waited), (1, us(10)));
    assert_eq!(drive.read_now(drive.page(0, 1, 0)).unwrap().bytes(), images(1)[0].bytes());
}

#[test]
fn an_erase_gives_way_and_takes_its_remaining_time_afterwards() {
    let drive = Drive::new(&profile_with_suspend());
    let erase = drive.erase(0, 0, BACKGROUND);
    let read = drive.read(1_000, 0, CLIENT);
    assert_eq!(drive.end(read), 1_000 + 20 + 46);
    assert_eq!(drive.end(erase), 3_001 + 20 + 46 + 5);
    assert_eq!(suspends(&drive), (0, 1));
    let waits = drive.flash.stats().waits(Blocker::Erase);
    assert_eq!((waits.reads, waits.waited), (1, us(20)));
    let block = drive.block(0, 2);
    assert_eq!(drive.flash.with_array(|array| array.erase_count(block)), 1);
}

#[test]
fn without_suspension_a_read_waits_for_the_whole_operation() {
    let drive = Drive::new(&profile());
    let (program, read) = (drive.program(0, 0, BACKGROUND), drive.read(100, 0, CLIENT));
    assert_eq!((drive.end(program), drive.end(read)), (206, 252));
    let (erase, read) = (drive.erase(1_000, 0, BACKGROUND), drive.read(1_001, 0, CLIENT));
    assert_eq!((drive.end(erase), drive.end(read)), (4_001, 4_047));
    assert_eq!(suspends(&drive), (0, 0));
}

#[test]
fn each_of_the_two_is_suspended_only_if_it_has_a_time_for_it() {
    let mut erases_only = profile_with_suspend();
    erases_only.suspend.as_mut().expect("it suspends").program_us = None;
    let drive = Drive::new(&erases_only);
    let (program, read) = (drive.program(0, 0, BACKGROUND), drive.read(100, 0, CLIENT));
    assert_eq!((drive.end(program), drive.end(read)), (206, 252));
    let (erase, read) = (drive.erase(1_000, 0, BACKGROUND), drive.read(2_000, 0, CLIENT));
    assert_eq!((drive.end(read), drive.end(erase)), (2_000 + 20 + 46, 4_001 + 20 + 46 + 5));
    assert_eq!(suspends(&drive), (0, 1));

    let mut programs_only = profile_with_suspend();
    programs_only.suspend.as_mut().expect("it suspends").erase_us = None;
    let drive = Drive::new(&programs_only);
    let (program, read) = (drive.program(0, 0, BACKGROUND), drive.read(100, 0, CLIENT));
    assert_eq!((drive.end(read), drive.end(program)), (156, 267));
    let (erase, read) = (drive.erase(1_000, 0, BACKGROUND), drive.read(2_000, 0, CLIENT));
    assert_eq!((drive.end(erase), drive.end(read)), (4_001, 4_047));
    assert_eq!(suspends(&drive), (1, 0));
}

#[test]
fn programs_may_give_way_less_often_than_erases() {
    let mut profile = profile_with_suspend();
    profile.suspend.as_mut().expect("it suspends").max_per_program = Some(1);
    let drive = Drive::new(&profile);
    let program = drive.program(0, 0, BACKGROUND);
    let reads = [100, 200].map(|at| drive.read(at, 0, CLIENT));
    assert_eq!(drive.ends(reads), [156, 267 + 46]);
    assert_eq!(drive.end(program), 267);
    let erase = drive.erase(1_000, 0, BACKGROUND);
    let reads = [2_000, 3_000].map(|at| drive.read(at, 0, CLIENT));
    assert_eq!(drive.ends(reads), [2_066, 3_066]);
    assert_eq!(drive.end(erase), 4_001 + 2 * (20 + 46 + 5));
    assert_eq!(suspends(&drive), (1, 2));
}

#[test]
fn nothing_gives_way_to_a_background_read() {
    let drive = Drive::new(&profile_with_suspend());
    let (program, read) = (drive.program(0, 0, BACKGROUND), drive.read(100, 0, BACKGROUND));
    assert_eq!((drive.end(program), drive.end(read)), (206, 252));
    assert_eq!(suspends(&drive), (0, 0));
}

#[test]
fn an_operation_makes_some_progress_before_it_gives_way() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let read = drive.read(10, 0, CLIENT); // in the array since 5: not before 35
    assert_eq!(drive.end(read), 35 + 10 + 46);
    assert_eq!(drive.end(program), 206 + 10 + 46 + 5);
}

#[test]
fn an_operation_makes_some_progress_between_two_suspensions() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let reads = [drive.read(100, 0, CLIENT), drive.read(158, 0, CLIENT)];
    // The first ends at 156; the program resumes at 161 and gives way again at 191.
    assert_eq!(drive.ends(reads), [156, 191 + 10 + 46]);
    assert_eq!(drive.end(program), 206 + 2 * (10 + 46 + 5));
    assert_eq!(suspends(&drive), (2, 0));
}

#[test]
fn reads_that_arrive_while_it_is_suspended_need_no_suspension_of_their_own() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let reads = [100, 105, 120].map(|at| drive.read(at, 0, CLIENT));
    assert_eq!(drive.ends(reads), [156, 202, 248]);
    assert_eq!(drive.end(program), 206 + 10 + 3 * 46 + 5);
    assert_eq!(suspends(&drive), (1, 0));
}

#[test]
fn an_operation_gives_way_only_so_often() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let reads = [100, 200, 300].map(|at| drive.read(at, 0, CLIENT));
    let program_end = 206 + 2 * (10 + 46 + 5);
    assert_eq!(drive.ends(reads), [156, 256, program_end + 46]);
    assert_eq!(drive.end(program), program_end);
    assert_eq!(suspends(&drive), (2, 0));
}

#[test]
fn a_stream_of_reads_keeps_an_operation_suspended_only_so_long() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let reads: Vec<_> = (100..110).map(|at| drive.read(at, 0, CLIENT)).collect();
    // Suspended from 100: reads start until 250. It runs from 299 to 329, is suspended again and
    // resumes at 528 with 76 us left; the last two reads wait for its end.
    let ends = [156, 202, 248, 294, 385, 431, 477, 523, 650, 696];
    assert_eq!(drive.ends(reads), ends);
    assert_eq!(drive.end(program), 604);
    assert_eq!(suspends(&drive), (2, 0));
}

#[test]
fn background_work_does_not_slip_in_while_an_operation_is_suspended() {
    let drive = Drive::new(&profile_with_suspend());
    let program = drive.program(0, 0, BACKGROUND);
    let background = drive.read(50, 0, BACKGROUND);
    let demand = drive.read(100, 0, CLIENT);
    assert_eq!((drive.end(demand), drive.end(program)), (156, 267));
    assert_eq!(drive.end(background), 267 + 46);
}
