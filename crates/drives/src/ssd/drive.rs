//! The drive: NVM sets that share one host link.

use std::cell::Cell;
use std::rc::Rc;

use block::nvme::{AsyncEventConfig, SetId};
use block::{DeviceError, SetShape};
use runtime::{Handle, IoClass, JoinHandle, Rng};

use super::event_bell::EventBell;
use super::failure::SetFailure;
use super::planted::Planted;
use super::prefill::Precondition;
use super::profile::SsdProfile;
use super::set::{Parts, Set, SetImage};
use super::stats::SetStats;
use crate::firmware::Link;
use crate::nand::{CutReport, FlashStats, Lane, NandArray};

/// A block drive. Clones are handles to the same drive.
#[derive(Clone)]
pub struct Ssd {
    inner: Rc<Inner>,
    /// The submission queue of this handle's commands.
    queue: u16,
}

struct Inner {
    handle: Handle,
    profile: Rc<SsdProfile>,
    sets: Vec<Rc<Set>>,
    link: Link,
    /// The link of [`Lane::Apart`], for a drive that has this lane.
    link_apart: Option<Link>,
    events: Rc<EventBell>,
    event_config: Cell<AsyncEventConfig>,
}

/// A drive without power.
pub struct SsdImage {
    sets: Vec<SetImage>,
}

impl SsdImage {
    /// Returns the cells of a set: for tests that damage them.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] if the drive has no such set.
    pub fn array_mut(&mut self, set: SetId) -> Result<&mut NandArray, DeviceError> {
        let image = self.sets.get_mut(usize::from(set.get()) - 1);
        image.map(|image| &mut image.array).ok_or(DeviceError::NoSuchSet(set))
    }
}

/// A drive that recovers after a power cut.
pub struct Recovery {
    parts: Parts,
    sets: Vec<Rc<Set>>,
    under_way: Vec<JoinHandle<()>>,
}

/// Counters and state of a set.
#[derive(Clone, Debug)]
pub struct SetReport {
    /// Counters of the firmware.
    pub firmware: SetStats,
    /// Counters of the flash.
    pub flash: FlashStats,
    /// Free superblocks.
    pub free_superblocks: u32,
    /// Superblocks that can hold data.
    pub superblocks: u32,
    /// Least and most erases of a superblock.
    pub wear: (u32, u32),
    /// Memory of this process for the mapping, in bytes.
    pub mapping_bytes: u64,
    /// Why the set is lost; `None` if it is not.
    pub failure: Option<SetFailure>,
}

impl Ssd {
    /// Creates a drive in the state of `precondition`, equal for all its sets.
    pub fn new(handle: &Handle, profile: &SsdProfile, precondition: Precondition) -> Self {
        Self::with_fault(handle, profile, precondition, Planted::default())
    }

    /// Creates a drive with a planted bug, for tests of the tests.
    pub fn with_fault(
        handle: &Handle,
        profile: &SsdProfile,
        precondition: Precondition,
        planted: Planted,
    ) -> Self {
        let profile = Rc::new(profile.clone());
        let mut rng = handle.rng("precondition");
        let events = Rc::new(EventBell::default());
        let parts = Parts { handle: handle.clone(), profile: Rc::clone(&profile), planted, events };
        let sets =
            (0..profile.sets).map(|_| Set::format(parts.clone(), precondition, rng.next_u64()));
        Self::of_sets(&parts, sets.collect())
    }

    /// Recovers a drive after a power cut. Returns when every set takes commands or is lost;
    /// [`SetReport::failure`] reports why it is lost.
    pub async fn recover(
        handle: &Handle,
        profile: &SsdProfile,
        image: SsdImage,
        planted: Planted,
    ) -> Self {
        Recovery::begin(handle, profile, image, planted).finish().await
    }

    fn of_sets(parts: &Parts, sets: Vec<Rc<Set>>) -> Self {
        let link = |jitter| Link::new(&parts.handle, &parts.profile.host, jitter);
        let inner = Inner {
            handle: parts.handle.clone(),
            profile: Rc::clone(&parts.profile),
            sets,
            events: Rc::clone(&parts.events),
            event_config: Cell::default(),
            link: link("host jitter"),
            link_apart: parts.profile.undisturbed_clients.then(|| link("host jitter apart")),
        };
        Self { inner: Rc::new(inner), queue: 0 }
    }

