//! Tests that need an administrator's set-up: a drive, and a file system without free space. Run
//! them with `cargo test -p files -- --ignored`.

use std::path::{Path, PathBuf};
use std::process::Command;

use block::{Block, BlockDevice, DeviceError, Force};
use files::{Discards, FileDevice, FileError, FileOptions};
use runtime::{IoChoice, IoClass};

use crate::model;
use crate::scratch::{Scratch, runtime, set, ways};

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A file as a loop device; detached on drop.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Self {
        let path = file.to_str().expect("it is plain text");
        Self(run("losetup", &["--find", "--show", "--direct-io=on", path]))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
#[ignore = "sets up loop devices"]
fn drives_do_what_blocks_in_memory_do() {
    for (io, options) in ways() {
        let scratch = Scratch::new();
        let drives: Vec<_> = (0..3)
            .map(|n| {
                let file = scratch.file(&format!("drive-{n}"));
                std::fs::write(&file, vec![7; 600 * 4096]).expect("it is ours");
                Loop::over(&file)
            })
            .collect();
        let paths = drives.iter().map(|drive| PathBuf::from(&drive.0)).collect();
        let rt = runtime(io);
        rt.block_on(model::drive(rt.handle(), paths, options, 5));
    }
}

/// A tmpfs of the given size; unmounted on drop.
struct Small(PathBuf);

impl Small {
    fn at(path: PathBuf, size: &str) -> Self {
        std::fs::create_dir(&path).expect("it is ours");
        let target = path.to_str().expect("it is plain text");
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", target]);
        Self(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
#[ignore = "mounts a file system"]
fn a_write_that_finds_no_room_says_so_and_goes_through_when_there_is_some() {
    for (io, _) in ways() {
        let scratch = Scratch::new();
        let small = Small::at(scratch.file("small"), "4m");
        let rt = runtime(io);
        let (handle, directory) = (rt.handle(), small.0.clone());
        rt.block_on(async move {
            let options = FileOptions { discards: Discards::GiveBack, ..FileOptions::default() };
            let paths = [directory.join("drive")];
            let full = FileDevice::create(&handle, &paths, 8 << 20, options).await;
            assert!(matches!(full, Err(FileError::NoRoom { bytes: 8_388_608, .. })));
            let device = FileDevice::create(&handle, &paths, 3 << 20, options).await;
            let device = device.expect("there is room");
            device.discard(set(1), 0, 768).await.expect("it can be discarded");
            let other = directory.join("other");
            std::fs::write(&other, vec![1; 3 << 20]).expect("there is room now");
            let write = |first, blocks| {
                let blocks = vec![Block::new(&[9; 4096]); blocks];
                device.write(set(1), first, blocks, IoClass::Flush, Force::No)
            };
            assert_eq!(write(0, 512).await, Err(DeviceError::NoSpace(set(1))));
            let told = device.troubles();
            let last = told.last().expect("it was told").to_string();
            assert!(last.contains("writing: No space left on device"), "{last}");
            std::fs::remove_file(other).expect("it is ours");
            assert_eq!(write(0, 512).await, Ok(()));
        });
        drop(rt);
    }
}

#[test]
#[ignore = "sets up a loop device"]
fn a_drive_that_is_mounted_is_left_alone() {
    let scratch = Scratch::new();
    let file = scratch.file("drive");
    std::fs::write(&file, vec![0; 64 << 20]).expect("it is ours");
    let drive = Loop::over(&file);
    run("mkfs.ext4", &["-q", &drive.0]);
    let point = scratch.file("mounted");
    std::fs::create_dir(&point).expect("it is ours");
    let point = Small(point);
    run("mount", &[&drive.0, point.0.to_str().expect("it is plain text")]);
    let rt = runtime(IoChoice::Probe);
    let (handle, paths) = (rt.handle(), vec![PathBuf::from(&drive.0)]);
    let opened = rt.block_on(async move {
        FileDevice::open(&handle, &paths, FileOptions::default()).await.map(drop)
    });
    assert!(matches!(opened, Err(FileError::InUse(_))), "{opened:?}");
}
