//! The rules of NAND, and the state of the cells.

use std::rc::Rc;

use drives::nand::{FlashProfile, NandArray, PageAddress, PageSource, ReadError};
use runtime::{PageImage, Rng};

use crate::small_drive::{BACKGROUND, CLIENT, Drive, images, profile};

#[test]
fn a_page_reads_back_as_it_was_programmed() {
    let drive = Drive::new(&profile());
    let page = |index| drive.page(0, 1, index);
    drive.program_now(page(0), vec![PageImage::new(b"first")]);
    drive.program_now(page(1), vec![PageImage::new(b"")]);
    assert_eq!(drive.read_now(page(0)).unwrap().bytes(), b"first");
    assert_eq!(drive.read_now(page(1)).unwrap().bytes(), b"");
    assert_eq!(drive.read_now(page(2)).unwrap_err(), ReadError::Erased);
}

#[test]
fn an_erase_takes_the_contents_and_leaves_wear() {
    let drive = Drive::new(&profile());
    let (block, page) = (drive.block(0, 0), drive.page(0, 0, 3));
    assert!(drive.read_now(page).is_ok());
    for _ in 0..2 {
        drive.rt.block_on(drive.flash.erase(block, BACKGROUND));
    }
    assert_eq!(drive.read_now(page).unwrap_err(), ReadError::Erased);
    drive.flash.with_array(|array| {
        // The failed read came after the last erase.
        assert_eq!((array.erase_count(block), array.read_count(block)), (2, 1));
        assert_eq!(array.programmed_pages(block), 0);
        assert_eq!(array.erase_count(drive.block(0, 1)), 0);
    });
    drive.program_now(drive.page(0, 0, 0), images(1));
}

#[test]
fn a_flipped_bit_is_read_as_it_is() {
    let drive = Drive::new(&profile());
    let page = drive.page(0, 1, 0);
    drive.program_now(page, vec![PageImage::new(&[0, 0])]);
    assert!(drive.flash.with_array(|array| array.flip_bit(page, 9)));
    assert_eq!(drive.read_now(page).unwrap().bytes(), [0, 2]);
    assert!(!drive.flash.with_array(|array| array.flip_bit(drive.page(0, 1, 1), 9)));
}

#[test]
fn a_dropped_future_does_not_stop_its_operation() {
    let drive = Drive::new(&profile());
    let page = drive.page(0, 1, 0);
    drop(drive.flash.program(page, vec![PageImage::new(b"stays")], BACKGROUND));
    for _ in 0..100 {
        drop(drive.flash.read(drive.page(0, 0, 0), CLIENT));
    }
    // The reads go first, except before the program that has begun: 206 + 100 * 46.
    let read = drive.flash.read(page, CLIENT);
    assert_eq!(drive.rt.block_on(read).unwrap().bytes(), b"stays");
    assert_eq!(drive.rt.handle().now().0, (206 + 101 * 46) * 1_000);
    assert_eq!(drive.flash.stats().total().pages_read, 101);
}

#[test]
fn a_future_dropped_after_its_end_harms_nobody() {
    let drive = Drive::new(&profile());
    let unread = drive.flash.read(drive.page(0, 0, 0), CLIENT);
    assert!(drive.read_now(drive.page(0, 0, 1)).is_ok());
    drop(unread);
    let image = drive.read_now(drive.page(0, 0, 2)).unwrap();
    assert_eq!(image.bytes(), images(3)[2].bytes());
}

#[test]
#[should_panic(expected = "programmed in order, each once")]
fn a_page_out_of_order_is_refused() {
    let drive = Drive::new(&profile());
    drive.program_now(drive.page(0, 1, 1), images(1));
}

#[test]
#[should_panic(expected = "programmed in order, each once")]
fn a_second_program_without_an_erase_is_refused() {
    let drive = Drive::new(&profile());
    drive.program_now(drive.page(0, 1, 0), images(1));
    drive.program_now(drive.page(0, 1, 0), images(1));
}

#[test]
#[should_panic(expected = "programmed in order, each once")]
fn a_program_into_a_full_block_is_refused() {
    let drive = Drive::new(&profile());
    drive.program_now(drive.page(0, 0, 11), images(1));
}

#[test]
#[should_panic(expected = "a program unit of block 1 has 1 pages")]
fn a_unit_of_the_wrong_size_is_refused() {
    let drive = Drive::new(&profile());
    drive.program_now(drive.page(0, 1, 0), images(2));
}

fn one_shot() -> FlashProfile {
    let mut profile = profile();
    profile.geometry.planes_per_die = 2;
    profile.geometry.bits_per_cell = 3;
    profile.geometry.one_shot = true;
    profile.timing.read_us = vec![40.0, 60.0, 80.0];
    profile
}

#[test]
#[should_panic(expected = "a program unit of block 1 has 6 pages")]
fn part_of_a_one_shot_unit_is_refused() {
    let drive = Drive::new(&one_shot());
    drive.program_now(drive.page(0, 1, 0), images(2));
}

#[test]
#[should_panic(expected = "programmed in order, each once")]
fn a_one_shot_unit_is_programmed_once() {
    let drive = Drive::new(&one_shot());
    drive.program_now(drive.page(0, 1, 0), images(6));
    drive.program_now(drive.page(0, 1, 0), images(6));
}

#[test]
#[should_panic(expected = "the array was made with another geometry")]
fn an_array_of_another_geometry_is_refused() {
    Drive::power_up(&profile(), NandArray::new(&one_shot().geometry));
}

/// A source of pages that hold their own number.
struct Numbered;

impl PageSource for Numbered {
    fn page(&self, page: PageAddress) -> PageImage {
        PageImage::new(&page.0.to_le_bytes())
    }
}

#[test]
fn a_prefilled_block_reads_as_its_source_says_until_it_is_erased() {
    let drive = Drive::new(&profile());
    let (block, page) = (drive.block(0, 2), drive.page(0, 2, 7));
    drive.flash.with_array(|array| {
        array.prefill([block].into_iter(), Rc::new(Numbered));
        assert_eq!(array.programmed_pages(block), 12);
    });
    assert_eq!(drive.read_now(page).unwrap().bytes(), page.0.to_le_bytes());
    let (mut array, _) = drive.flash.power_cut(&mut Rng::new(1));
    assert_eq!(array.read(page).unwrap().bytes(), page.0.to_le_bytes());
    array.erase(block);
    assert_eq!(array.read(page).unwrap_err(), ReadError::Erased);
    assert_eq!(array.programmed_pages(block), 0);
}

#[test]
#[should_panic(expected = "is full")]
fn a_prefilled_block_takes_no_program() {
    let drive = Drive::new(&profile());
    let block = drive.block(0, 2);
    drive.flash.with_array(|array| {
        array.prefill([block].into_iter(), Rc::new(Numbered));
        array.program(drive.page(0, 2, 0), images(1));
    });
}
