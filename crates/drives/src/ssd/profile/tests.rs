//! Tests of valid profiles, and of the error messages for invalid ones.

use crate::ssd::layout::Layout;
use crate::ssd::profile::*;

/// Returns the error message for a built-in profile with one line changed.
fn with(name: &str, key: &str, value: &str) -> String {
    let (_, text) = SsdProfile::BUILT_IN.iter().find(|(other, _)| *other == name).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.iter_mut().find(|line| line.starts_with(&format!("{key} ="))).unwrap();
    *line = format!("{key} = {value}");
    let parsed = catalogue::parse::<SsdProfile>("p.toml", &lines.join("\n"));
    parsed.map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn numbers_beyond_all_drives_are_refused_with_what_is_allowed() {
    for (key, value, allowed) in [
        ("read_us", "[1e18, 60.0, 69.0]", "must be 0 to 60000000 (a minute)"),
        ("channel_mb_per_s", "1e-300", "must be 0.1 to 1000000"),
        ("cores", "1000000", "must be 1 to 1024"),
        ("block_ns", "1e16", "must be 0 to 1000000 (a millisecond)"),
        ("queue_depth", "1000000", "must be 1 to 65536"),
        ("mb_per_s", "1e-300", "must be 0.1 to"),
        ("read_ahead_bytes", "9223372036854775807", "must be 0 to 1073741824"),
        ("burst_interval_ms", "1e-300", "must be 0.01 to 3600000"),
        ("programs_per_die", "4294967295", "must be 1 to 1024"),
        ("dtwin_time_max_ms", "9223372036854775807", "must be 0 to 864000000"),
    ] {
        let words = with("vigil-15gb", key, value);
        assert!(words.starts_with("block drive p.toml:"), "{words}");
        assert!(words.contains(key) && words.contains(allowed), "{words}");
    }
}

#[test]
fn user_bytes_are_whole_blocks() {
    let words = with("baseline-15gb", "user_bytes", "15002992641");
    let allowed = "must be a multiple of 4096, the size of a block: 15002992640 or 15002996736";
    assert!(words.contains(allowed), "{words}");
}

#[test]
fn what_users_may_see_is_said_in_their_unit() {
    let words = with("baseline-15gb", "user_bytes", "150029926400");
    assert!(words.contains("user_bytes may be 4096 to 1"), "{words}");
    let words = with("baseline-15gb", "blocks_per_plane", "1");
    assert!(words.contains("none is left for data"), "{words}");
}

#[test]
fn built_in_profiles_are_valid_and_every_number_has_a_source() {
    for (name, text) in SsdProfile::BUILT_IN {
        let profile = SsdProfile::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, *name);
        assert_eq!(catalogue::numbers_without_source(text), [] as [&str; 0], "{name}");
    }
}

#[test]
fn a_buffer_holds_a_program_of_each_set() {
    let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
    let unit = Layout::new(&profile.flash_of_set().geometry).slots_per_unit;
    profile.buffer.bytes = u64::from(4 * unit * BLOCK_BYTES);
    assert_eq!(profile.problems(), [] as [&str; 0]);
    profile.buffer.bytes -= 1;
    assert!(profile.problems()[0].starts_with("buffer.bytes must hold"));
}

#[test]
fn a_part_of_the_mapping_is_a_part() {
    let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
    let mut with = |cached_bytes: u64| {
        profile.mapping = Some(PagedMapping { cached_bytes, ..PagedMapping::default() });
        profile.problems().join("; ")
    };
    assert_eq!(with(1 << 20), "");
    assert!(with(1 << 24).contains("but the whole mapping takes 14651360: leave the section out"));
    assert_eq!(
        with(4 * 4_096 - 1),
        "mapping.cached_bytes must hold a mapping page of each set, 16384 bytes"
    );
}

#[test]
fn collection_keeps_no_more_free_than_a_full_drive_has_to_spare() {
    for (name, key, percent, is_refused) in [
        ("vigil-15gb", "stop_free_percent", "8.0", false),
        ("vigil-15gb", "stop_free_percent", "20.0", true),
        ("vigil-15gb", "stop_free_percent", "90.0", true),
        // Without windows `stop_free_percent` has no effect.
        ("baseline-15gb", "stop_free_percent", "20.0", false),
    ] {
        let words = with(name, key, percent);
        assert_eq!(words.contains("of a set free, and a full drive has"), is_refused, "{words}");
    }
}

#[test]
fn a_paced_drive_says_how_to_page_its_mapping() {
    let mut profile = SsdProfile::load("pm9a3-960gb").expect("built in");
    profile.mapping = Some(PagedMapping { cached_bytes: 4_096, ..PagedMapping::default() });
    let words = profile.problems().join("; ");
    assert!(words.contains("delete the section in that file, --set cannot"), "{words}");
    profile.background.pacing = None;
    assert_eq!(profile.problems(), [] as [&str; 0]);
}

#[test]
fn the_baseline_has_the_same_resources_in_one_set() {
    for size in ["1.92tb", "15gb"] {
        let vigil = SsdProfile::load(&format!("vigil-{size}")).expect("built in");
        let baseline = SsdProfile::load(&format!("baseline-{size}")).expect("built in");
        let as_one = SsdProfile {
            name: baseline.name.clone(),
            description: baseline.description.clone(),
            sets: 1,
            plm: None,
            ..vigil
        };
        assert_eq!(as_one, baseline);
    }
}
