//! Operations alone, and operations that compete for a bus.

use drives::nand::FlashProfile;
use runtime::IoClass;

use crate::small_drive::{BACKGROUND, CLIENT, Drive, images, profile, profile_of};

/// MLC that programs page by page: 40 and 60 us to read, 200 and 600 us to program.
fn mlc() -> FlashProfile {
    let mut profile = profile();
    profile.geometry.bits_per_cell = 2;
    profile.timing.read_us = vec![40.0, 60.0];
    profile.timing.program_us = vec![200.0, 600.0];
    profile
}

/// Returns the duration of one operation on an idle drive, in nanoseconds.
fn span<T: 'static>(drive: &Drive, operation: impl Future<Output = T> + 'static) -> u64 {
    let start = drive.rt.handle().now();
    drive.rt.block_on(operation);
    (drive.rt.handle().now() - start).0
}

#[test]
fn an_operation_alone_takes_command_array_and_transfer_by_page_type() {
    let drive = Drive::new(&mlc());
    let read = |index| drive.flash.read(drive.page(0, 0, index), CLIENT);
    assert_eq!([span(&drive, read(0)), span(&drive, read(1))], [46_000, 66_000]);
    assert_eq!([span(&drive, read(2)), span(&drive, read(3))], [46_000, 66_000]);
    let program = |index| drive.flash.program(drive.page(0, 1, index), images(1), BACKGROUND);
    assert_eq!([span(&drive, program(0)), span(&drive, program(1))], [206_000, 606_000]);
    assert_eq!(span(&drive, drive.flash.erase(drive.block(0, 2), BACKGROUND)), 3_001_000);
}

#[test]
fn parts_of_a_microsecond_count() {
    let mut profile = profile();
    profile.timing.read_us = vec![40.125];
    profile.timing.command_us = 0.3;
    profile.timing.channel_mb_per_s = 800.0; // 5000 bytes in 6.25 us
    let drive = Drive::new(&profile);
    assert_eq!(span(&drive, drive.flash.read(drive.page(0, 0, 0), CLIENT)), 46_675);
}

#[test]
fn dies_of_one_channel_sense_at_once_and_transfer_in_turn() {
    let drive = Drive::new(&profile_of(1, 3));
    let reads = [0, 1, 2].map(|die| drive.read(0, die, CLIENT));
    let mut ends = drive.ends(reads);
    ends.sort_unstable();
    assert_eq!(ends, [46, 51, 56]);
}

#[test]
fn dies_of_different_channels_do_not_meet() {
    let drive = Drive::new(&profile_of(3, 1));
    let reads = [0, 1, 2].map(|die| drive.read(0, die, CLIENT));
    assert_eq!(drive.ends(reads), [46, 46, 46]);
}

#[test]
fn a_slow_sense_does_not_hold_the_bus() {
    let mut profile = mlc();
    profile.geometry.dies_per_channel = 2;
    let drive = Drive::new(&profile);
    let handle = drive.rt.handle();
    let slow = drive.flash.read(drive.page(0, 0, 1), CLIENT); // submitted first, sensed at 61
    let fast = drive.flash.read(drive.page(1, 0, 0), CLIENT); // sensed at 41
    let ends = drive.rt.block_on(async move {
        fast.await.unwrap();
        let fast_end = handle.now().0;
        slow.await.unwrap();
        (fast_end, handle.now().0)
    });
    assert_eq!(ends, (46_000, 66_000));
}

#[test]
fn programs_fetch_their_data_in_turn_and_run_at_once() {
    let drive = Drive::new(&profile_of(1, 2));
    let mut ends = drive.ends([0, 1].map(|die| drive.program(0, die, BACKGROUND)));
    ends.sort_unstable();
    assert_eq!(ends, [206, 211]);
}

#[test]
fn a_demand_read_passes_background_work_that_waits_for_the_bus() {
    let mut profile = profile_of(1, 3);
    profile.timing.channel_mb_per_s = 100.0; // 50 us for a page
    let drive = Drive::new(&profile);
    let first = drive.read(0, 0, CLIENT); // on the bus from 41 to 91
    let background = drive.read(1, 1, BACKGROUND);
    let demand = drive.read(2, 2, CLIENT);
    assert_eq!(drive.ends([first, demand, background]), [91, 141, 191]);
}

#[test]
fn a_program_unit_spans_all_planes_and_page_types_of_a_one_shot_part() {
    let mut profile = profile();
    profile.geometry.planes_per_die = 2;
    profile.geometry.bits_per_cell = 3;
    profile.geometry.one_shot = true;
    profile.timing.read_us = vec![40.0, 60.0, 80.0];
    profile.timing.program_us = vec![900.0];
    let drive = Drive::new(&profile);
    let geometry = drive.flash.geometry();
    assert_eq!((geometry.program_unit(), geometry.pages_per_die_block()), (6, 24));
    let types: Vec<_> = (0..8).map(|index| geometry.page_type(index)).collect();
    assert_eq!(types, [0, 0, 1, 1, 2, 2, 0, 0]);

    let program = drive.flash.program(drive.page(0, 1, 0), images(6), BACKGROUND);
    assert_eq!(span(&drive, program), 6 * 5_000 + 1_000 + 900_000);
    let block = drive.block(0, 1);
    assert_eq!(drive.flash.with_array(|array| array.programmed_pages(block)), 6);
    for (index, latency) in [(0, 46_000), (1, 46_000), (2, 66_000), (5, 86_000)] {
        let page = drive.page(0, 1, index);
        assert_eq!(span(&drive, drive.flash.read(page, CLIENT)), latency);
        assert_eq!(drive.read_now(page).unwrap().bytes(), images(6)[index as usize].bytes());
    }
}

