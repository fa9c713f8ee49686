//! Checks of our encodings against the C library for NVMe.
//!
//! A C program, compiled against the headers of libnvme 1.3 and of libnvme 1.16.2, printed the
//! offsets and numbers below (`offsetof`, `sizeof`, enumerators). The two versions agree. To check
//! a field, the test changes its value in every byte and compares the changed bytes of the
//! structure with the field's range in the header.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use super::*;

/// Returns the range from the first to the last differing byte.
fn changed(before: &[u8], after: &[u8]) -> Range<usize> {
    assert_eq!(before.len(), after.len());
    let mut at = (0..before.len()).filter(|&i| before[i] != after[i]);
    let first = at.next().expect("something differs");
    first..at.next_back().unwrap_or(first) + 1
}

const ALL: u64 = u64::MAX;

#[test]
fn nvme_nvmset_predictable_lat_log() {
    let base = PerSetLog::default();
    assert_eq!(base.encode().len(), 512);
    let dtwin = |reads, writes, time_ms| PerSetLog {
        dtwin: Budget { reads, writes, time_ms },
        ..PerSetLog::default()
    };
    let left = |reads, writes, time_ms| PerSetLog {
        left: Budget { reads, writes, time_ms },
        ..PerSetLog::default()
    };
    let fields = [
        ("status", 0..1, PerSetLog { status: WindowStatus::Ndwin, ..base }),
        ("event_type", 2..4, PerSetLog { events: Events::ALL, ..base }),
        ("dtwin_rt", 32..40, dtwin(ALL, 0, 0)),
        ("dtwin_wt", 40..48, dtwin(0, ALL, 0)),
        ("dtwin_tmax", 48..56, dtwin(0, 0, ALL)),
        ("ndwin_tmin_hi", 56..64, PerSetLog { ndwin_minimum_high_ms: ALL, ..base }),
        ("ndwin_tmin_lo", 64..72, PerSetLog { ndwin_minimum_low_ms: ALL, ..base }),
        ("dtwin_re", 128..136, left(ALL, 0, 0)),
        ("dtwin_we", 136..144, left(0, ALL, 0)),
        ("dtwin_te", 144..152, left(0, 0, ALL)),
    ];
    for (name, range, log) in fields {
        assert_eq!(changed(&base.encode(), &log.encode()), range, "{name}");
    }
    let ours = PerSetLog { lockdown_estimate_us: Some(NonZeroU64::MAX), ..base };
    let reserved = 152..512;
    let range = changed(&base.encode(), &ours.encode());
    assert!(reserved.start <= range.start && range.end == reserved.end, "rsvd152");
}

#[test]
fn nvme_plm_config() {
    let base = Thresholds::default();
    assert_eq!(base.encode().len(), 512);
    let left = |reads, writes, time_ms| Thresholds {
        left: Budget { reads, writes, time_ms },
        ..Thresholds::default()
    };
    let fields = [
        ("ee", 0..2, Thresholds { events: Events::ALL, ..base }),
        ("dtwinrt", 32..40, left(ALL, 0, 0)),
        ("dtwinwt", 40..48, left(0, ALL, 0)),
        ("dtwintt", 48..56, left(0, 0, ALL)),
    ];
    for (name, range, thresholds) in fields {
        assert_eq!(changed(&base.encode(), &thresholds.encode()), range, "{name}");
    }
}

