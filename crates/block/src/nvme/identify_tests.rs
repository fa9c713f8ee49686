//! Checks of Identify structures against the bytes of the specification.

use proptest::prelude::*;

use super::*;

fn entry(number: u16) -> NvmSetAttributes {
    NvmSetAttributes {
        id: SetId::new(number).unwrap(),
        endurance_group: 0x0403,
        read_typical_100ns: 0x0C0B_0A09,
        optimal_write_bytes: NonZeroU32::new(0x100F_0E0D),
        capacity_bytes: 0x201F_1E1D_1C1B_1A19_1817_1615_1413_1211,
        unallocated_bytes: 0x302F_2E2D_2C2B_2A29_2827_2625_2423_2221,
    }
}

#[test]
fn an_entry_has_its_bytes() {
    let mut expected = [0_u8; 128];
    for (byte, value) in expected[..48].iter_mut().zip(1..) {
        *byte = value;
    }
    expected[4..8].fill(0);
    let set = entry(0x0201);
    assert_eq!(set.encode(), expected);

    let mut dirty = expected;
    dirty[4..8].fill(0xFF);
    dirty[48..].fill(0xFF);
    assert_eq!(NvmSetAttributes::decode(&dirty), Ok(set), "reserved is ignored");
    assert_eq!(NvmSetAttributes::decode(&[0; 128]), Err(DecodeError::SetIdZero));
}

#[test]
fn a_list_begins_where_asked_and_ends_where_it_is_full() {
    let drive = || (1..=40).rev().map(entry);
    let numbers = |list: &NvmSetList| list.entries().iter().map(|s| s.id.get()).collect::<Vec<_>>();
    for first in [0, 1] {
        let full = NvmSetList::starting_at(first, drive());
        assert_eq!(numbers(&full), (1..=31).collect::<Vec<_>>());
    }
    let rest = NvmSetList::starting_at(32, drive());
    assert_eq!(numbers(&rest), (32..=40).collect::<Vec<_>>());
    assert!(NvmSetList::starting_at(41, drive()).entries().is_empty());
    assert_eq!(NvmSetList::dwords(3), [0x0000_0004, 0x0000_0003]);
    assert_eq!(NvmSetList::first_of(0xABCD_0003), 3);
}

#[test]
fn a_list_has_its_bytes() {
    let list = NvmSetList::starting_at(0, [entry(7), entry(3)]);
    let bytes = list.encode();
    assert_eq!(bytes[0], 2);
    assert_eq!(bytes[1..128], [0; 127]);
    assert_eq!(bytes[128..256], entry(3).encode());
    assert_eq!(bytes[256..384], entry(7).encode());
    assert_eq!(bytes[384..], [0; 4096 - 384]);

    let mut dirty = bytes;
    dirty[1..128].fill(0xFF);
    dirty[384..].fill(0xFF);
    assert_eq!(NvmSetList::decode(&dirty), Ok(list), "what is not an entry is ignored");
}

#[test]
fn a_list_refuses_what_it_may_not_hold() {
    let bytes = NvmSetList::starting_at(0, [entry(3), entry(7)]).encode();
    let with = |at: usize, value: u8| {
        let mut bytes = bytes;
        bytes[at] = value;
        NvmSetList::decode(&bytes)
    };
    assert_eq!(with(0, 32), Err(DecodeError::SetCount { found: 32 }));
    assert_eq!(with(0, 3), Err(DecodeError::SetIdZero));
    assert_eq!(with(256, 3), Err(DecodeError::SetOrder { found: 3 }));
    assert_eq!(with(256, 2), Err(DecodeError::SetOrder { found: 2 }));
}

#[test]
#[should_panic(expected = "sets have different numbers")]
fn a_drive_has_no_two_sets_of_one_number() {
    let _ = NvmSetList::starting_at(0, [entry(3), entry(3)]);
}

#[test]
fn controller_fields_have_their_bytes_and_leave_the_others() {
    let fields = ControllerFields {
        attributes: ControllerAttributes::NVM_SETS
            .with(ControllerAttributes::READ_RECOVERY_LEVELS)
            .with(ControllerAttributes::PREDICTABLE_LATENCY),
        announces_event_aggregate: true,
        read_recovery_levels: 0x8010,
        largest_set: 0x0102,
        largest_endurance_group: 0x0304,
    };
    let mut page = [0; 4096];
    fields.write_into(&mut page);
    let mut expected = [0; 4096];
    expected[92..96].copy_from_slice(&[0x00, 0x10, 0, 0]);
    expected[96..100].copy_from_slice(&[0b10_1100, 0, 0, 0]);
    expected[100..102].copy_from_slice(&[0x10, 0x80]);
    expected[338..342].copy_from_slice(&[0x02, 0x01, 0x04, 0x03]);
    assert_eq!(page, expected);
    assert!(!fields.attributes.contains(ControllerAttributes::ENDURANCE_GROUPS));

    let mut page = [0xFF; 4096];
    fields.write_into(&mut page);
    assert_eq!(page[92..100], [0xFF, 0xFF, 0xFF, 0xFF, 0b1110_1111, 0xFF, 0xFF, 0xFF]);
    assert_eq!(ControllerFields::read_from(&page), fields);
    ControllerFields::default().write_into(&mut page);
    assert_eq!(page[92..102], [0xFF, 0xEF, 0xFF, 0xFF, 0b1100_0011, 0xFF, 0xFF, 0xFF, 0, 0]);
    assert_eq!(page[102..338], [0xFF; 236]);
    assert_eq!(page[342..], [0xFF; 4096 - 342]);
}

#[test]
fn namespace_fields_have_their_bytes_and_leave_the_others() {
    let fields = NamespaceFields { set: SetId::new(0x0102), endurance_group: 0x0304 };
    let mut page = [0xFF; 4096];
    fields.write_into(&mut page);
    assert_eq!(page[99..105], [0xFF, 0x02, 0x01, 0x04, 0x03, 0xFF]);
    assert_eq!(NamespaceFields::read_from(&page), fields);
    assert_eq!(NamespaceFields::read_from(&[0; 4096]), NamespaceFields::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn lists_come_back(
        numbers in prop::collection::btree_set(1..=u16::MAX, 0..40),
        first: u16,
        values: (u16, u32, u32, u128, u128),
    ) {
        let sets = numbers.iter().map(|number| NvmSetAttributes {
            id: SetId::new(*number).unwrap(),
            endurance_group: values.0,
            read_typical_100ns: values.1,
            optimal_write_bytes: NonZeroU32::new(values.2),
            capacity_bytes: values.3,
            unallocated_bytes: values.4,
        });
        let list = NvmSetList::starting_at(first, sets);
        prop_assert_eq!(NvmSetList::decode(&list.encode()), Ok(list));
    }

    #[test]
    fn fields_come_back(page_byte: u8, bits: u32, notices: bool, numbers: [u16; 4]) {
        let mut page = [page_byte; 4096];
        let fields = ControllerFields {
            attributes: ControllerAttributes::from_bits(bits),
            announces_event_aggregate: notices,
            read_recovery_levels: numbers[0],
            largest_set: numbers[1],
            largest_endurance_group: numbers[2],
        };
        fields.write_into(&mut page);
        prop_assert_eq!(ControllerFields::read_from(&page), fields);
        let fields = NamespaceFields { set: SetId::new(numbers[3]), endurance_group: numbers[0] };
        fields.write_into(&mut page);
        prop_assert_eq!(NamespaceFields::read_from(&page), fields);
    }
}
