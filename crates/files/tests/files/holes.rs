//! Sparse files: holes are detected and read as zeros.

use std::fs::File;
use std::os::unix::fs::FileExt;

use block::{Block, BlockDevice, DeviceError, Force};
use files::{FileDevice, FileOptions, data_in};
use runtime::IoClass;

use crate::scratch::{Scratch, runtime, set, ways};

const BLOCKS: u64 = 4 << 20;
const WRITTEN: [u64; 3] = [0, 70_000, 3 << 20];

/// Creates a file of 16 GiB with three written blocks.
fn sparse(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.file("sparse");
    let file = File::create(&path).expect("it is ours");
    file.set_len(BLOCKS * 4096).expect("it takes no room");
    for block in WRITTEN {
        file.write_all_at(&[block as u8 + 1; 4096], block * 4096).expect("there is room");
    }
    file.sync_all().expect("it can be");
    path
}

#[test]
fn data_is_what_was_written_and_some() {
    let scratch = Scratch::new();
    let file = File::open(sparse(&scratch)).expect("it is there");
    let parts = data_in(&file).expect("the system answers");
    for block in WRITTEN {
        let at = block * 4096;
        assert!(parts.iter().any(|part| part.contains(&at)), "{block}: {parts:?}");
    }
    assert!(parts.windows(2).all(|two| two[0].end < two[1].start), "{parts:?}");
    let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
    println!("{bytes} bytes of data: {parts:?}");
    // File systems that cannot report holes report the whole file as data.
    assert!(bytes < 1 << 20 || bytes == BLOCKS * 4096);
    let empty = File::create(scratch.file("empty")).expect("it is ours");
    assert_eq!(data_in(&empty).expect("the system answers"), []);
}

#[test]
fn a_device_that_takes_no_writes_reads_what_another_one_does() {
    for (io, options) in ways() {
        let scratch = Scratch::new();
        let path = sparse(&scratch);
        let rt = runtime(io);
        let handle = rt.handle();
        rt.block_on(async move {
            let options = FileOptions { read_only: true, ..options };
            let device = FileDevice::open(&handle, &[path], options).await.expect("it is there");
            // Ranges that contain data and holes.
            for (first, blocks) in [(0, 1), (1, 64), (69_990, 64), (5_000, 16), (BLOCKS - 8, 8)] {
                let read = device.read(set(1), first, blocks, IoClass::ClientRead).await;
                let wanted = (first..first + u64::from(blocks)).map(|block| {
                    if WRITTEN.contains(&block) {
                        vec![block as u8 + 1; 4096]
                    } else {
                        vec![0; 4096]
                    }
                });
                let read: Vec<_> =
                    read.expect("it can be read").iter().map(Block::to_vec).collect();
                assert!(read == wanted.collect::<Vec<_>>(), "{blocks} blocks from {first} on");
            }
            // Reads of holes are fast enough to read all of them.
            for first in (0..BLOCKS).step_by(1 << 10) {
                let read = device.read(set(1), first, 1 << 10, IoClass::ClientRead).await;
                assert_eq!(read.expect("it can be read").len(), 1 << 10);
            }
            let write = device.write(set(1), 9, vec![Block::ZERO], IoClass::Flush, Force::No);
            assert_eq!(write.await, Err(DeviceError::ReadOnly(set(1))));
            let behind = device.read(set(1), BLOCKS, 1, IoClass::ClientRead).await;
            assert!(matches!(behind, Err(DeviceError::OutOfRange { .. })), "{behind:?}");
        });
    }
}
