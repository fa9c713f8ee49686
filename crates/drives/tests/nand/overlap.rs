//! Concurrent reads of one die: independent planes, and cache read.

use drives::nand::{FlashProfile, ReadOverlap, Timing};

use crate::small_drive::{BACKGROUND, CLIENT, Drive, profile, profile_with_suspend};

fn overlapping(base: FlashProfile, planes: u32, overlap: Option<ReadOverlap>) -> FlashProfile {
    let mut profile = FlashProfile { overlap, ..base };
    profile.geometry.planes_per_die = planes;
    profile
}

const INDEPENDENT: ReadOverlap = ReadOverlap { independent_planes: true, cache_us: None };
const CACHE: ReadOverlap = ReadOverlap { independent_planes: false, cache_us: Some(2.0) };

/// Reads pages of block 0 of die 0, one each microsecond. Returns their end times.
fn ends(profile: &FlashProfile, pages: &[u32]) -> Vec<u64> {
    let drive = Drive::new(profile);
    let reads: Vec<_> =
        (0..).zip(pages).map(|(at, page)| drive.read_page(at, 0, *page, CLIENT)).collect();
    drive.ends(reads)
}

#[test]
fn planes_sense_side_by_side_and_share_the_channel() {
    let dependent = overlapping(profile(), 2, None);
    assert_eq!(ends(&dependent, &[0, 1]), [46, 92]);
    let independent = overlapping(profile(), 2, Some(INDEPENDENT));
    assert_eq!(ends(&independent, &[0, 1]), [46, 51]);
    assert_eq!(ends(&independent, &[0, 2]), [46, 92], "pages of one plane");
}

#[test]
fn a_read_passes_one_whose_plane_is_occupied() {
    let independent = overlapping(profile(), 2, Some(INDEPENDENT));
    assert_eq!(ends(&independent, &[0, 2, 1]), [46, 92, 51]);
}

#[test]
fn the_next_page_is_sensed_while_one_crosses_the_channel() {
    let cache = overlapping(profile(), 1, Some(CACHE));
    assert_eq!(ends(&overlapping(profile(), 1, None), &[0, 1, 2]), [46, 92, 138]);
    // The second begins when the first has been sensed, at 41, and takes 2 + 1 + 40 + 5.
    assert_eq!(ends(&cache, &[0, 1, 2]), [46, 89, 132]);
}

#[test]
fn with_cache_read_a_slow_channel_is_the_only_bound() {
    let mut cache = overlapping(profile(), 1, Some(CACHE));
    cache.timing = Timing { channel_mb_per_s: 50.0, ..cache.timing };
    assert_eq!(ends(&cache, &[0, 1, 2]), [141, 241, 341]);
    cache.overlap = None;
    assert_eq!(ends(&cache, &[0, 1, 2]), [141, 282, 423]);
}

#[test]
fn both_together_keep_two_pages_of_each_plane_under_way() {
    let both = ReadOverlap { independent_planes: true, cache_us: Some(2.0) };
    let mut both = overlapping(profile(), 2, Some(both));
    both.timing = Timing { channel_mb_per_s: 50.0, ..both.timing };
    // The first pages of the two planes are sensed by 41, the next ones by 84 and by 141 + 43.
    assert_eq!(ends(&both, &[0, 1, 2, 3]), [141, 241, 341, 441]);
}

#[test]
fn a_program_waits_for_the_reads_of_all_planes() {
    let drive = Drive::new(&overlapping(profile(), 2, Some(INDEPENDENT)));
    let reads = [0, 1].map(|page| drive.read_page(u64::from(page), 0, page, CLIENT));
    let program = drive.program(2, 0, BACKGROUND);
    assert_eq!(drive.ends(reads), [46, 51]);
    assert_eq!(drive.end(program), 51 + 10 + 1 + 200);
}

#[test]
fn a_program_gets_its_turn_although_some_plane_always_reads() {
    let mut profile = overlapping(profile(), 2, Some(INDEPENDENT));
    profile.timing.background_deadline_us = 100.0;
    let drive = Drive::new(&profile);
    let reads: Vec<_> =
        (0..100).map(|nth| drive.read_page(nth * 20, 0, (nth % 2) as u32, CLIENT)).collect();
    let program = drive.end(drive.program(1, 0, BACKGROUND));
    // The program is overtaken from the end of the first read on. The last read that began before
    // the program was overdue ends within two reads, and a program takes 211.
    assert!((250..=46 + 100 + 2 * 51 + 211).contains(&program), "{program}");
    drive.ends(reads);
}

#[test]
fn all_planes_read_while_a_program_is_suspended() {
    let drive = Drive::new(&overlapping(profile_with_suspend(), 2, Some(INDEPENDENT)));
    let program = drive.program(0, 0, BACKGROUND);
    let reads = [0, 1].map(|page| drive.read_page(100 + u64::from(page), 0, page, CLIENT));
    assert_eq!(drive.ends(reads), [110 + 46, 110 + 51]);
    // The program fetched its data for 10 and has run since: 111 are left at 100.
    assert_eq!(drive.end(program), 110 + 51 + 5 + 111);
}
