//! Window commands by admin passthrough to a simulated drive: checks the submitted bytes and the
//! decoded responses.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use block::nvme::{
    Budget, DecodeError, Events, GetFeatures, PerSetLog, PlmConfig, SetFeatures, SetId, Status,
    Thresholds, WindowSelect, WindowStatus,
};
use block::{BlockDevice, Force};
use drives::ssd::{AdminCommand, Precondition, Ssd, SsdProfile};
use files::{Admin, FileDevice, FileOptions, Plm, PlmError};
use runtime::{AdminCompletion, AdminDwords, IoClass, Nanos, RealOptions, Runtime};

use crate::scratch::Scratch;

/// A command and its buffer.
type Sent = (AdminDwords, Vec<u8>);

/// A simulated drive that records the submitted commands.
#[derive(Clone)]
struct Simulated {
    ssd: Ssd,
    sent: Rc<RefCell<Vec<Sent>>>,
}

impl Simulated {
    fn new(rt: &Runtime, profile: &str) -> Self {
        let profile = SsdProfile::load(profile).expect("it is built in");
        let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Empty);
        Self { ssd, sent: Rc::default() }
    }

    fn last(&self) -> Sent {
        self.sent.borrow().last().cloned().expect("something was sent")
    }
}

/// Whether the command sends data to the drive, by the lowest two bits of its opcode.
fn sends(dwords: &AdminDwords) -> bool {
    dwords[0] & 0b11 == 0b01
}

impl Admin for Simulated {
    fn submit(
        &self,
        dwords: AdminDwords,
        data: Vec<u8>,
    ) -> impl Future<Output = io::Result<AdminCompletion>> + use<> {
        self.sent.borrow_mut().push((dwords, data.clone()));
        let ssd = self.ssd.clone();
        async move {
            let command = AdminCommand {
                opcode: dwords[0] as u8,
                namespace: dwords[1],
                dwords: std::array::from_fn(|n| dwords[10 + n]),
                data: if sends(&dwords) { data.clone() } else { Vec::new() },
            };
            let ended = ssd.admin(&command).await;
            let (code_type, code) = ended.status.numbers();
            let status = u16::from(code_type) << 8 | u16::from(code);
            // The buffer keeps its length; a drive that refuses a command leaves it unchanged.
            let mut back = data;
            if !sends(&dwords) {
                let came = ended.data.len().min(back.len());
                back[..came].copy_from_slice(&ended.data[..came]);
            }
            Ok(AdminCompletion { status, dword0: ended.dword0, data: back })
        }
    }
}

fn set(number: u16) -> SetId {
    SetId::new(number).expect("numbers begin with 1")
}

fn status<T: std::fmt::Debug>(outcome: Result<T, PlmError>) -> Status {
    let error = outcome.expect_err("it is refused");
    error.status().unwrap_or_else(|| panic!("it was to be refused: {error}"))
}

fn config() -> PlmConfig {
    let left = Budget { reads: 3, writes: 5, time_ms: 7 };
    PlmConfig { enabled: true, thresholds: Thresholds { events: Events::from_bits(0b110), left } }
}

#[test]
fn commands_and_answers_are_those_of_the_drive() {
    let rt = Runtime::new(1);
    let admin = Simulated::new(&rt, "vigil-15gb");
    let handle = rt.handle();
    rt.block_on(async move {
        let ssd = admin.ssd.clone();
        let namespace = ssd.sets()[1].id.get();
        let plm = Plm::of_namespace(admin.clone(), namespace.into()).await.expect("it answers");
        let plm = plm.expect("it has windows");
        assert_eq!(plm.set(), set(namespace));

        // Enables the mode with thresholds and reads them back: by dwords, by data, and from the
        // drive itself.
        plm.configure(config()).await.expect("it has windows");
        let (dwords, data) = admin.last();
        let mut wanted = [0; 16];
        (wanted[0], wanted[10], wanted[11], wanted[12]) = (0x09, 0x13, 2, 1);
        assert_eq!(dwords, wanted);
        assert_eq!(data, config().thresholds.encode());
        assert_eq!(ssd.plm_config(plm.set()).await, Ok(config()));
        assert_eq!(plm.config().await.expect("it answers"), config());
        let (dwords, data) = admin.last();
        assert_eq!((dwords[0], dwords[10], dwords[11]), (0x0A, 0x13, 2));
        assert_eq!(data.len(), 512, "a buffer for the thresholds");

        // Selects a window after the minimum time in NDWIN.
        let least = ssd.plm_log(plm.set(), true).await.expect("it answers").ndwin_minimum_low_ms;
        handle.sleep(Nanos::from_millis(least)).await;
        plm.select(WindowSelect::Dtwin).await.expect("it may");
        let (dwords, data) = admin.last();
        assert_eq!((dwords[0], dwords[10], dwords[11], dwords[12]), (0x09, 0x14, 2, 1));
        assert!(data.is_empty());
        assert_eq!(plm.window().await.expect("it answers"), WindowSelect::Dtwin);
        let log = plm.log(true).await.expect("it answers");
        let (dwords, data) = admin.last();
        assert_eq!((dwords[0], dwords[10]), (0x02, 0x0A | 1 << 15 | 127 << 16));
        assert_eq!((dwords[11], data.len()), (2 << 16, PerSetLog::BYTES));
        assert_eq!(Ok(log), ssd.plm_log(plm.set(), true).await);
        assert_eq!(log.status, WindowStatus::Dtwin);

        // A write ends the window (Vigil-KV's rules). Its event is pending until a read without
        // Retain.
        let block = vec![block::Block::new(b"write")];
        let write = ssd.write(plm.set(), 0, block, IoClass::Flush, Force::No);
        write.await.expect("it takes writes");
        let before = plm.log(true).await.expect("it answers");
        assert_eq!(before.status, WindowStatus::Ndwin);
        let taken = plm.log(false).await.expect("it answers");
        assert_eq!((taken.status, taken.events), (before.status, before.events));
        assert_eq!(plm.log(true).await.expect("it answers").events, Events::default());

        plm.configure(PlmConfig::default()).await.expect("it goes off");
        assert_eq!(ssd.plm_config(plm.set()).await, Ok(PlmConfig::default()));
    });
}

