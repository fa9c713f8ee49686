//! Feeds random bytes to every decoder of NVMe structures and commands. Accepted values must
//! survive encoding and decoding unchanged.

use runtime::Rng;
use testkit::fuzz::{Answer, Target, unsealed};

use super::*;

/// Fuzzes `decode`. It returns `None` for refused input, otherwise whether the decoded value
/// survived a round trip.
fn fuzz(
    name: &str,
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    decode: &dyn Fn(&[u8]) -> Option<bool>,
) {
    let check = |bytes: &[u8]| {
        let decoded = decode(bytes);
        assert_ne!(decoded, Some(false), "it is another once it is encoded again");
        Answer::from(decoded.is_some())
    };
    Target { test: ("block", name), encoding, seal: &unsealed, check: &check }.run();
}

/// Returns the first `N` bytes, padded with zeros.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

fn dwords<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|i| u32::from_le_bytes(array(bytes.get(4 * i..).unwrap_or_default())))
}

fn bytes_of(dwords: &[u32]) -> Vec<u8> {
    dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect()
}

fn set(rng: &mut Rng) -> SetId {
    SetId::new(1 + rng.below(0xFFFF) as u16).expect("it is not 0")
}

fn thresholds(rng: &mut Rng) -> Thresholds {
    let left = Budget { reads: rng.next_u64(), writes: rng.below(1_000), time_ms: rng.below(9) };
    Thresholds { events: Events::from_bits(rng.next_u64() as u16), left }
}

fn setting(rng: &mut Rng) -> Setting {
    let set = set(rng);
    match rng.below(3) {
        0 => {
            let config = PlmConfig { enabled: rng.chance(0.5), thresholds: thresholds(rng) };
            Setting::PlmConfig { set, config }
        }
        1 => {
            let window = if rng.chance(0.5) { WindowSelect::Dtwin } else { WindowSelect::Ndwin };
            Setting::PlmWindow { set, window }
        }
        _ => Setting::AsyncEvents(AsyncEventConfig { bits: rng.next_u64() as u32 }),
    }
}

#[test]
fn fuzz_set_features() {
    let encoding = |rng: &mut Rng| {
        let command = SetFeatures { setting: setting(rng), save: rng.chance(0.5) };
        let mut bytes = bytes_of(&command.dwords());
        bytes.extend(command.setting.data().into_iter().flatten());
        bytes
    };
    fuzz("fuzz_set_features", &encoding, &|bytes| {
        let data = bytes.get(12..).unwrap_or_default();
        let command = SetFeatures::decode(dwords(bytes), data).ok()?;
        let again = command.setting.data();
        let again = again.as_ref().map_or(&[][..], |data| data);
        let feature = command.setting.feature();
        let completion = Setting::from_completion(feature, command.setting.dword0(), again).ok()?;
        let is_same = SetFeatures::decode(command.dwords(), again) == Ok(command);
        Some(is_same && completion == command.setting)
    });
}

#[test]
fn fuzz_get_features() {
    let encoding = |rng: &mut Rng| {
        let feature = setting(rng).feature();
        bytes_of(&GetFeatures { feature, select: Select::Saved }.dwords())
    };
    fuzz("fuzz_get_features", &encoding, &|bytes| {
        let command = GetFeatures::decode(dwords(bytes)).ok()?;
        Some(GetFeatures::decode(command.dwords()) == Ok(command))
    });
}

#[test]
fn fuzz_get_log_page() {
    let encoding = |rng: &mut Rng| {
        let span = LogSpan::new(4 * rng.below(200), 4 * (1 + rng.below(1 << 32)));
        let log = if rng.chance(0.5) { Log::PerSet(set(rng)) } else { Log::EventAggregate };
        let span = span.expect("both ends are multiples of four");
        bytes_of(&GetLogPage { log, retain: rng.chance(0.5), span }.dwords())
    };
    let page = [0; PerSetLog::BYTES];
    fuzz("fuzz_get_log_page", &encoding, &|bytes| {
        let command = GetLogPage::decode(dwords(bytes)).ok()?;
        let part = command.span.of(&page);
        let begins_within = command.span.offset_bytes() <= page.len() as u64;
        let has_part = part.is_some_and(|part| part.len() as u64 <= command.span.length_bytes());
        Some(has_part == begins_within && GetLogPage::decode(command.dwords()) == Ok(command))
    });
}

#[test]
fn fuzz_per_set_log() {
    let encoding = |rng: &mut Rng| {
        let budget = thresholds(rng).left;
        let events = Events::from_bits(rng.next_u64() as u16);
        let status = WindowStatus::Ndwin;
        PerSetLog { status, events, dtwin: budget, ..PerSetLog::default() }.encode().to_vec()
    };
    fuzz("fuzz_per_set_log", &encoding, &|bytes| {
        let log = PerSetLog::decode(&array(bytes)).ok()?;
        Some(PerSetLog::decode(&log.encode()) == Ok(log))
    });
}

#[test]
fn fuzz_event_aggregate() {
    let encoding = |rng: &mut Rng| {
        let sets = (0..rng.below(40)).map(|_| set(rng)).collect();
        EventAggregate { sets }.encode()
    };
    fuzz("fuzz_event_aggregate", &encoding, &|bytes| {
        let page = EventAggregate::decode(bytes).ok()?;
        Some(EventAggregate::decode(&page.encode()) == Ok(page))
    });
}

#[test]
fn fuzz_nvm_set_list() {
    let encoding = |rng: &mut Rng| {
        let first = 1 + rng.below(1_000) as u16;
        let sets = (0..rng.below(40) as u16).map(|n| NvmSetAttributes {
            id: SetId::new(first + n).expect("it is not 0"),
            endurance_group: n,
            read_typical_100ns: 700,
            optimal_write_bytes: std::num::NonZeroU32::new(4 * u32::from(n)),
            capacity_bytes: 1 << 40,
            unallocated_bytes: u128::from(n),
        });
        NvmSetList::starting_at(first, sets).encode().to_vec()
    };
    fuzz("fuzz_nvm_set_list", &encoding, &|bytes| {
        let list = NvmSetList::decode(&array(bytes)).ok()?;
        let ids: Vec<_> = list.entries().iter().map(|entry| entry.id).collect();
        Some(ids.is_sorted() && NvmSetList::decode(&list.encode()) == Ok(list))
    });
}

#[test]
fn fuzz_identify_fields_and_notices() {
    let encoding = |rng: &mut Rng| {
        let mut page = [0; NvmSetList::BYTES];
        NamespaceFields { set: Some(set(rng)), endurance_group: 1 }.write_into(&mut page);
        page.to_vec()
    };
    fuzz("fuzz_identify_fields_and_notices", &encoding, &|bytes| {
        let page = array(bytes);
        let namespace = NamespaceFields::read_from(&page);
        let controller = ControllerFields::read_from(&page);
        let mut again = page;
        namespace.write_into(&mut again);
        let is_same = NamespaceFields::read_from(&again) == namespace;
        again = page;
        controller.write_into(&mut again);
        let notice = Notice::from_completion(dwords::<1>(bytes)[0]);
        let is_notice = notice.is_none_or(|n| Notice::from_completion(n.dword0()) == Some(n));
        Some(is_same && is_notice && ControllerFields::read_from(&again) == controller)
    });
}
