//! The drives of a machine, as one block device: set `n` of it is a set of one of them, and what can go wrong
//! between host and drive goes wrong here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use runtime::{Handle, IoClass, Rng};
use ssd::{Precondition, Ssd, SsdImage, SsdProfile};

/// What ails a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rot {
    /// A bit is another than it was, and the drive does not notice.
    Flipped(u32),
    /// It cannot be read.
    Unreadable,
}

/// What ails a set, seen from the host.
#[derive(Clone, Default, Debug)]
pub struct Ailment {
    /// It answers no command.
    pub is_away: bool,
    /// It takes no writes.
    pub is_read_only: bool,
    /// So many more writes are acknowledged and not done, or in part.
    pub loses: u32,
    /// Until they are written again.
    pub rot: BTreeMap<u64, Rot>,
}

/// A set of a drive, and what is between it and the host.
struct Slot {
    ssd: Ssd,
    set: SetId,
    ailment: RefCell<Ailment>,
}

/// The drives. Clones are handles to the same; a set that is replaced is so in handles made from then on.
#[derive(Clone)]
pub struct Rack {
    slots: Rc<[Rc<Slot>]>,
    /// Commands of the host so far.
    submitted: Rc<Cell<u64>>,
}

/// Drives without power.
pub struct RackImage {
    drives: Vec<(SsdProfile, SsdImage)>,
    /// The drive and the set of each slot.
    slots: Vec<(usize, SetId, Ailment)>,
}

fn set_id(number: u32) -> SetId {
    SetId::new(number as u16).expect("numbers begin with 1")
}

impl Rack {
    /// One fresh drive.
    pub fn format(handle: &Handle, profile: &SsdProfile, planted: ssd::Planted) -> Self {
        let ssd = Ssd::with_fault(handle, profile, Precondition::Empty, planted);
        let slots = (1..=profile.sets).map(|number| Slot::new(&ssd, set_id(number)));
        Self { slots: slots.collect(), submitted: Rc::default() }
    }

    /// The same with a fresh drive of one set in the place of a set.
    #[must_use]
    pub fn with_fresh(&self, handle: &Handle, slot: usize, planted: ssd::Planted) -> Self {
        let profile = single(self.slots[slot].ssd.profile());
        let ssd = Ssd::with_fault(handle, &profile, Precondition::Empty, planted);
        let mut slots = self.slots.to_vec();
        slots[slot] = Slot::new(&ssd, set_id(1));
        Self { slots: slots.into(), submitted: Rc::clone(&self.submitted) }
    }

    /// The same with a set of other drives in the place of a set.
    #[must_use]
    pub fn with_set_of(&self, other: &Self, slot: usize) -> Self {
        let mut slots = self.slots.to_vec();
        slots[slot] = Rc::clone(&other.slots[slot]);
        Self { slots: slots.into(), submitted: Rc::clone(&self.submitted) }
    }

    /// Drives that have power again.
    pub async fn recover(handle: &Handle, image: RackImage, planted: ssd::Planted) -> Self {
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

    /// Cuts the power of all of them. A drive of which no set is left is thrown away.
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

    /// Commands of the host so far.
    pub fn submitted(&self) -> u64 {
        self.submitted.get()
    }

    /// Makes a set ail.
    pub fn harm<T>(&self, slot: usize, how: impl FnOnce(&mut Ailment) -> T) -> T {
        how(&mut self.slots[slot].ailment.borrow_mut())
    }

    /// A set leaves its deterministic window by itself, if it is in one.
    pub fn leave_window(&self, handle: &Handle, slot: usize) {
        let slot = Rc::clone(&self.slots[slot]);
        let left = slot.ssd.select_window(slot.set, WindowSelect::Ndwin);
        // Without windows there is nothing to leave.
        handle.spawn("a window that ends", async move { drop(left.await) });
    }

    fn slot(&self, set: SetId) -> Rc<Slot> {
        self.submitted.set(self.submitted.get() + 1);
        Rc::clone(&self.slots[usize::from(set.get()) - 1])
    }
}

/// A drive like this one with one set.
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
    /// Makes a set ail, or well.
    pub fn harm<T>(&mut self, slot: usize, how: impl FnOnce(&mut Ailment) -> T) -> T {
        how(&mut self.slots[slot].2)
    }

    /// The cells of a set.
    pub fn cells(&mut self, slot: usize) -> &mut flash::NandArray {
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

    /// What is read where blocks have rotted.
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

    /// What is written over, or discarded, rots no more.
    fn heal(&self, first: u64, blocks: u64) {
        let rot = &mut self.ailment.borrow_mut().rot;
        rot.retain(|block, _| !(first..first + blocks).contains(block));
    }

    /// What of a write reaches the drive.
    fn kept(&self, mut blocks: Vec<Block>) -> Vec<Block> {
        let mut ailment = self.ailment.borrow_mut();
        if ailment.loses > 0 {
            ailment.loses -= 1;
            // Every other one is torn: the first half is there.
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
