//! Tests of the admin commands, in dwords, as a host that knows only NVMe sends them.

use block::nvme::{
    Budget, ControllerAttributes, ControllerFields, Event, EventAggregate, Events, GetLogPage,
    NamespaceFields, NvmSetList, PerSetLog, SetId, Status, Thresholds, WindowStatus,
};
use drives::ssd::{AdminCommand, AdminCompletion, Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Runtime};

use crate::harness::ClientIo;

const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0A;
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ASYNC_EVENT: u8 = 0x0C;

fn command(opcode: u8, dwords: &[u32], data: &[u8]) -> AdminCommand {
    let mut all = [0; 6];
    all[..dwords.len()].copy_from_slice(dwords);
    AdminCommand { opcode, namespace: 0, dwords: all, data: data.to_vec() }
}

fn drive(rt: &Runtime, profile: &str) -> Ssd {
    let profile = SsdProfile::load(profile).expect("built in");
    Ssd::new(&rt.handle(), &profile, Precondition::Empty)
}

/// Executes a command on the Vigil drive.
fn run(rt: &Runtime, ssd: &Ssd, opcode: u8, dwords: &[u32], data: &[u8]) -> AdminCompletion {
    let (ssd, command) = (ssd.clone(), command(opcode, dwords, data));
    rt.block_on(async move { ssd.admin(&command).await })
}

fn id(number: u16) -> SetId {
    SetId::new(number).expect("not zero")
}

#[test]
fn the_drive_says_which_sets_it_has_and_that_they_have_windows() {
    let rt = Runtime::new(1);
    let ssd = drive(&rt, "vigil-1.92tb");
    let list = run(&rt, &ssd, IDENTIFY, &[0x04, 2], &[]);
    let list = NvmSetList::decode(list.data.as_slice().try_into().unwrap()).unwrap();
    let entries = list.entries();
    assert_eq!(entries.iter().map(|entry| entry.id.get()).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(entries[0].read_typical_100ns, 834, "83.4 us");
    assert_eq!(entries[0].optimal_write_bytes.map(u32::from), Some(32_768));
    assert_eq!(entries[0].capacity_bytes, 480_095_850_496);

    let page = run(&rt, &ssd, IDENTIFY, &[0x01], &[]).data;
    let fields = ControllerFields::read_from(page.as_slice().try_into().unwrap());
    assert!(fields.attributes.contains(ControllerAttributes::PREDICTABLE_LATENCY));
    assert!(fields.announces_event_aggregate);
    assert_eq!(fields.largest_set, 4);

    let (ssd2, mut of_set) = (ssd.clone(), command(IDENTIFY, &[0x00], &[]));
    of_set.namespace = 3;
    let page = rt.block_on(async move { ssd2.admin(&of_set).await }).data;
    let fields = NamespaceFields::read_from(page.as_slice().try_into().unwrap());
    assert_eq!(fields.set, Some(id(3)));
}

#[test]
fn windows_are_chosen_and_looked_at_in_dwords() {
    let rt = Runtime::new(1);
    let ssd = drive(&rt, "vigil-15gb");
    // A window command before the mode is enabled.
    let refused = run(&rt, &ssd, SET_FEATURES, &[0x14, 2, 1], &[]);
    assert_eq!(refused.status, Status::InvalidField);
    let on = run(&rt, &ssd, SET_FEATURES, &[0x13, 2, 1], &Thresholds::default().encode());
    assert_eq!(on.status, Status::Success);
    let begun = rt.handle().now();
    let dtwin = run(&rt, &ssd, SET_FEATURES, &[0x14, 2, 1], &[]);
    assert_eq!(dtwin.status, Status::Success);
    let held = rt.handle().now() - begun;
    assert!(held >= Nanos::from_millis(3_999), "NDWIN lasts 4 s at least, not {held}");
    assert_eq!(run(&rt, &ssd, GET_FEATURES, &[0x14, 2], &[]).dword0, 1);
    let log = run(&rt, &ssd, GET_LOG_PAGE, &[0x007F_000A, 2 << 16], &[]).data;
    let log = PerSetLog::decode(log.as_slice().try_into().unwrap()).unwrap();
    assert_eq!((log.status, log.dtwin.time_ms), (WindowStatus::Dtwin, 60_000));
    // The paper's code for NDWIN is not one of the standard's.
    let papers = run(&rt, &ssd, SET_FEATURES, &[0x14, 2, 0], &[]);
    assert_eq!(papers.status, Status::InvalidField);
    let saved = run(&rt, &ssd, SET_FEATURES, &[0x8000_0013, 2, 0], &Thresholds::default().encode());
    assert_eq!(saved.status, Status::FeatureNotSaveable);
    let no_such_set = run(&rt, &ssd, SET_FEATURES, &[0x14, 9, 2], &[]);
    assert_eq!(no_such_set.status, Status::InvalidField);
    assert_eq!(run(&rt, &ssd, 0x7F, &[], &[]).status, Status::InvalidField);
}

#[test]
fn the_host_is_told_once_of_a_set_that_left_its_window() {
    let rt = Runtime::new(1);
    let ssd = drive(&rt, "vigil-15gb");
    let left = Budget::default();
    let thresholds = Thresholds { events: Events::NONE.with(Event::Exceeded), left };
    for set in [2, 3] {
        run(&rt, &ssd, SET_FEATURES, &[0x13, set, 1], &thresholds.encode());
        run(&rt, &ssd, SET_FEATURES, &[0x14, set, 1], &[]);
    }
    run(&rt, &ssd, SET_FEATURES, &[0x0B, 1 << 12], &[]);
    let waiting = ssd.clone();
    let notice = rt.handle().spawn("asynchronous event request", async move {
        waiting.admin(&command(ASYNC_EVENT, &[], &[])).await
    });
    let writer = ssd.clone();
    rt.block_on(async move {
        writer.client_write(id(3), 0, vec![block::Block::new(b"x")]).await.unwrap();
    });
    assert_eq!(rt.block_on(notice).dword0, 0x000B_0402);
    let log = run(&rt, &ssd, GET_LOG_PAGE, &[0x0003_000B, 0], &[]).data;
    let sets = EventAggregate::decode(&log).unwrap().sets;
    assert_eq!(sets.into_iter().collect::<Vec<_>>(), [id(3)]);
    let dwords = GetLogPage::per_set(id(3)).dwords();
    let log = run(&rt, &ssd, GET_LOG_PAGE, &dwords, &[]).data;
    let log = PerSetLog::decode(log.as_slice().try_into().unwrap()).unwrap();
    assert_eq!((log.status, log.events), (WindowStatus::Ndwin, thresholds.events));
    let log = run(&rt, &ssd, GET_LOG_PAGE, &[0x0003_000B, 0], &[]).data;
    assert!(EventAggregate::decode(&log).unwrap().sets.is_empty(), "reading 0Ah took the event");
}