#[test]
fn nvme_nvmset_attr_and_list() {
    let base = NvmSetAttributes {
        id: SetId::new(0x0101).unwrap(),
        endurance_group: 0,
        read_typical_100ns: 0,
        optimal_write_bytes: None,
        capacity_bytes: 0,
        unallocated_bytes: 0,
    };
    assert_eq!(base.encode().len(), 128);
    let fields = [
        ("nvmsetid", 0..2, NvmSetAttributes { id: SetId::new(0xFFFF).unwrap(), ..base }),
        ("endgid", 2..4, NvmSetAttributes { endurance_group: u16::MAX, ..base }),
        ("rr4kt", 8..12, NvmSetAttributes { read_typical_100ns: u32::MAX, ..base }),
        ("ows", 12..16, NvmSetAttributes { optimal_write_bytes: Some(NonZeroU32::MAX), ..base }),
        ("tnvmsetcap", 16..32, NvmSetAttributes { capacity_bytes: u128::MAX, ..base }),
        ("unvmsetcap", 32..48, NvmSetAttributes { unallocated_bytes: u128::MAX, ..base }),
    ];
    for (name, range, set) in fields {
        assert_eq!(changed(&base.encode(), &set.encode()), range, "{name}");
    }

    let list = |sets: u16| {
        let sets = (1..=sets).map(|n| NvmSetAttributes { id: SetId::new(n).unwrap(), ..base });
        NvmSetList::starting_at(0, sets).encode()
    };
    assert_eq!(list(0).len(), 4096);
    assert_eq!(NvmSetList::MAX_ENTRIES, 0x1F, "NVME_ID_NVMSET_LIST_MAX");
    assert_eq!(changed(&list(0), &list(1)), 0..129, "nid 0, ent 128");
    assert_eq!(changed(&list(1), &list(2)), 0..128 + 128 + 1, "nid 0, ent[1] 256");
}

#[test]
fn nvme_aggregate_predictable_lat_event() {
    let page = EventAggregate { sets: [SetId::new(0x0101).unwrap()].into() }.encode();
    assert_eq!(page[0..8], [1, 0, 0, 0, 0, 0, 0, 0], "num_entries");
    assert_eq!(page[8..], [1, 1], "entries");
}

#[test]
fn nvme_id_ctrl_and_nvme_id_ns() {
    let written = |fields: ControllerFields| {
        let mut page = [0; 4096];
        fields.write_into(&mut page);
        page
    };
    let base = ControllerFields::default();
    let attributes = ControllerAttributes::ALL;
    let fields = [
        ("oaes", 92..96, ControllerFields { announces_event_aggregate: true, ..base }),
        ("ctratt", 96..100, ControllerFields { attributes, ..base }),
        ("rrls", 100..102, ControllerFields { read_recovery_levels: u16::MAX, ..base }),
        ("nsetidmax", 338..340, ControllerFields { largest_set: u16::MAX, ..base }),
        ("endgidmax", 340..342, ControllerFields { largest_endurance_group: u16::MAX, ..base }),
    ];
    for (name, range, fields) in fields {
        let touched = changed(&written(base), &written(fields));
        let is_mask = matches!(name, "oaes" | "ctratt"); // only some bits belong to our fields
        let is_inside = range.start <= touched.start && touched.end <= range.end;
        assert!(if is_mask { is_inside } else { touched == range }, "{name}: {touched:?}");
    }
    let number = |range: Range<usize>, page: &[u8; 4096]| {
        u32::from_le_bytes(page[range].try_into().unwrap())
    };
    let announcing = ControllerFields { announces_event_aggregate: true, ..base };
    assert_eq!(number(92..96, &written(announcing)), 0x1000, "NVME_CTRL_OAES_PLEA");
    let bits = [
        ("NVME_CTRL_CTRATT_NVM_SETS", 0x4, ControllerAttributes::NVM_SETS),
        ("NVME_CTRL_CTRATT_READ_RECV_LVLS", 0x8, ControllerAttributes::READ_RECOVERY_LEVELS),
        ("NVME_CTRL_CTRATT_ENDURANCE_GROUPS", 0x10, ControllerAttributes::ENDURANCE_GROUPS),
        ("NVME_CTRL_CTRATT_PREDICTABLE_LAT", 0x20, ControllerAttributes::PREDICTABLE_LATENCY),
    ];
    for (name, bit, attributes) in bits {
        assert_eq!(
            number(96..100, &written(ControllerFields { attributes, ..base })),
            bit,
            "{name}"
        );
    }

    let mut page = [0; 4096];
    NamespaceFields { set: SetId::new(u16::MAX), endurance_group: 0 }.write_into(&mut page);
    assert_eq!(changed(&[0; 4096], &page), 100..102, "nvmsetid");
    NamespaceFields { set: None, endurance_group: u16::MAX }.write_into(&mut page);
    assert_eq!(changed(&[0; 4096], &page), 102..104, "endgid");
}

