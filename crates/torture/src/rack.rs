//! The drives of a machine as one block device: set `n` is a set of one of the drives. Failures
//! between host and drives are injected here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use drives::ssd::{Precondition, Ssd, SsdImage, SsdProfile};
use runtime::{Handle, IoClass, Rng};

/// The damage of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rot {
    /// The bit with this number is flipped, and the drive does not detect it.
    Flipped(u32),
    /// Reads of the block fail.
    Unreadable,
}

/// The failures of a set, as the host sees them.
#[derive(Clone, Default, Debug)]
pub struct Ailment {
    /// Whether the set answers no command.
    pub is_away: bool,
    /// Whether the set refuses writes.
    pub is_read_only: bool,
    /// The number of following writes that are acknowledged but dropped, or written in part.
    pub loses: u32,
    /// Damaged blocks. Rewriting a block repairs it.
    pub rot: BTreeMap<u64, Rot>,
}

/// A set of a drive, and the failures between it and the host.
struct Slot {
    ssd: Ssd,
    set: SetId,
    ailment: RefCell<Ailment>,
}

/// The drives. Clones are handles to the same drives. A replacement of a set is visible only in the
/// handle that it returns and in clones of that handle.
#[derive(Clone)]
pub struct Rack {
    slots: Rc<[Rc<Slot>]>,
    /// The number of commands that the host submitted.
    submitted: Rc<Cell<u64>>,
}

/// The drives without power.
pub struct RackImage {
    drives: Vec<(SsdProfile, SsdImage)>,
    /// The drive, the set and the failures of each slot.
    slots: Vec<(usize, SetId, Ailment)>,
}

fn set_id(number: u32) -> SetId {
    SetId::new(number as u16).expect("numbers begin with 1")
}

impl Rack {
    /// Creates one fresh drive.
    pub fn format(handle: &Handle, profile: &SsdProfile, planted: drives::ssd::Planted) -> Self {
        let ssd = Ssd::with_fault(handle, profile, Precondition::Empty, planted);
        let slots = (1..=profile.sets).map(|number| Slot::new(&ssd, set_id(number)));
        Self { slots: slots.collect(), submitted: Rc::default() }
    }

    /// Returns a handle in which a fresh drive with one set replaces a set.
    #[must_use]
    pub fn with_fresh(&self, handle: &Handle, slot: usize, planted: drives::ssd::Planted) -> Self {
        let profile = single(self.slots[slot].ssd.profile());
        let ssd = Ssd::with_fault(handle, &profile, Precondition::Empty, planted);
        let mut slots = self.slots.to_vec();
        slots[slot] = Slot::new(&ssd, set_id(1));
        Self { slots: slots.into(), submitted: Rc::clone(&self.submitted) }
    }

    /// Returns a handle in which the same slot of another rack replaces a set.
    #[must_use]
    pub fn with_set_of(&self, other: &Self, slot: usize) -> Self {
        let mut slots = self.slots.to_vec();
        slots[slot] = Rc::clone(&other.slots[slot]);
        Self { slots: slots.into(), submitted: Rc::clone(&self.submitted) }
    }

    /// Powers the drives on.
    pub async fn recover(handle: &Handle, image: RackImage, planted: drives::ssd::Planted) -> Self {
        let mut drives = Vec::with_capacity(image.drives.len());
        for (profile, image) in image.drives {
            drives.push(Ssd::recover(handle, &profile, image, planted).await);
        }
        let slot = |(drive, set, ailment): (usize, SetId, Ailment)| {
            let ssd: &Ssd = &drives[drive];
            Rc::new(Slot { ssd: ssd.clone(), set, ailment: RefCell::new(ailment) })
        };
        Self { slots: image.slots.into_iter().map(slot).collect(), submitted: Rc::default() }
    }

    /// Cuts the power of all drives. A drive without a set in the rack is discarded.
    pub fn power_cut(&self, rng: &mut Rng) -> RackImage {
        let mut drives: Vec<&Ssd> = Vec::new();
        let mut places = Vec::new();
        for slot in &*self.slots {
            let is_it = |ssd: &&Ssd| std::ptr::eq(ssd.profile(), slot.ssd.profile());
            let drive = drives.iter().position(is_it).unwrap_or_else(|| {
                drives.push(&slot.ssd);
                drives.len() - 1
            });
            places.push((drive, slot.set, slot.ailment.borrow().clone()));
        }
        let cut = |ssd: &&Ssd| (ssd.profile().clone(), ssd.power_cut(rng).0);
        RackImage { drives: drives.iter().map(cut).collect(), slots: places }
    }

    /// Returns the number of commands that the host submitted.
    pub fn submitted(&self) -> u64 {
        self.submitted.get()
    }

    /// Changes the failures of a set.
    pub fn harm<T>(&self, slot: usize, how: impl FnOnce(&mut Ailment) -> T) -> T {
        how(&mut self.slots[slot].ailment.borrow_mut())
    }

    /// Makes a set leave its deterministic window by itself, if it is in one.
    pub fn leave_window(&self, handle: &Handle, slot: usize) {
        let slot = Rc::clone(&self.slots[slot]);
        let left = slot.ssd.select_window(slot.set, WindowSelect::Ndwin);
        // Without windows the command has no effect.
        handle.spawn("a window that ends", async move { drop(left.await) });
    }

