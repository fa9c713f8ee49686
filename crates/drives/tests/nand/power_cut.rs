//! Power cuts: operations in the array end done, not done or torn; others leave no trace.

use drives::nand::{CutReport, FlashProfile, NandArray, ReadError};
use runtime::{Nanos, PageImage, Rng};

use crate::small_drive::{
    BACKGROUND, CLIENT, Drive, fill, images, profile, profile_of, profile_with_suspend, us,
};

const SEEDS: u64 = 200;
const NEW: &[u8] = b"a page that is programmed while the power fails";

/// Programs three pages of block 1 of die 0; a fourth is in flight, a fifth waits.
fn programming(profile: &FlashProfile) -> Drive {
    let drive = Drive::new(profile);
    for index in 0..3 {
        drive.program_now(drive.page(0, 1, index), images(1));
    }
    for (index, contents) in [(3, NEW), (4, b"waits")] {
        let image = vec![PageImage::new(contents)];
        drop(drive.flash.program(drive.page(0, 1, index), image, BACKGROUND));
    }
    drive
}

/// Cuts the power `span` from now.
fn cut_after(drive: &Drive, span: Nanos, seed: u64) -> (NandArray, CutReport) {
    let deadline = drive.rt.handle().now() + span;
    drop(drive.rt.handle().spawn("clock", drive.rt.handle().sleep_until(deadline)));
    drive.rt.run_until(deadline);
    assert_eq!(drive.rt.handle().now(), deadline);
    drive.flash.power_cut(&mut Rng::new(seed))
}

/// Returns how the only operation in flight ended.
fn the_only_end(report: CutReport) -> usize {
    match report {
        CutReport { done: 1, not_done: 0, torn: 0 } => 0,
        CutReport { done: 0, not_done: 1, torn: 0 } => 1,
        CutReport { done: 0, not_done: 0, torn: 1 } => 2,
        _ => panic!("one operation was in the array: {report:?}"),
    }
}

fn assert_all_seen(ends: [u64; 3]) {
    assert!(ends.iter().all(|end| *end > SEEDS / 5), "each in a third of {SEEDS}: {ends:?}");
}

/// Checks the outcome of a program that was in the array when the power failed, after `span`.
fn check_programs_in_flight(profile: &FlashProfile, is_read: bool) {
    let (mut ends, mut unreadable, mut garbled) = ([0; 3], 0, 0);
    for seed in 0..SEEDS {
        let drive = programming(profile);
        if is_read {
            drop(drive.flash.read(drive.page(0, 0, 0), CLIENT)); // suspends the program at 35
        }
        let (array, report) = cut_after(&drive, us(70), seed);
        let end = the_only_end(report);
        ends[end] += 1;
        let again = Drive::power_up(profile, array);
        let block = again.block(0, 1);
        let pages = again.flash.with_array(|array| array.programmed_pages(block));
        assert_eq!(pages, [4, 3, 4][end], "the page that waited left no trace");
        for index in 0..3 {
            let survivor = again.read_now(again.page(0, 1, index)).unwrap();
            assert_eq!(survivor.bytes(), images(1)[0].bytes());
        }
        match (end, again.read_now(again.page(0, 1, 3))) {
            (0, Ok(image)) => assert_eq!(image.bytes(), NEW),
            (1, Err(error)) => assert_eq!(error, ReadError::Erased),
            (2, Err(error)) => {
                assert_eq!(error, ReadError::Uncorrectable);
                unreadable += 1;
            }
            (2, Ok(image)) => garbled += u32::from(image.bytes() != NEW),
            (end, result) => panic!("seed {seed}: end {end}, but {result:?}"),
        }
        let next = again.page(0, 1, pages);
        again.program_now(next, images(1));
        assert!(again.read_now(next).is_ok(), "the block goes on after the torn page");
    }
    assert_all_seen(ends);
    assert!(unreadable > 0 && garbled > 0, "{unreadable} unreadable, {garbled} garbled");
}

#[test]
fn a_program_in_flight_ends_done_not_done_or_torn() {
    check_programs_in_flight(&profile(), false);
}

#[test]
fn a_suspended_program_is_in_flight_too() {
    check_programs_in_flight(&profile_with_suspend(), true);
}

