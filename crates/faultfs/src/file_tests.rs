use super::*;

fn write(file: &mut File, offset: u64, byte: u8) -> Ticket {
    file.begin_write(offset, &[byte; 4096])
}

fn cuts(file: &File, mood: Mood) -> BTreeSet<Vec<u8>> {
    let rng = &mut Rng::derive(1, "cuts");
    (0..60).map(|_| file.after_cut(mood, rng).read(0, 3 * 4096)).map(|all| firsts(&all)).collect()
}

/// Returns the first byte of each block.
fn firsts(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().step_by(4096).copied().collect()
}

#[test]
fn what_was_not_synced_may_be_lost_block_by_block() {
    let mut file = File::default();
    for (block, byte) in [(0, 1), (1, 2)] {
        let ticket = write(&mut file, block * 4096, byte);
        file.end(ticket, false);
    }
    file.sync();
    let ticket = file.begin_write(0, &[7; 8192]);
    file.end(ticket, false);
    assert_eq!(firsts(&file.read(0, 8192)), [7, 7]);
    let mixes = [[1, 2], [1, 7], [7, 2], [7, 7]].map(Vec::from);
    assert_eq!(cuts(&file, Mood::Mixes), mixes.into());
    assert_eq!(cuts(&file, Mood::Loses), [vec![1, 2]].into());
    assert_eq!(cuts(&file, Mood::Keeps), [vec![7, 7]].into());
    file.sync();
    assert_eq!(cuts(&file, Mood::Mixes), [vec![7, 7]].into());
}

#[test]
fn a_sync_covers_what_had_ended() {
    let mut file = File::default();
    let first = write(&mut file, 0, 1);
    file.end(first, false);
    let second = write(&mut file, 4096, 2);
    file.sync();
    assert_eq!(cuts(&file, Mood::Loses), [vec![1, 0]].into());
    file.end(second, false);
    file.sync();
    assert_eq!(cuts(&file, Mood::Loses), [vec![1, 2]].into());
    let forced = write(&mut file, 0, 9);
    let other = write(&mut file, 8192, 3);
    file.end(other, false);
    file.end(forced, true);
    assert_eq!(cuts(&file, Mood::Loses), [vec![9, 2, 0]].into());
}

#[test]
fn holes_and_sizes_may_be_lost() {
    let mut file = File::default();
    let ticket = write(&mut file, 0, 1);
    file.end(ticket, false);
    assert_eq!(cuts(&file, Mood::Mixes), [vec![], vec![0], vec![1]].into());
    file.sync();
    let ticket = file.begin_zeroing(0, 4096);
    file.end(ticket, false);
    assert_eq!(file.read(0, 1), [0]);
    assert_eq!(cuts(&file, Mood::Mixes), [vec![0], vec![1]].into());
    let torn = file.after_cut(Mood::Tears, &mut Rng::derive(3, "torn"));
    let bytes = torn.read(0, 4096);
    assert!(bytes.contains(&0) && bytes.contains(&1), "sectors of both");
}

#[test]
fn a_read_ends_with_the_file() {
    let mut file = File::default();
    let ticket = file.begin_write(100, b"words");
    file.end(ticket, false);
    assert_eq!((file.size(), file.blocks_in_use()), (105, 1));
    assert_eq!(file.read(98, 1000), b"\0\0words");
    assert_eq!(file.read(200, 10), b"");
}

#[test]
fn what_was_under_way_when_its_writer_ended_is_covered_by_the_next_sync() {
    let mut file = File::default();
    write(&mut file, 0, 1);
    file.sync();
    // The size is durable, but no contents.
    assert_eq!(cuts(&file, Mood::Loses), [vec![0]].into());
    file.end_all();
    assert_eq!(cuts(&file, Mood::Loses), [vec![0]].into());
    assert_eq!(cuts(&file, Mood::Keeps), [vec![1]].into());
    file.sync();
    assert_eq!(cuts(&file, Mood::Loses), [vec![1]].into());
}