    fn slot(&self, set: SetId) -> Rc<Slot> {
        self.submitted.set(self.submitted.get() + 1);
        Rc::clone(&self.slots[usize::from(set.get()) - 1])
    }
}

/// Returns the profile of a similar drive with one set.
fn single(profile: &SsdProfile) -> SsdProfile {
    let sets = profile.sets;
    let mut one = profile.clone();
    one.sets = 1;
    one.controller.cores /= sets;
    one.flash.geometry.channels /= sets;
    one.buffer.bytes /= u64::from(sets);
    one.dram.read_cache_bytes /= u64::from(sets);
    one.user_bytes /= u64::from(sets);
    one
}

impl RackImage {
    /// Changes the failures of a set.
    pub fn harm<T>(&mut self, slot: usize, how: impl FnOnce(&mut Ailment) -> T) -> T {
        how(&mut self.slots[slot].2)
    }

    /// Returns the flash cells of a set.
    pub fn cells(&mut self, slot: usize) -> &mut drives::nand::NandArray {
        let (drive, set, _) = &self.slots[slot];
        self.drives[*drive].1.array_mut(*set).expect("it is there")
    }
}

impl Slot {
    fn new(ssd: &Ssd, set: SetId) -> Rc<Self> {
        Rc::new(Self { ssd: ssd.clone(), set, ailment: RefCell::default() })
    }

    fn is_there(&self) -> Result<(), DeviceError> {
        if self.ailment.borrow().is_away { Err(DeviceError::Gone(self.set)) } else { Ok(()) }
    }

    fn takes_writes(&self) -> Result<(), DeviceError> {
        self.is_there()?;
        let is_read_only = self.ailment.borrow().is_read_only;
        if is_read_only { Err(DeviceError::ReadOnly(self.set)) } else { Ok(()) }
    }

    /// Applies the damage of blocks to the result of a read.
    fn rotten(&self, first: u64, blocks: &mut [Block]) -> Result<(), DeviceError> {
        let ailment = self.ailment.borrow();
        for (block, rot) in ailment.rot.range(first..first + blocks.len() as u64) {
            let Rot::Flipped(bit) = *rot else {
                return Err(DeviceError::Unreadable { set: self.set, block: *block });
            };
            let read = &mut blocks[(block - first) as usize];
            let mut bytes = read.to_vec();
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            *read = Block::new(&bytes);
        }
        Ok(())
    }

    /// Repairs the blocks that are overwritten or discarded.
    fn heal(&self, first: u64, blocks: u64) {
        let rot = &mut self.ailment.borrow_mut().rot;
        rot.retain(|block, _| !(first..first + blocks).contains(block));
    }

    /// Returns the part of a write that reaches the drive.
    fn kept(&self, mut blocks: Vec<Block>) -> Vec<Block> {
        let mut ailment = self.ailment.borrow_mut();
        if ailment.loses > 0 {
            ailment.loses -= 1;
            // Every second lost write is torn: its first half is written.
            let kept = if ailment.loses.is_multiple_of(2) { 0 } else { blocks.len() / 2 };
            blocks.truncate(kept);
        }
        blocks
    }
}

impl BlockDevice for Rack {
    fn sets(&self) -> Vec<SetShape> {
        let shape = |(number, slot): (u32, &Rc<Slot>)| {
            let shapes = slot.ssd.sets();
            let shape = shapes.into_iter().find(|shape| shape.id == slot.set);
            SetShape { id: set_id(number), ..shape.expect("it is there") }
        };
        (1..).zip(&*self.slots).map(shape).collect()
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let slot = self.slot(set);
        let read = slot.ssd.read(slot.set, first, blocks, class);
        async move {
            let blocks = read.await;
            slot.is_there()?;
            let mut blocks = blocks?;
            slot.rotten(first, &mut blocks)?;
            Ok(blocks)
        }
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let slot = self.slot(set);
        let write = slot.takes_writes().map(|()| {
            let blocks = slot.kept(blocks);
            slot.heal(first, blocks.len() as u64);
            (!blocks.is_empty()).then(|| slot.ssd.write(slot.set, first, blocks, class, force))
        });
        async move {
            if let Some(write) = write? {
                write.await?;
            }
            slot.is_there()
        }
    }

    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let slot = self.slot(set);
        let flush = slot.takes_writes().map(|()| slot.ssd.flush(slot.set));
        async move {
            flush?.await?;
            slot.takes_writes()
        }
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let slot = self.slot(set);
        let discard = slot.takes_writes().map(|()| {
            slot.heal(first, blocks);
            slot.ssd.discard(slot.set, first, blocks)
        });
        async move {
            discard?.await?;
            slot.is_there()
        }
    }

    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let slot = self.slot(set);
        let configured = slot.is_there().map(|()| slot.ssd.configure_plm(slot.set, config));
        async move {
            configured?.await?;
            slot.is_there()
        }
    }

    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let slot = self.slot(set);
        let selected = slot.is_there().map(|()| slot.ssd.select_window(slot.set, window));
        async move {
            selected?.await?;
            slot.is_there()
        }
    }

    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        let slot = self.slot(set);
        let log = slot.is_there().map(|()| slot.ssd.plm_log(slot.set, retains));
        async move {
            let log = log?.await?;
            slot.is_there()?;
            Ok(log)
        }
    }
}
