//! Checks of log pages against the dwords and bytes of the specification.

use proptest::prelude::*;

use super::*;
use crate::nvme::Event;

fn set(number: u16) -> SetId {
    SetId::new(number).unwrap()
}

/// Cases 1, 3 and 4 are the dwords that libnvme 1.3 sends, recorded by an interposed `ioctl`.
#[test]
fn commands_have_their_dwords() {
    let aggregate = |retain, offset, length| GetLogPage {
        log: Log::EventAggregate,
        retain,
        span: LogSpan::new(offset, length).unwrap(),
    };
    let cases = [
        (GetLogPage::per_set(set(3)), [0x007F_000A, 0x0003_0000, 0, 0]),
        (GetLogPage::per_set(set(0xFFFE)), [0x007F_000A, 0xFFFE_0000, 0, 0]),
        (aggregate(true, 0, 512), [0x007F_800B, 0, 0, 0]),
        (aggregate(false, 0, 512), [0x007F_000B, 0, 0, 0]),
        (aggregate(false, 0, 4), [0x0000_000B, 0, 0, 0]),
        (aggregate(false, 0, 4 << 32), [0xFFFF_000B, 0x0000_FFFF, 0, 0]),
        (
            aggregate(true, 0x0123_4567_89AB_CDE0, 0x0004_0008),
            [0x0001_800B, 0x0000_0001, 0x89AB_CDE0, 0x0123_4567],
        ),
    ];
    for (command, expected) in cases {
        assert_eq!(command.dwords(), expected, "{command:?}");
        assert_eq!(GetLogPage::decode(expected), Ok(command));
    }
    let specific = GetLogPage::decode([0x007F_7F0A, 0x0003_0000, 0, 0]);
    assert_eq!(specific, Ok(GetLogPage::per_set(set(3))), "an unused field is ignored");
}

#[test]
fn commands_refuse_what_they_may_not_hold() {
    let cases = [
        ([0x007F_000A, 0, 0, 0], DecodeError::SetIdZero),
        ([0x007F_0002, 0, 0, 0], DecodeError::LogId { found: 2 }),
        ([0x007F_000B, 0, 2, 0], DecodeError::LogOffset { found: 2 }),
    ];
    for (dwords, expected) in cases {
        assert_eq!(GetLogPage::decode(dwords), Err(expected), "{dwords:x?}");
    }
    for length in [0, 510, (4 << 32) + 4] {
        assert_eq!(LogSpan::new(0, length), Err(DecodeError::LogLength { found: length }));
    }
    assert_eq!(LogSpan::new(6, 4), Err(DecodeError::LogOffset { found: 6 }));
}

#[test]
fn a_span_is_cut_where_the_page_ends() {
    let page = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let cut = |offset, length| LogSpan::new(offset, length).unwrap().of(&page);
    assert_eq!(cut(4, 4), Some(&[4, 5, 6, 7][..]));
    assert_eq!(cut(8, 512), Some(&[8, 9][..]));
    assert_eq!(cut(12, 4), None);
    assert_eq!(cut(u64::MAX - 3, 4), None);
}

fn bytes(from: u8) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| from + i as u8))
}

fn sample() -> PerSetLog {
    PerSetLog {
        status: WindowStatus::Ndwin,
        events: Events::NONE.with(Event::TimeWarning).with(Event::Exceeded),
        dtwin: Budget { reads: bytes(0x10), writes: bytes(0x20), time_ms: bytes(0x30) },
        ndwin_minimum_high_ms: bytes(0x40),
        ndwin_minimum_low_ms: bytes(0x50),
        left: Budget { reads: bytes(0x60), writes: bytes(0x70), time_ms: bytes(0x80) },
        lockdown_estimate_us: None,
    }
}

