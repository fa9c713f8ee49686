//! A drive with round numbers, and operations that report the microsecond at which they end.

use drives::nand::{
    BlockAddress, DieIndex, Flash, FlashProfile, Geometry, NandArray, PageAddress, ReadError,
    Suspend, Timing,
};
use runtime::{IoClass, JoinHandle, Nanos, PageImage, Runtime};

/// A demand read.
pub(crate) const CLIENT: IoClass = IoClass::ClientRead;
/// Background work.
pub(crate) const BACKGROUND: IoClass = IoClass::CompactionWrite;

/// One die of SLC: a read takes 1 + 40 + 5 us, a program 5 + 1 + 200 us, an erase 1 + 3000 us.
pub(crate) fn profile() -> FlashProfile {
    FlashProfile {
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 12,
            page_bytes: 4_096,
            spare_bytes: 128,
            transfer_bytes: 5_000,
            one_shot: false,
            bits_per_cell: 1,
        },
        timing: Timing {
            read_us: vec![40.0],
            program_us: vec![200.0],
            erase_us: 3_000.0,
            command_us: 1.0,
            commands_on_channel: false,
            channel_mb_per_s: 1_000.0,
            background_deadline_us: 100_000.0,
        },
        suspend: None,
        overlap: None,
        errors: None,
        read_disturb: None,
    }
}

/// Returns [`profile`] with that many channels, and dies on each.
pub(crate) fn profile_of(channels: u32, dies_per_channel: u32) -> FlashProfile {
    let mut profile = profile();
    profile.geometry.channels = channels;
    profile.geometry.dies_per_channel = dies_per_channel;
    profile
}

/// Returns [`profile`] with suspension.
pub(crate) fn profile_with_suspend() -> FlashProfile {
    let suspend = Suspend {
        program_us: Some(10.0),
        erase_us: Some(20.0),
        resume_us: 5.0,
        min_progress_us: 30.0,
        max_span_us: 150.0,
        max_per_operation: 2,
        max_per_program: None,
    };
    FlashProfile { suspend: Some(suspend), ..profile() }
}

pub(crate) fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

pub(crate) struct Drive {
    pub rt: Runtime,
    pub flash: Flash,
}

impl Drive {
    /// Creates a drive where block 0 of every die is full of pages.
    pub(crate) fn new(profile: &FlashProfile) -> Self {
        let mut array = NandArray::new(&profile.geometry);
        for die in 0..profile.geometry.dies() {
            fill(&mut array, profile.geometry.block(DieIndex(die), 0));
        }
        Self::power_up(profile, array)
    }

    pub(crate) fn power_up(profile: &FlashProfile, array: NandArray) -> Self {
        assert_eq!(profile.problems(), Vec::<String>::new());
        let rt = Runtime::new(1);
        let flash = Flash::new(rt.handle(), profile, array);
        Self { rt, flash }
    }

    pub(crate) fn block(&self, die: u32, block: u32) -> BlockAddress {
        self.flash.geometry().block(DieIndex(die), block)
    }

    pub(crate) fn page(&self, die: u32, block: u32, index: u32) -> PageAddress {
        self.flash.geometry().page(self.block(die, block), index)
    }

    /// Runs `operation` at `at`. Returns its result and its end, in microseconds.
    fn at<T: 'static, F: Future<Output = T>>(
        &self,
        at: u64,
        operation: impl FnOnce(&Flash) -> F + 'static,
    ) -> JoinHandle<(T, u64)> {
        let (handle, flash) = (self.rt.handle(), self.flash.clone());
        self.rt.handle().spawn("operation", async move {
            handle.sleep_until(us(at)).await;
            let result = operation(&flash).await;
            assert!(handle.now().0.is_multiple_of(1_000), "all numbers here are whole");
            (result, handle.now().0 / 1_000)
        })
    }

    /// Reads a page of block 0 of `die` at `at`. Returns its end.
    pub(crate) fn read(&self, at: u64, die: u32, class: IoClass) -> JoinHandle<(bool, u64)> {
        self.read_page(at, die, 0, class)
    }

    /// Reads page `index` of that block.
    pub(crate) fn read_page(
        &self,
        at: u64,
        die: u32,
        index: u32,
        class: IoClass,
    ) -> JoinHandle<(bool, u64)> {
        let page = self.page(die, 0, index);
        self.at(at, move |flash| {
            let read = flash.read(page, class);
            async { read.await.is_ok() }
        })
    }

    /// Promotes the read of a page of block 0 of `die` at `at`.
    pub(crate) fn promote(&self, at: u64, die: u32, index: u32) {
        let page = self.page(die, 0, index);
        drop(self.at(at, move |flash| {
            flash.promote(page);
            std::future::ready(())
        }));
    }

    /// Programs the first unit of block 1 of `die` at `at`. Returns its end.
    pub(crate) fn program(&self, at: u64, die: u32, class: IoClass) -> JoinHandle<((), u64)> {
        let (page, count) = (self.page(die, 1, 0), self.flash.geometry().program_unit());
        self.at(at, move |flash| flash.program(page, images(count), class))
    }

    /// Erases block 2 of `die` at `at`. Returns its end.
    pub(crate) fn erase(&self, at: u64, die: u32, class: IoClass) -> JoinHandle<((), u64)> {
        let block = self.block(die, 2);
        self.at(at, move |flash| flash.erase(block, class))
    }

    /// Returns the end of an operation.
    pub(crate) fn end<T: 'static>(&self, operation: JoinHandle<(T, u64)>) -> u64 {
        self.rt.block_on(operation).1
    }

    /// Returns the ends of operations.
    pub(crate) fn ends<T: 'static>(
        &self,
        operations: impl IntoIterator<Item = JoinHandle<(T, u64)>>,
    ) -> Vec<u64> {
        operations.into_iter().map(|operation| self.end(operation)).collect()
    }

    /// Reads one page now and waits for it.
    pub(crate) fn read_now(&self, page: PageAddress) -> Result<PageImage, ReadError> {
        self.rt.block_on(self.flash.read(page, CLIENT))
    }

    /// Programs one unit now and waits for it.
    pub(crate) fn program_now(&self, first: PageAddress, images: Vec<PageImage>) {
        self.rt.block_on(self.flash.program(first, images, BACKGROUND));
    }
}

/// Returns `count` pages with different contents.
pub(crate) fn images(count: u32) -> Vec<PageImage> {
    (0..count).map(|i| PageImage::new(format!("contents of page {i}").as_bytes())).collect()
}

/// Programs every page of `block` without taking time.
pub(crate) fn fill(array: &mut NandArray, block: BlockAddress) {
    let geometry = array.geometry().clone();
    let all = images(geometry.pages_per_die_block());
    let unit = geometry.program_unit() as usize;
    for (i, images) in all.chunks(unit).enumerate() {
        array.program(geometry.page(block, (i * unit) as u32), images.to_vec());
    }
}
