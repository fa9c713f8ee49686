//! A drive and its runtime.

use block::nvme::SetId;
use block::{Block, BlockDevice, DeviceError, Force};
use drives::nand::CutReport;
use drives::ssd::{Fault, Planted, Precondition, Recovery, Ssd, SsdImage, SsdProfile};
use runtime::{IoClass, Nanos, Rng, Runtime};

/// Reads and writes with default options.
pub(crate) trait ClientIo {
    fn client_read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>>;
    fn client_write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
    ) -> impl Future<Output = Result<(), DeviceError>>;
}

impl ClientIo for Ssd {
    fn client_read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> {
        self.read(set, first, blocks, IoClass::ClientRead)
    }

    fn client_write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
    ) -> impl Future<Output = Result<(), DeviceError>> {
        self.write(set, first, blocks, IoClass::Flush, Force::No)
    }
}

/// Returns the identifier of the set that the model numbers from 0.
pub(crate) fn set_id(set: u16) -> SetId {
    SetId::new(set + 1).expect("numbers begin with 1")
}

pub(crate) fn planted(fault: Option<Fault>) -> Planted {
    fault.into()
}

pub(crate) struct Machine {
    pub rt: Runtime,
    pub ssd: Ssd,
}

impl Machine {
    pub(crate) fn format(
        seed: u64,
        profile: &SsdProfile,
        precondition: Precondition,
        planted: Planted,
    ) -> Self {
        let rt = Runtime::new(seed);
        let ssd = Ssd::with_fault(&rt.handle(), profile, precondition, planted);
        Self { rt, ssd }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.rt.handle().now()
    }

    /// Cuts the power; all tasks are dropped.
    pub(crate) fn power_cut(self, rng: &mut Rng) -> (SsdImage, CutReport) {
        let (image, reports) = self.ssd.power_cut(rng);
        (image, sum(&reports))
    }

    pub(crate) fn recover(
        seed: u64,
        profile: &SsdProfile,
        image: SsdImage,
        planted: Planted,
    ) -> Self {
        Comeback::begin(seed, profile, image, planted).finish()
    }
}

/// A drive in recovery, and its runtime.
pub(crate) struct Comeback {
    rt: Runtime,
    recovery: Recovery,
}

impl Comeback {
    pub(crate) fn begin(
        seed: u64,
        profile: &SsdProfile,
        image: SsdImage,
        planted: Planted,
    ) -> Self {
        let rt = Runtime::new(seed);
        let recovery = Recovery::begin(&rt.handle(), profile, image, planted);
        Self { rt, recovery }
    }

    pub(crate) fn finish(self) -> Machine {
        let Self { rt, recovery } = self;
        let ssd = rt.block_on(recovery.finish());
        Machine { rt, ssd }
    }

    /// Runs until the flash has received that many operations. Returns false if the recovery ended
    /// before.
    pub(crate) fn run_to(&self, operations: u64) -> bool {
        let recovery = &self.recovery;
        let is_there = || recovery.flash_operations() >= operations;
        self.rt.run_until_true(|| recovery.is_finished() || is_there());
        !recovery.is_finished()
    }

    pub(crate) fn power_cut(self, rng: &mut Rng) -> (SsdImage, CutReport) {
        let (image, reports) = self.recovery.power_cut(rng);
        (image, sum(&reports))
    }
}

fn sum(reports: &[CutReport]) -> CutReport {
    reports.iter().fold(CutReport::default(), |sum, one| CutReport {
        done: sum.done + one.done,
        not_done: sum.not_done + one.not_done,
        torn: sum.torn + one.torn,
    })
}