#[test]
fn enumerators() {
    let set = SetId::new(1).unwrap();
    let event = |event| u32::from(Events::NONE.with(event).bits());
    let announced = AsyncEventConfig::default().with_event_aggregate(true).bits;
    let status = |status: Status| u32::from_be_bytes([0, 0, status.code_type(), status.code()]);
    let numbers = [
        ("nvme_admin_get_log_page", 0x02, GetLogPage::OPCODE.into()),
        ("nvme_admin_identify", 0x06, NvmSetList::OPCODE.into()),
        ("nvme_admin_set_features", 0x09, SetFeatures::OPCODE.into()),
        ("nvme_admin_get_features", 0x0A, GetFeatures::OPCODE.into()),
        ("nvme_admin_async_event", 0x0C, Notice::OPCODE.into()),
        ("NVME_IDENTIFY_CNS_NVMSET_LIST", 0x04, NvmSetList::CNS.into()),
        ("NVME_FEAT_FID_ASYNC_EVENT", 0x0B, Feature::AsyncEvents.id().into()),
        ("NVME_FEAT_FID_PLM_CONFIG", 0x13, Feature::PlmConfig(set).id().into()),
        ("NVME_FEAT_FID_PLM_WINDOW", 0x14, Feature::PlmWindow(set).id().into()),
        ("NVME_FEATURE_PLM_DTWIN", 1, WindowSelect::Dtwin.code().into()),
        ("NVME_FEATURE_PLM_NDWIN", 2, WindowSelect::Ndwin.code().into()),
        ("NVME_LOG_LID_PREDICTABLE_LAT_NVMSET", 0x0A, Log::PerSet(set).id().into()),
        ("NVME_LOG_LID_PREDICTABLE_LAT_AGG", 0x0B, Log::EventAggregate.id().into()),
        ("NVME_NVMSET_PL_STATUS_DISABLED", 0, WindowStatus::NotEnabled.code().into()),
        ("NVME_NVMSET_PL_STATUS_DTWIN", 1, WindowStatus::Dtwin.code().into()),
        ("NVME_NVMSET_PL_STATUS_NDWIN", 2, WindowStatus::Ndwin.code().into()),
        ("NVME_NVMSET_PL_EVENT_DTWIN_READ_WARN", 0x0001, event(Event::ReadsWarning)),
        ("NVME_NVMSET_PL_EVENT_DTWIN_WRITE_WARN", 0x0002, event(Event::WritesWarning)),
        ("NVME_NVMSET_PL_EVENT_DTWIN_TIME_WARN", 0x0004, event(Event::TimeWarning)),
        ("NVME_NVMSET_PL_EVENT_DTWIN_EXCEEDED", 0x4000, event(Event::Exceeded)),
        ("NVME_NVMSET_PL_EVENT_DTWIN_EXCURSION", 0x8000, event(Event::Excursion)),
        ("NVME_FEATURE_AENCFG_NOTICE_PL_EVENT", 0x1000, announced),
        ("NVME_AER_NOTICE", 0x2, Notice::EventAggregate.dword0() & 0b111),
        ("NVME_AER_NOTICE_PL_EVENT", 0x04, (Notice::EventAggregate.dword0() >> 8) & 0xFF),
        ("NVME_SC_SUCCESS", 0x000, status(Status::Success)),
        ("NVME_SC_INVALID_FIELD", 0x002, status(Status::InvalidField)),
        ("NVME_SC_LBA_RANGE", 0x080, status(Status::LbaOutOfRange)),
        ("NVME_SC_INVALID_LOG_PAGE", 0x109, status(Status::InvalidLogPage)),
        ("NVME_SC_FEATURE_NOT_SAVEABLE", 0x10D, status(Status::FeatureNotSaveable)),
        ("NVME_SC_WRITE_FAULT", 0x280, status(Status::WriteFault)),
        ("NVME_SC_READ_ERROR", 0x281, status(Status::UnrecoveredReadError)),
    ];
    for (name, of_header, ours) in numbers {
        assert_eq!(of_header, ours, "{name}");
    }
}