#[test]
fn every_refusal_is_told_for_what_it_is() {
    let rt = Runtime::new(2);
    let (with, without) = (Simulated::new(&rt, "vigil-15gb"), Simulated::new(&rt, "baseline-15gb"));
    rt.block_on(async move {
        // A window while the mode is disabled; a set that does not exist.
        let plm = Plm::of_set(with.clone(), set(1));
        assert_eq!(status(plm.select(WindowSelect::Dtwin).await), Status::InvalidField);
        assert_eq!(status(plm.window().await), Status::InvalidField);
        let beyond = Plm::of_set(with.clone(), set(99));
        assert_eq!(status(beyond.configure(config()).await), Status::InvalidField);
        assert_eq!(status(beyond.config().await), Status::InvalidField);
        assert_eq!(status(beyond.log(true).await), Status::InvalidField);
        let found = Plm::of_namespace(with, 99).await;
        assert_eq!(status(found.map(|plm| plm.is_some())), Status::InvalidField);

        // A drive without windows reports that in Identify and refuses window commands.
        let found = Plm::of_namespace(without.clone(), 1).await.expect("it answers");
        assert!(found.is_none());
        let plm = Plm::of_set(without, set(1));
        assert_eq!(status(plm.configure(config()).await), Status::InvalidField);
        assert_eq!(status(plm.config().await), Status::InvalidField);
        assert_eq!(status(plm.select(WindowSelect::Dtwin).await), Status::InvalidField);
        let refused = plm.log(true).await;
        let words = refused.as_ref().expect_err("it has none").to_string();
        assert!(words.contains("0Ah") && words.contains("refused"), "{words}");
        assert!(matches!(status(refused), Status::InvalidLogPage | Status::InvalidField));
    });
}

/// A drive that completes every command with the same result.
struct Ends(fn() -> io::Result<AdminCompletion>);

impl Admin for Ends {
    fn submit(
        &self,
        _: AdminDwords,
        _: Vec<u8>,
    ) -> impl Future<Output = io::Result<AdminCompletion>> + use<> {
        std::future::ready((self.0)())
    }
}

fn ended(status: u16, data: Vec<u8>) -> AdminCompletion {
    AdminCompletion { status, dword0: 0, data }
}

#[test]
fn answers_that_mean_nothing_are_errors() {
    let rt = Runtime::new(3);
    rt.block_on(async move {
        let of = |ends| Plm::of_set(Ends(ends), set(3));
        for known in Status::ALL.into_iter().filter(|status| *status != Status::Success) {
            let (code_type, code) = known.numbers();
            let status = u16::from(code_type) << 8 | u16::from(code);
            let error = PlmError::Refused { doing: "it", status };
            assert_eq!(error.status(), Some(known));
        }
        let error = of(|| Ok(ended(0x10E, Vec::new()))).configure(config()).await;
        let words = error.expect_err("it is refused").to_string();
        assert!(words.contains("cannot be changed (status type 1h, code 0Eh)"), "{words}");
        let error = of(|| Ok(ended(0x7FF, Vec::new()))).log(true).await.expect_err("it is refused");
        assert!(error.status().is_none() && error.to_string().contains("not known"), "{error}");
        // A page that is too short, a reserved window status, a reserved window.
        let error = of(|| Ok(ended(0, vec![0; 511]))).log(true).await.expect_err("too short");
        assert!(matches!(
            error,
            PlmError::Answer { error: DecodeError::DataLength { found: 511, .. }, .. }
        ));
        let error = of(|| Ok(ended(0, vec![7; 512]))).log(true).await.expect_err("reserved");
        assert!(matches!(
            error,
            PlmError::Answer { error: DecodeError::WindowStatus { found: 7 }, .. }
        ));
        let error = of(|| Ok(ended(0, Vec::new()))).window().await.expect_err("reserved");
        assert!(matches!(error, PlmError::Answer { .. }), "{error}");
        let refused = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = of(refused).config().await.expect_err("it is not let through");
        assert!(error.to_string().contains("did not come to the drive"), "{error}");
    });
    assert_eq!((SetFeatures::OPCODE, GetFeatures::OPCODE), (0x09, 0x0A));
}

#[test]
fn files_without_such_a_drive_have_no_windows_and_say_why() {
    let scratch = Scratch::new();
    let rt = Runtime::real(RealOptions::default()).expect("there is a runtime");
    let handle = rt.handle();
    let paths = files::files_in(&scratch.path, 2);
    rt.block_on(async move {
        let options = FileOptions::default();
        let device = FileDevice::create(&handle, &paths, 1 << 20, options).await.expect("room");
        let why = device.look_for_windows().await.expect_err("no drive here has them");
        assert!(!why.is_empty());
        println!("{why}");
        assert!(device.sets().iter().all(|shape| !shape.has_windows));
        let refused = device.select_window(set(1), WindowSelect::Dtwin).await;
        assert_eq!(refused, Err(block::DeviceError::Refused(Status::InvalidField)));
    });
}