#[test]
fn an_erase_in_flight_ends_done_not_done_or_torn() {
    let mut ends = [0; 3];
    for seed in 0..SEEDS {
        let drive = Drive::new(&profile());
        let block = drive.block(0, 0);
        drop(drive.flash.erase(block, BACKGROUND));
        drop(drive.flash.erase(drive.block(0, 1), BACKGROUND)); // waits
        let (array, report) = cut_after(&drive, us(1_000), seed);
        let end = the_only_end(report);
        ends[end] += 1;
        assert_eq!(array.erase_count(block), [1, 0, 1][end]);
        assert_eq!(array.needs_erase(block), end == 2);
        assert_eq!(array.erase_count(drive.block(0, 1)), 0);
        let again = Drive::power_up(&profile(), array);
        let result = again.read_now(again.page(0, 0, 5)).map(|image| image.bytes().to_vec());
        let survivor = Ok(images(6)[5].bytes().to_vec());
        let expected = [Err(ReadError::Erased), survivor, Err(ReadError::Uncorrectable)];
        assert_eq!(result, expected[end]);
        again.rt.block_on(again.flash.erase(block, BACKGROUND));
        assert!(!again.flash.with_array(|array| array.needs_erase(block)));
        again.program_now(again.page(0, 0, 0), images(1));
    }
    assert_all_seen(ends);
}

#[test]
#[should_panic(expected = "block 0 must be erased first")]
fn a_torn_erase_needs_another_before_the_next_program() {
    for seed in 0..SEEDS {
        let drive = Drive::new(&profile());
        drop(drive.flash.erase(drive.block(0, 0), BACKGROUND));
        let (array, report) = cut_after(&drive, us(1_000), seed);
        if the_only_end(report) == 2 {
            let again = Drive::power_up(&profile(), array);
            again.program_now(again.page(0, 0, 0), images(1));
        }
    }
}

#[test]
fn a_report_adds_up_over_all_dies() {
    let mut sum = [0; 3];
    for seed in 0..SEEDS {
        let drive = Drive::new(&profile_of(2, 4));
        let programs = [0, 1, 2].map(|die| drive.program(0, die, BACKGROUND));
        let erases = [3, 4].map(|die| drive.erase(0, die, BACKGROUND));
        let reads = [5, 6].map(|die| drive.read(0, die, CLIENT)); // not counted
        let waiting = drive.erase(1, 0, BACKGROUND); // not counted
        let (_, report) = cut_after(&drive, us(30), seed);
        assert_eq!(report.done + report.not_done + report.torn, 5);
        sum[0] += u64::from(report.done);
        sum[1] += u64::from(report.not_done);
        sum[2] += u64::from(report.torn);
        drop((programs, erases, reads, waiting));
    }
    assert_all_seen(sum.map(|n| n / 5));
}

#[test]
fn a_program_whose_data_is_still_on_the_bus_leaves_no_trace() {
    for seed in 0..20 {
        let drive = programming(&profile());
        let (array, report) = cut_after(&drive, us(4), seed);
        assert_eq!(report, CutReport::default());
        assert_eq!(array.programmed_pages(drive.block(0, 1)), 3);
    }
}

#[test]
fn an_idle_drive_keeps_everything() {
    let drive = Drive::new(&profile());
    let (mut array, report) = drive.flash.power_cut(&mut Rng::new(1));
    assert_eq!(report, CutReport::default());
    let page = drive.page(0, 0, 11);
    assert_eq!(array.read(page).unwrap().bytes(), images(12)[11].bytes());
}

#[test]
fn no_operation_completes_after_the_power_is_cut() {
    for seed in 0..20 {
        let drive = Drive::new(&profile_of(2, 2));
        let program = drive.program(0, 0, BACKGROUND);
        let erase = drive.erase(0, 1, BACKGROUND);
        let read = drive.read(0, 2, CLIENT);
        let (_, report) = cut_after(&drive, us(30), seed);
        assert_eq!(report.done + report.not_done + report.torn, 2);
        let late = drive.read(31, 3, CLIENT);
        drive.rt.run_until(us(10_000));
        assert!(!program.is_finished() && !erase.is_finished() && !read.is_finished());
        assert!(!late.is_finished());
    }
}

#[test]
fn a_program_submitted_after_the_cut_is_lost_without_a_word() {
    let drive = Drive::new(&profile());
    drive.program_now(drive.page(0, 1, 0), images(1));
    let _ = drive.flash.power_cut(&mut Rng::new(1));
    let late = drive.flash.program(drive.page(0, 1, 1), images(1), BACKGROUND);
    drop(late);
    drive.rt.run_until(us(10_000));
    assert_eq!(drive.flash.stats().total().pages_programmed, 1);
}

#[test]
#[should_panic(expected = "the power is off already")]
fn the_power_is_cut_once() {
    let drive = Drive::new(&profile());
    let _ = drive.flash.power_cut(&mut Rng::new(1));
    let _ = drive.flash.power_cut(&mut Rng::new(1));
}

#[test]
fn wear_survives_a_cut() {
    let drive = Drive::new(&profile());
    let block = drive.block(0, 0);
    for _ in 0..3 {
        drive.rt.block_on(drive.flash.erase(block, BACKGROUND));
        drive.flash.with_array(|array| fill(array, block));
        assert!(drive.read_now(drive.page(0, 0, 0)).is_ok());
    }
    let (array, _) = drive.flash.power_cut(&mut Rng::new(1));
    assert_eq!((array.erase_count(block), array.read_count(block)), (3, 1));
}
