//! Profiles are written by hand: wrong numbers are reported before they are used.

use drives::nand::{ErrorModel, FlashProfile, Geometry, ReadOverlap};
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};

use crate::small_drive::{profile, profile_with_suspend};

/// Returns the problems of a profile with one number changed.
fn with(change: impl FnOnce(&mut FlashProfile)) -> String {
    let mut profile = profile_with_suspend();
    profile.errors = Some(ErrorModel { retry_probability: 0.1, retry_us: 70.0, max_retries: 5 });
    change(&mut profile);
    profile.problems().join("; ")
}

#[test]
fn a_sound_profile_has_none() {
    assert_eq!(profile().problems(), Vec::<String>::new());
    assert_eq!(with(|_| ()), "");
}

#[test]
fn bad_geometry_is_named() {
    let count = "must be at least 1";
    assert_eq!(with(|p| p.geometry.channels = 0), format!("channels {count}"));
    assert_eq!(with(|p| p.geometry.dies_per_channel = 0), format!("dies_per_channel {count}"));
    assert_eq!(with(|p| p.geometry.planes_per_die = 0), format!("planes_per_die {count}"));
    assert_eq!(with(|p| p.geometry.blocks_per_plane = 0), format!("blocks_per_plane {count}"));
    assert_eq!(with(|p| p.geometry.pages_per_block = 0), format!("pages_per_block {count}"));
    for page_bytes in [0, 256, 3_000] {
        assert!(with(|p| p.geometry.page_bytes = page_bytes).contains("a power of two"));
    }
    assert!(with(|p| p.geometry.transfer_bytes = 4_223).contains("must cover page_bytes"));
    assert_eq!(with(|p| p.geometry.transfer_bytes = 4_224), "");
    assert!(with(|p| p.geometry.bits_per_cell = 0).contains("must be 1 to 4"));
    assert!(with(|p| p.geometry.bits_per_cell = 5).contains("must be 1 to 4"));
    assert!(with(|p| p.geometry.blocks_per_plane = u32::MAX).contains("4294967295 pages"));
    let one_shot = with(|p| {
        p.geometry.one_shot = true;
        p.geometry.bits_per_cell = 3;
        p.geometry.pages_per_block = 16;
        p.timing.read_us = vec![40.0; 3];
    });
    assert_eq!(one_shot, "pages_per_block must be a multiple of bits_per_cell");
}

/// Sets one time of a profile.
type Change = fn(&mut FlashProfile, f64);

#[test]
fn bad_times_are_named() {
    assert_eq!(
        with(|p| p.timing.read_us = vec![40.0, 60.0]),
        "timing.read_us needs 1 numbers, one for each page type"
    );
    assert_eq!(with(|p| p.timing.program_us = vec![]), "timing.program_us needs 1 numbers");
    for bad in [-1.0, f64::NAN, f64::INFINITY, 6.1e7, 1e18, 1e300] {
        let table: [(&str, Change); 11] = [
            ("timing.read_us", |p, bad| p.timing.read_us = vec![bad]),
            ("timing.program_us", |p, bad| p.timing.program_us = vec![bad]),
            ("timing.erase_us", |p, bad| p.timing.erase_us = bad),
            ("timing.command_us", |p, bad| p.timing.command_us = bad),
            ("timing.background_deadline_us", |p, bad| p.timing.background_deadline_us = bad),
            ("suspend.program_us", |p, bad| {
                p.suspend.as_mut().unwrap().program_us = Some(bad);
            }),
            ("suspend.erase_us", |p, bad| p.suspend.as_mut().unwrap().erase_us = Some(bad)),
            ("suspend.resume_us", |p, bad| p.suspend.as_mut().unwrap().resume_us = bad),
            ("suspend.min_progress_us", |p, bad| p.suspend.as_mut().unwrap().min_progress_us = bad),
            ("suspend.max_span_us", |p, bad| p.suspend.as_mut().unwrap().max_span_us = bad),
            ("errors.retry_us", |p, bad| p.errors.as_mut().unwrap().retry_us = bad),
        ];
        for (key, change) in table {
            let words = with(|p| change(p, bad));
            assert!(words.starts_with(&format!("{key} is ")), "{words}");
            assert!(words.ends_with("must be 0 to 60000000 (a minute)"), "{words}");
        }
    }
    for bad in [-1.0, 0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY] {
        let words = with(|p| p.timing.channel_mb_per_s = bad);
        assert!(words.contains("channel_mb_per_s") && words.contains("0.1 to"), "{words}");
    }
}

#[test]
fn bad_counts_are_named() {
    let words = with(|p| p.suspend.as_mut().unwrap().max_per_operation = u32::MAX);
    assert_eq!(words, "suspend.max_per_operation is 4294967295, must be 0 to 1000000");
    let words = with(|p| p.suspend.as_mut().unwrap().max_per_program = Some(u32::MAX));
    assert_eq!(words, "suspend.max_per_program is 4294967295, must be 0 to 1000000");
    let words = with(|p| p.errors.as_mut().unwrap().max_retries = u32::MAX);
    assert_eq!(words, "errors.max_retries is 4294967295, must be 0 to 1000");
    let words = with(|p| p.geometry.spare_bytes = u32::MAX);
    assert!(words.starts_with("spare_bytes is 4294967295, must be 0 to 1048576"), "{words}");
    let words = with(|p| p.geometry.transfer_bytes = u32::MAX);
    assert_eq!(words, "transfer_bytes is 4294967295, must be 1 to 1048576");
}

#[test]
fn suspension_of_nothing_is_refused() {
    let words = with(|p| {
        let suspend = p.suspend.as_mut().unwrap();
        (suspend.program_us, suspend.erase_us) = (None, None);
    });
    let expected =
        "suspend needs program_us, erase_us or both: without either leave the section out";
    assert_eq!(words, expected);
}

#[test]
fn bad_probabilities_are_named() {
    for bad in [-0.1, 1.0, f64::NAN] {
        assert_eq!(
            with(|p| p.errors.as_mut().unwrap().retry_probability = bad),
            "retry_probability must be at least 0 and less than 1"
        );
    }
}

#[test]
fn a_misspelt_key_is_refused() {
    let keys = MapDeserializer::<_, Error>::new([("chanels", 8_u32)].into_iter());
    let error = Geometry::deserialize(keys).unwrap_err();
    assert!(error.to_string().contains("unknown field `chanels`"), "{error}");
}

#[test]
fn overlap_of_nothing_and_planes_that_are_not_there_are_refused() {
    let of = |planes: u32, independent_planes: bool, cache_us: Option<f64>| {
        with(|p| {
            p.geometry.planes_per_die = planes;
            p.overlap = Some(ReadOverlap { independent_planes, cache_us });
        })
    };
    assert!(of(2, false, None).starts_with("overlap needs independent_planes"));
    let words = of(1, true, None);
    assert_eq!(words, "overlap.independent_planes needs two planes_per_die or more, not 1");
    let words = of(2, true, Some(-1.0));
    assert_eq!(words, "overlap.cache_us is -1, must be 0 to 60000000 (a minute)");
    assert_eq!(of(2, true, Some(3.0)), "");
    assert_eq!(of(1, false, Some(3.0)), "");
}
