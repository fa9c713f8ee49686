//! Failures: reported in words, without a panic.

use std::path::{Path, PathBuf};

use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force};
use files::{DirectIo, FileDevice, FileError, FileOptions};
use runtime::{IoChoice, IoClass, Runtime};

use crate::scratch::{Scratch, runtime, set, ways};

const MIB: u64 = 1 << 20;

fn create(
    rt: &Runtime,
    path: &Path,
    bytes: u64,
    options: FileOptions,
) -> Result<FileDevice, FileError> {
    let (handle, paths) = (rt.handle(), vec![path.to_owned()]);
    rt.block_on(async move { FileDevice::create(&handle, &paths, bytes, options).await })
}

fn open(rt: &Runtime, paths: &[PathBuf], options: FileOptions) -> Result<FileDevice, FileError> {
    let (handle, paths) = (rt.handle(), paths.to_vec());
    rt.block_on(async move { FileDevice::open(&handle, &paths, options).await })
}

fn said(result: Result<FileDevice, FileError>) -> String {
    match result {
        Ok(device) => panic!("it went well: {device}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let scratch = Scratch::new();
    let rt = runtime(IoChoice::Probe);
    let any = FileOptions::default();
    let path = scratch.file("drive");
    let missing = said(open(&rt, std::slice::from_ref(&path), any));
    assert!(missing.ends_with("drive is not there; make it first, or name another"), "{missing}");
    let device = create(&rt, &path, MIB, any).expect("there is room");
    assert!(device.to_string().contains("drive, 256 blocks of 4 KiB, "), "{device}");
    assert!(said(create(&rt, &path, MIB, any)).contains("is there already"));
    let used = said(open(&rt, std::slice::from_ref(&path), any));
    assert!(used.contains("is in use by another process, or twice by this one"), "{used}");
    drop(device);
    assert!(open(&rt, std::slice::from_ref(&path), any).is_ok());
    assert!(said(open(&rt, &[path.clone(), path.clone()], any)).contains("twice by this one"));
    assert!(
        said(open(&rt, std::slice::from_ref(&scratch.path), any))
            .contains("neither a file nor a drive")
    );
    std::fs::write(scratch.file("short"), b"short").expect("it is ours");
    assert!(said(open(&rt, &[scratch.file("short")], any)).contains("smaller than a block"));
    assert!(said(create(&rt, &scratch.file("nothing"), 100, any)).contains("smaller than a block"));
    assert!(!scratch.file("nothing").exists());
}

#[test]
fn where_no_file_can_be_made_it_says_so() {
    let scratch = Scratch::new();
    let rt = runtime(IoChoice::Threads);
    let any = FileOptions::default();
    // No user can create files there, not even root.
    let refused = said(create(&rt, Path::new("/proc/drive"), MIB, any));
    assert!(refused.starts_with("/proc/drive "), "{refused}");
    let below_file = scratch.file("file");
    std::fs::write(&below_file, b"").expect("it is ours");
    let refused = said(create(&rt, &below_file.join("drive"), MIB, any));
    assert!(refused.contains("cannot be made: Not a directory"), "{refused}");
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_behind() {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        let scratch = Scratch::new();
        let rt = runtime(io);
        let path = scratch.file("drive");
        let full = said(create(&rt, &path, 1 << 60, FileOptions::default()));
        assert!(full.starts_with("there is no room for 1152921504606846976 bytes at "), "{full}");
        assert!(!path.exists());
    }
}

#[test]
fn a_file_that_was_cut_is_told_by_name_and_offset() {
    for (io, options) in ways() {
        let scratch = Scratch::new();
        let rt = runtime(io);
        let path = scratch.file("drive");
        let device = create(&rt, &path, MIB, options).expect("there is room");
        let file = std::fs::File::options().write(true).open(&path).expect("it is ours");
        file.set_len(10 * u64::from(BLOCK_BYTES)).expect("it can be cut");
        let reading = device.clone();
        let (inside, across, beyond) = rt.block_on(async move {
            let read = |first, blocks| reading.read(set(1), first, blocks, IoClass::ClientRead);
            (read(9, 1).await, read(8, 4).await, read(100, 2).await)
        });
        assert_eq!(inside, Ok(vec![Block::ZERO]));
        assert_eq!(across, Err(DeviceError::Unreadable { set: set(1), block: 8 }));
        assert_eq!(beyond, Err(DeviceError::Unreadable { set: set(1), block: 100 }));
        let troubles = device.troubles();
        let told: Vec<_> = troubles.iter().map(ToString::to_string).collect();
        let expected = "16384 bytes at 32768: reading: the file ends after 8192 of these; it was cut since it was opened";
        assert!(told[0].ends_with(expected), "{}", told[0]);
        assert!(told[0].starts_with(&path.display().to_string()) && told.len() == 2);
    }
}

#[test]
fn commands_that_make_no_sense_are_refused() {
    let scratch = Scratch::new();
    let rt = runtime(IoChoice::Probe);
    let device = create(&rt, &scratch.file("drive"), MIB, FileOptions::default());
    let device = device.expect("there is room");
    rt.block_on(async move {
        let read = |number, first, blocks| device.read(set(number), first, blocks, IoClass::Log);
        assert_eq!(read(2, 0, 1).await, Err(DeviceError::NoSuchSet(set(2))));
        let beyond = |first, blocks| {
            Err(DeviceError::OutOfRange { set: set(1), first, blocks, capacity: 256 })
        };
        assert_eq!(read(1, 256, 1).await, beyond(256, 1).map(|()| vec![]));
        assert_eq!(read(1, 256, 0).await, Ok(vec![]));
        let blocks = vec![Block::ZERO; 2];
        let written = device.write(set(1), 255, blocks, IoClass::Log, Force::No).await;
        assert_eq!(written, beyond(255, 2));
        assert_eq!(device.discard(set(1), 1, u64::MAX).await, beyond(1, u64::MAX));
        assert_eq!(device.discard(set(1), 256, 0).await, Ok(()));
        let config = device.plm_config(set(1)).await;
        assert!(matches!(config, Err(DeviceError::Refused(_))), "files have no windows");
    });
}

#[test]
fn a_missing_file_is_borne_as_a_lost_set() {
    let scratch = Scratch::new();
    let rt = runtime(IoChoice::Probe);
    let any = FileOptions::default();
    let paths = files::files_in(&scratch.path, 3);
    let (handle, all) = (rt.handle(), paths.clone());
    let made = rt.block_on(async move { FileDevice::create(&handle, &all, MIB, any).await });
    drop(made.expect("there is room"));
    std::fs::remove_file(&paths[1]).expect("it is ours");
    assert!(said(open(&rt, &paths, any)).contains("set-2 is not there"));
    let bears = FileOptions { bears_missing: true, ..any };
    let device = open(&rt, &paths, bears).expect("two are there");
    assert!(device.to_string().contains("set-2, 256 blocks of 4 KiB, it is not there"), "{device}");
    rt.block_on(async move {
        let read = |number| device.read(set(number), 0, 1, IoClass::ClientRead);
        assert_eq!(read(1).await, Ok(vec![Block::ZERO]));
        assert_eq!(read(2).await, Err(DeviceError::Gone(set(2))));
        let blocks = vec![Block::ZERO];
        let written = device.write(set(2), 0, blocks, IoClass::Log, Force::No).await;
        assert_eq!(written, Err(DeviceError::Gone(set(2))));
        assert_eq!(device.flush(set(2)).await, Err(DeviceError::Gone(set(2))));
    });
    let nowhere = files::files_in(&scratch.file("nowhere"), 2);
    assert!(said(open(&rt, &nowhere, bears)).contains("is not there"));
}

#[test]
fn direct_io_is_as_it_was_asked_for() {
    let scratch = Scratch::new();
    let rt = runtime(IoChoice::Probe);
    let options = |direct| FileOptions { direct, ..FileOptions::default() };
    let path = scratch.file("drive");
    let device = create(&rt, &path, MIB, options(DirectIo::Off)).expect("there is room");
    assert!(!device.is_direct());
    drop(device);
    let direct = open(&rt, std::slice::from_ref(&path), options(DirectIo::On));
    let probed = match direct {
        Ok(device) => device.is_direct(),
        Err(FileError::NotDirect(_)) => false,
        Err(error) => panic!("{error}"),
    };
    let device = open(&rt, &[path], options(DirectIo::Probe)).expect("it was there before");
    assert_eq!(device.is_direct(), probed);
}