#[test]
fn the_page_of_a_set_has_its_bytes() {
    let mut expected = [0_u8; 512];
    expected[0] = 2;
    expected[2..4].copy_from_slice(&[0x04, 0x40]);
    let first_bytes = [
        (32, 0x10),  // DTWIN Reads Typical
        (40, 0x20),  // DTWIN Writes Typical
        (48, 0x30),  // DTWIN Time Maximum
        (56, 0x40),  // NDWIN Time Minimum High
        (64, 0x50),  // NDWIN Time Minimum Low
        (128, 0x60), // DTWIN Reads Estimate
        (136, 0x70), // DTWIN Writes Estimate
        (144, 0x80), // DTWIN Time Estimate
    ];
    for (at, first) in first_bytes {
        for (byte, value) in expected[at..at + 8].iter_mut().zip(first..) {
            *byte = value;
        }
    }
    assert_eq!(sample().encode(), expected, "without our extension");

    let lockdown_estimate_us = NonZeroU64::new(bytes(0x90));
    let extended = PerSetLog { lockdown_estimate_us, ..sample() };
    let mut dirty = expected;
    dirty[504..512].copy_from_slice(&[0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97]);
    assert_eq!(extended.encode(), dirty);
    dirty[0] |= 0xF8;
    dirty[1] = 0xFF;
    dirty[3] |= 0x3F; // reserved events
    dirty[4..32].fill(0xFF);
    dirty[72..128].fill(0xFF);
    dirty[152..504].fill(0xFF);
    assert_eq!(PerSetLog::decode(&dirty), Ok(extended), "reserved is ignored");
}

#[test]
fn a_reserved_status_is_refused() {
    for found in 3..=7 {
        let mut page = [0; 512];
        page[0] = found;
        assert_eq!(PerSetLog::decode(&page), Err(DecodeError::WindowStatus { found }));
    }
}

#[test]
fn the_aggregate_has_its_bytes() {
    let page = EventAggregate { sets: [set(0x0201), set(3), set(0xFFFF)].into() };
    let expected = [3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 2, 0xFF, 0xFF];
    assert_eq!(page.encode(), expected);
    assert_eq!(EventAggregate::bytes_for(3), 16);
    assert_eq!(EventAggregate::bytes_for(u16::MAX), 131_080);
    let padded = [&expected[..], &[9; 2]].concat();
    assert_eq!(EventAggregate::decode(&padded), Ok(page));
}

#[test]
fn the_aggregate_refuses_what_it_may_not_hold() {
    let length = |found, wanted| DecodeError::AggregateLength { found, wanted };
    let cases: [(&[u8], DecodeError); 6] = [
        (&[0; 7], length(7, 8)),
        (&[2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2], length(11, 12)),
        (&[0xFF; 16], length(16, u64::MAX)),
        (&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0], DecodeError::SetIdZero),
        (&[2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 5, 0], DecodeError::SetOrder { found: 5 }),
        (&[2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 4, 0], DecodeError::SetOrder { found: 4 }),
    ];
    for (page, expected) in cases {
        assert_eq!(EventAggregate::decode(page), Err(expected), "{page:?}");
    }
}

fn pages() -> impl Strategy<Value = PerSetLog> {
    let statuses = vec![WindowStatus::NotEnabled, WindowStatus::Dtwin, WindowStatus::Ndwin];
    let budget =
        || any::<[u64; 3]>().prop_map(|[reads, writes, time_ms]| Budget { reads, writes, time_ms });
    let rest = (any::<u16>(), any::<[u64; 2]>(), prop::option::of(1..=u64::MAX));
    (prop::sample::select(statuses), budget(), budget(), rest).prop_map(
        |(status, dtwin, left, (events, [high, low], lockdown))| PerSetLog {
            status,
            events: Events::from_bits(events),
            dtwin,
            ndwin_minimum_high_ms: high,
            ndwin_minimum_low_ms: low,
            left,
            lockdown_estimate_us: lockdown.and_then(NonZeroU64::new),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn pages_come_back(
        page in pages(),
        numbers in prop::collection::btree_set(1..=u16::MAX, 0..300),
    ) {
        prop_assert_eq!(PerSetLog::decode(&page.encode()), Ok(page));
        let page = EventAggregate { sets: numbers.into_iter().map(set).collect() };
        prop_assert_eq!(EventAggregate::decode(&page.encode()), Ok(page));
    }

    #[test]
    fn commands_come_back(number in 0..=u16::MAX, retain: bool, offset: u64, last_dword: u32) {
        let log = SetId::new(number).map_or(Log::EventAggregate, Log::PerSet);
        let span = LogSpan::new(offset & !3, (u64::from(last_dword) + 1) * 4).unwrap();
        let command = GetLogPage { log, retain, span };
        prop_assert_eq!(GetLogPage::decode(command.dwords()), Ok(command));
    }

    /// Each input decodes to a value or to an error, and a decoded value encodes to the same bytes.
    #[test]
    fn any_aggregate_is_refused_or_comes_back(count in 0..6_u64, entries: [u8; 8]) {
        let page = [count.to_le_bytes(), entries].concat();
        if let Ok(decoded) = EventAggregate::decode(&page) {
            let bytes = decoded.encode();
            prop_assert_eq!(&bytes[..], &page[..bytes.len()]);
        }
    }
}
