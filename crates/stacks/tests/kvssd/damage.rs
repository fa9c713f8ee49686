//! Bit rot: a damaged page is reported, and never returned as data.

use engine::{Fault, Value};
use runtime::{PageImage, Rng};
use stacks::kvssd::{DeviceProfile, DriveOptions, KvDrive, Status, StoreMode};
use testkit::trial::{Complaint, Kind};

use crate::answers::of_status;
use crate::harness::{Machine, for_hash, small_device, small_hash_options, with_fault};

const KEYS: u64 = 600;
/// Enough keys for every level, and for collections as soon as more is written.
const MANY: u64 = 2_300;

fn key(i: u64) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

fn value(i: u64) -> Value {
    Value::from_bytes(&Value::Synthetic { seed: i, len: 100 }.to_bytes())
}

/// Fills a drive, flips bits in random pages, and reads everything. Returns an error if a read
/// returned data that were never written.
pub(crate) fn damage_is_caught(seed: u64, fault: Option<Fault>) -> Result<(), Complaint> {
    damage_is_caught_by(seed, &small_device(), with_fault(fault))
}

fn damage_is_caught_by(
    seed: u64,
    device: &DeviceProfile,
    options: DriveOptions,
) -> Result<(), Complaint> {
    let machine = Machine::format(seed, device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for i in 0..KEYS {
            drive.store(&key(i), value(i), StoreMode::Upsert).await.expect("there is room");
        }
        drive.settle().await;
        let mut rng = Rng::derive(seed, "damage");
        drive.flash().with_array(|array| {
            for _ in 0..200 {
                let page = rng.below(u64::from(array.geometry().pages())) as u32;
                array.flip_bit(drives::nand::PageAddress(page), rng.next_u64());
            }
        });
        let mut damaged = 0;
        for i in 0..KEYS {
            match drive.retrieve(&key(i), u32::MAX).await {
                Ok(found) if found.value == value(i) => {}
                Err(Status::UnrecoveredError) => damaged += 1,
                Ok(found) => {
                    let text = format!("key {i} has {:?}", found.value);
                    return Err(Complaint::new(Kind::Foreign, text));
                }
                Err(status) => return Err(of_status(status, &format!("key {i}"))),
            }
        }
        match damaged {
            0 => Err(Complaint::new(Kind::Unnoticed, "no damage was seen")),
            _ => Ok(()),
        }
    })
}

#[test]
fn damaged_pages_are_reported_and_never_served() {
    for seed in 0..20 {
        damage_is_caught(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        damage_is_caught_by(seed, &for_hash(small_device()), small_hash_options())
            .unwrap_or_else(|error| panic!("hash, seed {seed}: {error}"));
    }
}

/// Overwrites a filled drive, then replaces pages with their older contents or with other pages,
/// and reads everything. Returns an error if a read returned anything but the newest value or an
/// error.
pub(crate) fn misplaced_pages_are_caught(seed: u64, fault: Option<Fault>) -> Result<(), Complaint> {
    let machine = Machine::format(seed, &small_device(), with_fault(fault));
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        let rounds = 6;
        let mut before = Vec::new();
        for round in 0..rounds {
            for i in 0..MANY {
                let value = value(round * MANY + i);
                drive.store(&key(i), value, StoreMode::Upsert).await.expect("there is room");
            }
            drive.settle().await;
            if round == 0 {
                before = images(&drive);
            }
        }
        misplace(&drive, before, &mut Rng::derive(seed, "misplaced"));
        let mut noticed = 0;
        for i in 0..MANY {
            match drive.retrieve(&key(i), u32::MAX).await {
                Ok(found) if found.value == value((rounds - 1) * MANY + i) => {}
                Err(Status::UnrecoveredError) => noticed += 1,
                Ok(found) => {
                    let older = (0..rounds - 1).any(|round| found.value == value(round * MANY + i));
                    let kind = if older { Kind::Stale } else { Kind::Foreign };
                    return Err(Complaint::new(kind, format!("key {i} has {:?}", found.value)));
                }
                Err(status) => return Err(of_status(status, &format!("key {i}"))),
            }
        }
        match noticed {
            0 => Err(Complaint::new(Kind::Unnoticed, "no damage was seen")),
            _ => Ok(()),
        }
    })
}

/// Returns every written page and its contents.
fn images(drive: &KvDrive) -> Vec<(drives::nand::PageAddress, PageImage)> {
    drive.flash().with_array(|array| {
        let pages = (0..array.geometry().pages()).map(drives::nand::PageAddress);
        pages.filter_map(|page| Some((page, array.read(page).ok()?))).collect()
    })
}

