//! Bit errors: reads that take longer, and reads that fail.

use drives::nand::{ErrorModel, FlashProfile, ReadDisturb, ReadError};

use crate::small_drive::{Drive, profile};

const READS: u32 = 20_000;

fn profile_with_errors(retry_probability: f64, max_retries: u32) -> FlashProfile {
    let errors = ErrorModel { retry_probability, retry_us: 70.0, max_retries };
    FlashProfile { errors: Some(errors), ..profile() }
}

/// Reads one page many times. Returns the mean latency in microseconds, the failed reads, and the
/// extra senses.
fn read_often(profile: &FlashProfile) -> (f64, u32, u64) {
    let drive = Drive::new(profile);
    let (flash, page) = (drive.flash.clone(), drive.page(0, 0, 0));
    let failed = drive.rt.block_on(async move {
        let mut failed = 0;
        for _ in 0..READS {
            match flash.read(page, crate::small_drive::CLIENT).await {
                Ok(_) => {}
                Err(ReadError::Uncorrectable) => failed += 1,
                Err(ReadError::Erased) => panic!("the page is programmed"),
            }
        }
        failed
    });
    let mean = drive.rt.handle().now().as_micros_f64() / f64::from(READS);
    (mean, failed, drive.flash.stats().read_retries)
}

#[test]
fn without_errors_every_read_takes_the_same_time() {
    assert_eq!(read_often(&profile_with_errors(0.0, 5)), (46.0, 0, 0));
}

#[test]
fn retries_lengthen_the_mean_latency_as_arithmetic_says() {
    for p in [0.05, 0.3, 0.6] {
        let (mean, failed, retries) = read_often(&profile_with_errors(p, 100));
        let retries_per_read = p / (1.0 - p);
        let expected = 46.0 + 70.0 * retries_per_read;
        assert!((mean / expected - 1.0).abs() < 0.03, "{p}: {mean:.2} us is not {expected:.2}");
        let counted = retries as f64 / f64::from(READS);
        assert!((mean - 46.0 - 70.0 * counted).abs() < 1e-6, "each retry takes its time");
        assert_eq!(failed, 0);
    }
}

#[test]
fn a_read_fails_after_its_last_retry() {
    let (_, failed, retries) = read_often(&profile_with_errors(0.5, 2));
    let share = f64::from(failed) / f64::from(READS); // p^3
    assert!((0.115..0.135).contains(&share), "{share}");
    let mean = retries as f64 / f64::from(READS); // p + p^2
    assert!((0.72..0.78).contains(&mean), "{mean}");
}

#[test]
fn without_retries_the_first_error_is_the_last() {
    let (mean, failed, retries) = read_often(&profile_with_errors(0.25, 0));
    assert!((4_700..5_300).contains(&failed), "{failed}");
    assert_eq!((mean, retries), (46.0, 0));
}

#[test]
fn the_same_seed_gives_the_same_errors() {
    let profile = profile_with_errors(0.3, 2);
    assert_eq!(read_often(&profile), read_often(&profile));
}

#[test]
fn a_block_that_is_read_too_often_fails_until_it_is_erased() {
    let read_disturb = Some(ReadDisturb { limit_reads: 5 });
    let drive = Drive::new(&FlashProfile { read_disturb, ..profile() });
    let (block, page) = (drive.block(0, 0), drive.page(0, 0, 3));
    for read in 0..8 {
        let expected = if read < 5 { Ok(()) } else { Err(ReadError::Uncorrectable) };
        assert_eq!(drive.read_now(page).map(drop), expected, "read {read}");
    }
    drive.rt.block_on(drive.flash.erase(block, crate::small_drive::BACKGROUND));
    drive.flash.with_array(|array| crate::small_drive::fill(array, block));
    assert!(drive.read_now(page).is_ok());
}
