//! Random commands on a device of several sets, checked against blocks in memory.

use std::path::PathBuf;

use block::{Block, BlockDevice, Force};
use files::{Discards, FileDevice, FileOptions};
use runtime::{Handle, IoChoice, IoClass, Rng, join_all};

use crate::scratch::{Scratch, runtime, set, ways};

const BLOCKS: u64 = 600;
const SETS: u16 = 3;

/// The content of each block: the number drawn for it; 0 for zeros.
type Model = Vec<Vec<u64>>;

fn block_of(content: u64) -> Block {
    match content % 4 {
        _ if content == 0 => Block::ZERO,
        0 | 1 => Block::new(&content.to_le_bytes()),
        _ => Block::new(&content.to_le_bytes().repeat(512)),
    }
}

/// Runs concurrent random writes of disjoint ranges, then a discard and a flush.
async fn change(device: &FileDevice, rng: &mut Rng, model: &mut Model) {
    let mut writes = Vec::new();
    let mut from = 0;
    loop {
        let first = from + rng.below(60);
        // Some writes are longer than one piece.
        let most = if rng.chance(0.1) { 150 } else { 12 };
        let blocks = 1 + rng.below(most);
        from = first + blocks;
        if from > BLOCKS {
            break;
        }
        let number = rng.below(u64::from(SETS));
        let contents: Vec<u64> = (0..blocks).map(|_| rng.below(1 << 40)).collect();
        let range = first as usize..from as usize;
        model[number as usize][range].copy_from_slice(&contents);
        let blocks = contents.iter().map(|content| block_of(*content)).collect();
        let force = if rng.chance(0.2) { Force::Unit } else { Force::No };
        writes.push(device.write(set(number as u16 + 1), first, blocks, IoClass::Flush, force));
    }
    for written in join_all(writes).await {
        written.expect("there is room");
    }
    let number = rng.below(u64::from(SETS)) as u16;
    let first = rng.below(BLOCKS);
    let blocks = rng.below(BLOCKS - first).min(100);
    device.discard(set(number + 1), first, blocks).await.expect("it can be discarded");
    model[usize::from(number)][first as usize..(first + blocks) as usize].fill(0);
    device.flush(set(number + 1)).await.expect("it can be flushed");
}

async fn check(device: &FileDevice, rng: &mut Rng, model: &Model) {
    let reads = (0..40).map(|_| {
        let number = rng.below(u64::from(SETS)) as u16;
        let first = rng.below(BLOCKS);
        let blocks = (1 + rng.below(100)).min(BLOCKS - first) as u32;
        let read = device.read(set(number + 1), first, blocks, IoClass::ClientRead);
        async move { (number, first, read.await) }
    });
    for (number, first, read) in join_all(reads).await {
        for (at, block) in read.expect("it can be read").iter().enumerate() {
            let at = first as usize + at;
            assert!(*block == block_of(model[usize::from(number)][at]), "set {number}, block {at}");
        }
    }
}

pub(crate) async fn drive(handle: Handle, paths: Vec<PathBuf>, options: FileOptions, seed: u64) {
    let bytes = BLOCKS * 4096 + 100;
    let device = FileDevice::create(&handle, &paths, bytes, options).await;
    let mut device = device.unwrap_or_else(|error| panic!("{error}"));
    let shapes = device.sets();
    assert!(shapes.iter().all(|shape| shape.blocks == BLOCKS && !shape.has_windows));
    let mut rng = Rng::new(seed);
    let mut model: Model = vec![vec![0; BLOCKS as usize]; usize::from(SETS)];
    check(&device, &mut rng, &model).await;
    for _ in 0..6 {
        for _ in 0..4 {
            change(&device, &mut rng, &mut model).await;
            check(&device, &mut rng, &model).await;
        }
        drop(device);
        let opened = FileDevice::open(&handle, &paths, options).await;
        device = opened.unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(device.troubles().is_empty());
}

#[test]
fn a_device_does_what_blocks_in_memory_do() {
    for (seed, (io, options)) in ways().into_iter().enumerate() {
        let scratch = Scratch::new();
        let paths = files::files_in(&scratch.path, SETS);
        let rt = runtime(io);
        rt.block_on(drive(rt.handle(), paths, options, seed as u64));
    }
}

#[test]
fn every_way_to_discard_reads_as_zeros() {
    for discards in [Discards::KeepRoom, Discards::GiveBack, Discards::WriteZeros] {
        let scratch = Scratch::new();
        let rt = runtime(IoChoice::Probe);
        let options = FileOptions { discards, ..FileOptions::default() };
        let paths = files::files_in(&scratch.path, SETS);
        rt.block_on(drive(rt.handle(), paths, options, 7));
    }
}

#[test]
fn a_file_system_in_memory_will_do() {
    let memory = std::path::Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let scratch = Scratch::within(memory);
    for (n, (io, options)) in ways().into_iter().enumerate() {
        let directory = scratch.file(&format!("{n}"));
        std::fs::create_dir(&directory).expect("it is ours");
        let rt = runtime(io);
        rt.block_on(drive(rt.handle(), files::files_in(&directory, SETS), options, 3));
    }
}