/// Simulates lost writes (one in ten pages) and misdirected writes (another one in ten).
fn misplace(drive: &KvDrive, before: Vec<(drives::nand::PageAddress, PageImage)>, rng: &mut Rng) {
    let now = images(drive);
    drive.flash().with_array(|array| {
        for (page, image) in before {
            if rng.chance(0.1) {
                array.replace(page, image);
            }
        }
        for (page, _) in &now {
            if rng.chance(0.1) {
                let (_, other) = &now[rng.below(now.len() as u64) as usize];
                array.replace(*page, other.clone());
            }
        }
    });
}

#[test]
fn misplaced_pages_are_reported_and_never_served() {
    for seed in 0..10 {
        misplaced_pages_are_caught(seed, None)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Stores until background work finds a damaged page. Returns the status of the refused store.
async fn store_until_refused(drive: &KvDrive, keys: u64) -> Option<Status> {
    for i in 0..20_000 {
        let outcome = drive.store(&key(i % keys), value(i), StoreMode::Upsert).await;
        if let Err(status) = outcome {
            return Some(status);
        }
    }
    None
}

/// Kinds of index pages: of the LSM-tree, of the hash table.
const INDEX_KINDS: [u8; 2] = [1, 6];

/// Pages to be damaged.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Pages with sorted keys, which compaction reads.
    Index,
    /// Pages with values, which only garbage collection and Gets read.
    Values,
}

/// Flips bits in every page of that kind.
fn damage_all(drive: &KvDrive, target: Target) {
    let pages = drive.flash().with_array(|array| array.geometry().pages());
    for page in (0..pages).map(drives::nand::PageAddress) {
        drive.flash().with_array(|array| {
            let Ok(image) = array.read(page) else { return };
            let is_index = image.bytes().get(22).is_some_and(|kind| INDEX_KINDS.contains(kind));
            let is_reserved = image.bytes().len() < 32;
            if !is_reserved && is_index == matches!(target, Target::Index) {
                array.flip_bit(page, 77);
            }
        });
    }
}

/// Damages a filled drive and continues to write. Every read before and after must be correct or an
/// error. Returns the status that refused a write, if any, and the extents retained because of
/// damage.
fn background_meets_damage(
    target: Target,
    device: &DeviceProfile,
    options: DriveOptions,
) -> (Option<Status>, u64) {
    let machine = Machine::format(5, device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for i in 0..MANY {
            drive.store(&key(i), value(i), StoreMode::Upsert).await.expect("there is room");
        }
        drive.settle().await;
        damage_all(&drive, target);
        let status = store_until_refused(&drive, MANY / 8).await;
        for i in MANY / 8..MANY {
            match drive.retrieve(&key(i), u32::MAX).await {
                Ok(found) => assert_eq!(found.value, value(i), "{target:?}: key {i}"),
                Err(status) => assert_eq!(status, Status::UnrecoveredError, "{target:?}: key {i}"),
            }
        }
        (status, drive.engine_stats().gc_quarantined_extents)
    })
}

#[test]
fn a_compaction_that_meets_damage_makes_the_drive_read_only() {
    let (status, _) = background_meets_damage(Target::Index, &small_device(), with_fault(None));
    assert_eq!(status, Some(Status::WriteProtected));
}

#[test]
fn a_collection_that_meets_damaged_values_keeps_them_and_goes_on() {
    let (status, quarantined) =
        background_meets_damage(Target::Values, &small_device(), with_fault(None));
    assert_eq!(status, None);
    assert!(quarantined > 0, "no damaged extent was met");
}

#[test]
fn a_hash_table_that_cannot_tell_whose_slot_it_is_takes_no_more_writes() {
    // Overwriting a key reads its old object, so damaged values matter too.
    for target in [Target::Index, Target::Values] {
        let device = for_hash(small_device());
        let (status, _) = background_meets_damage(target, &device, small_hash_options());
        assert_eq!(status, Some(Status::WriteProtected), "{target:?}");
    }
}

/// Without the check the drive would recover from the previous dump, and lose the write.
#[test]
fn a_drive_whose_newest_dump_is_damaged_does_not_come_back_as_it_was_before() {
    for seed in 0..8 {
        let (device, mut rng) = (small_device(), Rng::derive(seed, "damaged dump"));
        let mut machine = Machine::format(seed, &device, with_fault(None));
        let mut array = None;
        for round in 0..2 {
            if let Some(array) = array.take() {
                let back = Machine::recover(seed, &device, with_fault(None), array);
                machine = back.expect("the first dump is whole");
            }
            let drive = machine.drive.clone();
            machine.rt.block_on(async move {
                drive.store(&key(round), value(round), StoreMode::Upsert).await.expect("room");
            });
            array = Some(machine.drive.power_cut(&mut rng).array);
        }
        let mut array = array.expect("it lost power");
        // The second dump is at the very beginning of the drive.
        array.flip_bit(drives::nand::PageAddress(0), rng.next_u64());
        let error = Machine::recover(seed, &device, with_fault(None), array).err();
        let text = error.expect("a write would be lost").to_string();
        assert!(text.contains("dump of the drive's memory is damaged"), "seed {seed}: {text}");
    }
}