#[test]
fn statistics_count_pages_blocks_and_busy_time_by_class() {
    let drive = Drive::new(&profile());
    let ends = (
        drive.end(drive.read(0, 0, CLIENT)),
        drive.end(drive.read(100, 0, IoClass::GcRead)),
        drive.end(drive.program(200, 0, IoClass::Flush)),
        drive.end(drive.erase(500, 0, IoClass::GcWrite)),
    );
    assert_eq!(ends, (46, 146, 406, 3_501));
    let stats = drive.flash.stats();
    assert_eq!(stats.of(CLIENT).pages_read, 1);
    assert_eq!(stats.of(IoClass::GcRead).pages_read, 1);
    assert_eq!(stats.of(IoClass::Flush).pages_programmed, 1);
    assert_eq!(stats.of(IoClass::GcWrite).blocks_erased, 1);
    let total = stats.total();
    assert_eq!((total.pages_read, total.pages_programmed, total.blocks_erased), (2, 1, 1));
    assert_eq!(stats.die_busy.0, (46 + 46 + 206 + 3_001) * 1_000);
    assert_eq!(stats.channel_busy.0, 15_000);
    assert_eq!(drive.flash.submitted(), 4);
}

#[test]
fn a_part_of_a_page_occupies_the_bus_for_its_share() {
    let drive = Drive::new(&profile());
    let (flash, page) = (drive.flash.clone(), drive.page(0, 0, 0));
    drive.rt.block_on(async move { flash.read_part(page, 1_024, CLIENT).await.map(drop) }).unwrap();
    // 1 + 40, and a quarter of 5 us.
    assert_eq!(drive.rt.handle().now().0, 42_250);
}

#[test]
fn a_die_that_has_not_come_to_rest_counts_as_busy() {
    let drive = Drive::new(&profile());
    let erase = drive.erase(0, 0, BACKGROUND);
    drive.rt.run_until(crate::small_drive::us(0));
    let (handle, flash) = (drive.rt.handle(), drive.flash.clone());
    let busy = drive.rt.block_on(async move {
        handle.sleep_until(crate::small_drive::us(1_000)).await;
        flash.stats().die_busy
    });
    assert_eq!(busy, crate::small_drive::us(1_000));
    assert_eq!(drive.end(erase), 3_001);
    assert_eq!(drive.flash.stats().die_busy, crate::small_drive::us(3_001));
}

/// Returns [`profile_of`] with commands on the channel.
fn with_commands_on_channel(channels: u32, dies_per_channel: u32) -> FlashProfile {
    let mut profile = profile_of(channels, dies_per_channel);
    profile.timing.commands_on_channel = true;
    profile
}

#[test]
fn an_operation_alone_takes_as_long_with_its_command_on_the_channel() {
    let drive = Drive::new(&with_commands_on_channel(1, 1));
    assert_eq!(span(&drive, drive.flash.read(drive.page(0, 0, 0), CLIENT)), 46_000);
    let program = drive.flash.program(drive.page(0, 1, 0), images(1), BACKGROUND);
    assert_eq!(span(&drive, program), 206_000);
    assert_eq!(span(&drive, drive.flash.erase(drive.block(0, 2), BACKGROUND)), 3_001_000);
    assert_eq!(drive.flash.stats().channel_busy.0, 13_000, "three commands, two transfers");
}

#[test]
fn a_command_waits_for_the_page_on_the_channel_and_goes_before_those_that_wait() {
    let mut profile = with_commands_on_channel(1, 4);
    profile.timing.channel_mb_per_s = 200.0; // 25 us a page
    let drive = Drive::new(&profile);
    let early = [1, 2, 3].map(|die| drive.read(0, die, CLIENT));
    let late = drive.read(50, 0, CLIENT);
    // Commanded at 66, after the first page and before the second; sensed at 107.
    assert_eq!(drive.ends(early), [66, 92, 117]);
    assert_eq!(drive.end(late), 142);
}

#[test]
fn a_die_that_has_given_its_page_is_commanded_before_others_give_theirs() {
    let mut profile = with_commands_on_channel(1, 2);
    profile.timing.channel_mb_per_s = 200.0; // 25 us a page
    let drive = Drive::new(&profile);
    let reads = [0, 1, 0].map(|die| drive.read(0, die, CLIENT));
    // The third is commanded at 66; its page is sensed at 107.
    assert_eq!(drive.ends(reads), [66, 92, 132]);
}

#[test]
fn an_erase_whose_command_is_on_the_channel_is_no_erase_yet() {
    let drive = Drive::new(&with_commands_on_channel(1, 2));
    let (first, second) = (drive.erase(0, 0, BACKGROUND), drive.erase(0, 1, BACKGROUND));
    assert_eq!((drive.end(first), drive.end(second)), (3_001, 3_002));
}
