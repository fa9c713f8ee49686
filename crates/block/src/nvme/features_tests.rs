//! Checks of features against the dwords and bytes of the specification.

use proptest::prelude::*;

use super::*;
use crate::nvme::Event;

fn set(number: u16) -> SetId {
    SetId::new(number).unwrap()
}

fn config(enabled: bool) -> PlmConfig {
    let left = Budget {
        reads: 0x0807_0605_0403_0201,
        writes: 0x1817_1615_1413_1211,
        time_ms: 0x2827_2625_2423_2221,
    };
    let events = Events::NONE.with(Event::WritesWarning).with(Event::Excursion);
    PlmConfig { enabled, thresholds: Thresholds { events, left } }
}

#[test]
fn the_threshold_structure_has_its_bytes() {
    let mut expected = [0_u8; 512];
    expected[0..2].copy_from_slice(&[0x02, 0x80]);
    expected[32..40].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    expected[40..48].copy_from_slice(&[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    expected[48..56].copy_from_slice(&[0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28]);
    assert_eq!(config(true).thresholds.encode(), expected);

    let mut dirty = expected;
    dirty[1] |= 0x3F; // reserved events
    dirty[2..32].fill(0xFF);
    dirty[56..].fill(0xFF);
    assert_eq!(Thresholds::decode(&dirty), config(true).thresholds, "reserved is ignored");
}

/// The dwords that libnvme 1.3 sends, recorded by an interposed `ioctl`.
#[test]
fn commands_have_their_dwords() {
    let of = |setting, save| SetFeatures { setting, save }.dwords();
    let plm = |enabled| Setting::PlmConfig { set: set(3), config: config(enabled) };
    let window = |window| Setting::PlmWindow { set: set(3), window };
    let notices = AsyncEventConfig::default().with_event_aggregate(true);
    let cases = [
        (of(plm(true), true), [0x8000_0013, 0x0000_0003, 0x0000_0001]),
        (of(plm(false), false), [0x0000_0013, 0x0000_0003, 0x0000_0000]),
        (of(window(WindowSelect::Dtwin), false), [0x0000_0014, 0x0000_0003, 0x0000_0001]),
        (of(window(WindowSelect::Ndwin), true), [0x8000_0014, 0x0000_0003, 0x0000_0002]),
        (of(Setting::AsyncEvents(notices), false), [0x0000_000B, 0x0000_1000, 0x0000_0000]),
    ];
    for (dwords, expected) in cases {
        assert_eq!(dwords, expected);
    }
    let of = |feature, select| GetFeatures { feature, select }.dwords();
    let cases = [
        (of(Feature::PlmConfig(set(3)), Select::Current), [0x0000_0013, 0x0000_0003]),
        (of(Feature::PlmConfig(set(3)), Select::Saved), [0x0000_0213, 0x0000_0003]),
        (of(Feature::PlmWindow(set(3)), Select::Default), [0x0000_0114, 0x0000_0003]),
        (of(Feature::AsyncEvents, Select::Supported), [0x0000_030B, 0x0000_0000]),
    ];
    for (dwords, expected) in cases {
        assert_eq!(dwords, expected);
    }
}

#[test]
fn set_features_refuses_what_it_may_not_hold() {
    let no_data: &[u8] = &[];
    let short: &[u8] = &[0; 511];
    let reserved = |dword, bits| DecodeError::ReservedBits { dword, bits };
    let window = |found| DecodeError::WindowSelect { found };
    let length = |found| DecodeError::DataLength { found, wanted: 512 };
    let cases = [
        ([0x14, 3, 0], no_data, window(0)),
        ([0x14, 3, 3], no_data, window(3)),
        ([0x14, 3, 7], no_data, window(7)),
        ([0x14, 3, 9], no_data, reserved(12, 8)),
        ([0x14, 0, 1], no_data, DecodeError::SetIdZero),
        ([0x14, 0x0001_0003, 1], no_data, reserved(11, 0x0001_0000)),
        ([0x0114, 3, 1], no_data, reserved(10, 0x0100)),
        ([0x13, 3, 2], &[0; 512], reserved(12, 2)),
        ([0x13, 3, 1], no_data, length(0)),
        ([0x13, 3, 1], short, length(511)),
        ([0x13, 0, 1], &[0; 512], DecodeError::SetIdZero),
        ([0x0B, 0x1000, 1], no_data, reserved(12, 1)),
        ([0x12, 3, 1], no_data, DecodeError::FeatureId { found: 0x12 }),
    ];
    for (dwords, data, expected) in cases {
        assert_eq!(SetFeatures::decode(dwords, data), Err(expected), "{dwords:x?}");
        assert!(!expected.to_string().is_empty());
    }
}

#[test]
fn get_features_refuses_what_it_may_not_hold() {
    let cases = [
        ([0x0413, 3], DecodeError::Select { found: 4 }),
        ([0x0813, 3], DecodeError::ReservedBits { dword: 10, bits: 0x0800 }),
        ([0x13, 0], DecodeError::SetIdZero),
        ([0x13, 0x8000_0001], DecodeError::ReservedBits { dword: 11, bits: 0x8000_0000 }),
        ([0x01, 3], DecodeError::FeatureId { found: 1 }),
    ];
    for (dwords, expected) in cases {
        assert_eq!(GetFeatures::decode(dwords), Err(expected), "{dwords:x?}");
    }
}

#[test]
fn completions_have_their_value_in_dword_0() {
    let answer = |feature, dword0| Setting::from_completion(feature, dword0, &[]);
    let ndwin = Setting::PlmWindow { set: set(3), window: WindowSelect::Ndwin };
    assert_eq!(ndwin.dword0(), 2);
    assert_eq!(answer(Feature::PlmWindow(set(3)), 0xFFFF_FFFA), Ok(ndwin), "reserved is ignored");
    let wrong = DecodeError::WindowSelect { found: 0 };
    assert_eq!(answer(Feature::PlmWindow(set(3)), 0), Err(wrong));

    let plm = Setting::PlmConfig { set: set(3), config: config(true) };
    assert_eq!(plm.dword0(), 1);
    let data = plm.data().unwrap();
    assert_eq!(Setting::from_completion(plm.feature(), 0xFFFF_FFFF, &data), Ok(plm));
}

fn settings() -> impl Strategy<Value = Setting> {
    let sets = || (1..=u16::MAX).prop_map(set);
    let windows = prop::sample::select(vec![WindowSelect::Dtwin, WindowSelect::Ndwin]);
    let config = (any::<bool>(), any::<u16>(), any::<[u64; 3]>()).prop_map(
        |(enabled, events, [reads, writes, time_ms])| {
            let left = Budget { reads, writes, time_ms };
            PlmConfig {
                enabled,
                thresholds: Thresholds { events: Events::from_bits(events), left },
            }
        },
    );
    prop_oneof![
        (sets(), config).prop_map(|(set, config)| Setting::PlmConfig { set, config }),
        (sets(), windows).prop_map(|(set, window)| Setting::PlmWindow { set, window }),
        any::<u32>().prop_map(|bits| Setting::AsyncEvents(AsyncEventConfig { bits })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn commands_and_completions_come_back(setting in settings(), save: bool, select in 0..4_usize) {
        let data = setting.data().map(Vec::from).unwrap_or_default();
        let command = SetFeatures { setting, save };
        prop_assert_eq!(SetFeatures::decode(command.dwords(), &data), Ok(command));
        let feature = setting.feature();
        prop_assert_eq!(Setting::from_completion(feature, setting.dword0(), &data), Ok(setting));
        let selects = [Select::Current, Select::Default, Select::Saved, Select::Supported];
        let command = GetFeatures { feature, select: selects[select] };
        prop_assert_eq!(GetFeatures::decode(command.dwords()), Ok(command));
    }

    /// Every accepted command encodes to the dwords that it was decoded from.
    #[test]
    fn any_dwords_are_refused_or_stand_for_a_command(
        id in prop::sample::select(vec![0x0B_u32, 0x13, 0x14]),
        dwords: [u32; 3],
        are_plain: [bool; 3],
    ) {
        let plain = |at: usize, mask: u32| if are_plain[at] { dwords[at] & mask } else { dwords[at] };
        let dwords = [plain(0, SAVE) & !ID | id, plain(1, SET), plain(2, 0b11)];
        if let Ok(command) = SetFeatures::decode(dwords, &[0; 512]) {
            prop_assert_eq!(command.dwords(), dwords);
        }
    }
}
