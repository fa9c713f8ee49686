//! Profiles are written by hand: wrong numbers are named before they are used.

use flash::{ErrorModel, FlashProfile, Geometry, Suspend};
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};

use crate::small_drive::{profile, profile_with_suspend};

/// The problems of a profile with one number changed.
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

#[test]
fn bad_times_are_named() {
    assert_eq!(
        with(|p| p.timing.read_us = vec![40.0, 60.0]),
        "read_us needs 1 numbers, one for each page type"
    );
    assert_eq!(with(|p| p.timing.program_us = vec![]), "program_us needs 1 numbers");
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let times = "times must be finite and not negative";
        assert_eq!(with(|p| p.timing.read_us = vec![bad]), times);
        assert_eq!(with(|p| p.timing.program_us = vec![bad]), times);
        assert_eq!(with(|p| p.timing.erase_us = bad), times);
        assert_eq!(with(|p| p.timing.command_us = bad), times);
        assert_eq!(with(|p| p.timing.background_deadline_us = bad), times);
        for change in [
            |s: &mut Suspend, bad| s.program_us = bad,
            |s: &mut Suspend, bad| s.erase_us = bad,
            |s: &mut Suspend, bad| s.resume_us = bad,
            |s: &mut Suspend, bad| s.min_progress_us = bad,
            |s: &mut Suspend, bad| s.max_span_us = bad,
        ] {
            assert_eq!(with(|p| change(p.suspend.as_mut().unwrap(), bad)), times);
        }
        assert_eq!(with(|p| p.errors.as_mut().unwrap().retry_us = bad), times);
        assert!(with(|p| p.timing.channel_mb_per_s = bad).contains("channel_mb_per_s"));
    }
    assert!(with(|p| p.timing.channel_mb_per_s = 0.0).contains("channel_mb_per_s"));
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