    /// Returns a handle to the same drive whose commands use this submission queue. Queues matter
    /// only when more commands are outstanding than a set has slots (`queue_depth`): the queues
    /// then get slots in turns.
    #[must_use]
    pub fn submission_queue(&self, queue: u16) -> Self {
        Self { queue, ..self.clone() }
    }

    pub(crate) fn queue(&self) -> u16 {
        self.queue
    }

    /// Cuts the power now. Commands in flight never complete.
    pub fn power_cut(&self, rng: &mut Rng) -> (SsdImage, Vec<CutReport>) {
        power_cut(&self.inner.sets, rng)
    }

    /// Returns the profile of the drive.
    pub fn profile(&self) -> &SsdProfile {
        &self.inner.profile
    }

    /// Returns the counters and the state of a set.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] if the drive has no such set.
    pub fn report(&self, set: SetId) -> Result<SetReport, DeviceError> {
        let set = self.set(set)?;
        let (free_superblocks, superblocks) = set.space();
        Ok(SetReport {
            firmware: set.stats(),
            flash: set.flash().stats(),
            free_superblocks,
            superblocks,
            wear: set.wear(),
            mapping_bytes: set.mapping_bytes(),
            failure: set.failure(),
        })
    }

    /// Returns how often a set left its deterministic window without a command of the host.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] if the drive has no such set.
    pub fn windows_broken(&self, set: SetId) -> Result<u64, DeviceError> {
        Ok(self.set(set)?.stats().windows_broken)
    }

    /// Returns the flash of a set: for tests that inspect or damage it.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] if the drive has no such set.
    pub fn flash(&self, set: SetId) -> Result<&crate::nand::Flash, DeviceError> {
        Ok(self.set(set)?.flash())
    }

    /// Fails a set permanently, with all its data: from now on every command to it fails with
    /// [`DeviceError::Gone`], including commands in flight. For tests of the layers above.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] if the drive has no such set.
    pub fn fail_set(&self, set: SetId) -> Result<(), DeviceError> {
        self.set(set)?.fail(SetFailure::TakenAway);
        Ok(())
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    pub(crate) fn shapes(&self) -> Vec<SetShape> {
        let shape = |(index, set): (usize, &Rc<Set>)| SetShape {
            id: set_id(index),
            blocks: u64::from(set.blocks()),
            optimal_write_bytes: set.optimal_write_bytes(),
            has_windows: self.inner.profile.plm.is_some(),
        };
        self.inner.sets.iter().enumerate().map(shape).collect()
    }

    /// Returns the indices of the sets that have events.
    pub(crate) fn sets_with_events(&self) -> impl Iterator<Item = usize> {
        let sets = self.inner.sets.iter().enumerate().filter(|(_, set)| set.has_events());
        sets.map(|(index, _)| index)
    }

    fn set(&self, id: SetId) -> Result<&Rc<Set>, DeviceError> {
        let index = usize::from(id.get()) - 1;
        self.inner.sets.get(index).ok_or(DeviceError::NoSuchSet(id))
    }

    /// Returns the set, unless it is lost.
    pub(crate) fn present(&self, id: SetId) -> Result<&Rc<Set>, DeviceError> {
        let set = self.set(id)?;
        if set.failure().is_some() { Err(DeviceError::Gone(id)) } else { Ok(set) }
    }

    /// Returns the set if it contains these blocks.
    pub(crate) fn within(
        &self,
        id: SetId,
        first: u64,
        blocks: u64,
    ) -> Result<&Rc<Set>, DeviceError> {
        let set = self.present(id)?;
        let capacity = u64::from(set.blocks());
        if first.checked_add(blocks).is_none_or(|end| end > capacity) {
            return Err(DeviceError::OutOfRange { set: id, first, blocks, capacity });
        }
        Ok(set)
    }

    /// Waits until a command with `data_bytes` of data has crossed the link.
    pub(crate) async fn receive(&self, data_bytes: u64) {
        self.inner.handle.sleep_until(self.inner.link.receive(data_bytes)).await;
    }

    /// Waits until a completion with `data_bytes` of data has crossed the link.
    pub(crate) async fn complete(&self, data_bytes: u64) {
        self.complete_in(Lane::Shared, data_bytes).await;
    }

    /// Same as [`Self::complete`], for a read in `lane`.
    pub(crate) async fn complete_in(&self, lane: Lane, data_bytes: u64) {
        let link = match lane {
            Lane::Shared => &self.inner.link,
            Lane::Apart => {
                self.inner.link_apart.as_ref().expect("only a drive that has it uses it")
            }
        };
        self.inner.handle.sleep_until(link.complete(data_bytes)).await;
    }

    /// Returns the lane of a read of `class`.
    pub(crate) fn lane_of(&self, class: IoClass) -> Lane {
        let is_apart = self.inner.profile.undisturbed_clients && class.is_for_clients();
        if is_apart { Lane::Apart } else { Lane::Shared }
    }

    /// Waits until a set has an event that the host was not notified of and that it enabled.
    pub(crate) async fn next_event(&self) {
        let bell = &self.inner.events;
        let is_due = || {
            let wants = self.inner.event_config.get().event_aggregate();
            let is_new = bell.is_due.get() && !bell.is_announced.get();
            wants && is_new && self.inner.sets.iter().any(|set| set.has_events())
        };
        bell.changed.wait_until(is_due).await;
        bell.is_announced.set(true);
    }

    /// Notes that the host has read the list of sets with events: it is notified again when a set
    /// joins the list.
    pub(crate) fn event_was_heard(&self) {
        self.inner.events.is_announced.set(false);
        self.inner.events.is_due.set(false);
    }

    pub(crate) fn event_config(&self) -> AsyncEventConfig {
        self.inner.event_config.get()
    }

    pub(crate) fn set_event_config(&self, config: AsyncEventConfig) {
        self.inner.event_config.set(config);
        self.inner.events.changed.notify_all();
    }
}

impl Recovery {
    /// Restores power to `image` and begins recovery.
    pub fn begin(handle: &Handle, profile: &SsdProfile, image: SsdImage, planted: Planted) -> Self {
        let profile = Rc::new(profile.clone());
        let events = Rc::new(EventBell::default());
        let parts = Parts { handle: handle.clone(), profile, planted, events };
        let new = |image| Set::power_up(parts.clone(), image);
        let sets: Vec<_> = image.sets.into_iter().map(new).collect();
        let recover = |set: &Rc<Set>| handle.spawn("recovery", Rc::clone(set).recover());
        let under_way = sets.iter().map(recover).collect();
        Self { parts, sets, under_way }
    }

    /// Waits until every set takes commands or is lost, and returns the drive.
    pub async fn finish(self) -> Ssd {
        for recovery in self.under_way {
            recovery.await;
        }
        Ssd::of_sets(&self.parts, self.sets)
    }

    /// Returns whether every set takes commands or is lost.
    pub fn is_finished(&self) -> bool {
        self.under_way.iter().all(JoinHandle::is_finished)
    }

    /// Returns the operations submitted so far to the flash of all sets. Crash points are counted
    /// in these.
    pub fn flash_operations(&self) -> u64 {
        self.sets.iter().map(|set| set.flash().submitted()).sum()
    }

    /// Cuts the power again, during recovery.
    pub fn power_cut(&self, rng: &mut Rng) -> (SsdImage, Vec<CutReport>) {
        power_cut(&self.sets, rng)
    }
}

fn power_cut(sets: &[Rc<Set>], rng: &mut Rng) -> (SsdImage, Vec<CutReport>) {
    let (sets, reports) = sets.iter().map(|set| set.power_cut(rng)).unzip();
    (SsdImage { sets }, reports)
}

pub(crate) fn set_id(index: usize) -> SetId {
    SetId::new(index as u16 + 1).expect("numbers begin with 1")
}
