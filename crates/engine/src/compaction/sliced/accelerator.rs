//! The merge accelerator of `PinK` (USENIX ATC'20): its cost model and its data path.
//!
//! The accelerator is next to the flash and merges meta segments that it reads from flash. Segments
//! of a pinned level exist only in memory, so they are first written to flash for the accelerator
//! alone. The firmware sets up each merge and rebuilds the level list from the result; its cores
//! are free during the merge. The hardware runs one merge at a time, reads `bytes_per_cycle` of
//! input each cycle, and cannot merge entries longer than `max_entry_bytes`: the processor does
//! merges that have such an entry.
//!
//! Reading, merging and writing of a slice run one after the other here, as they do with the
//! processor; real hardware would overlap them. The processor also does merges within memory
//! (flushes into a pinned L1, compactions between pinned levels) and flushes into an unpinned L1:
//! an input of these merges was never a segment in flash, or no flash is involved.

use std::ops::Range;

use catalogue::bounds;
use runtime::{Carrier, Cores, Handle, IoClass, Nanos, PageImage};
use serde::{Deserialize, Serialize};

use super::picker::Slice;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::PointerFormat;
use crate::medium::{Medium, PageNo};
use crate::space::promise::Promise;
use crate::version::Version;
use crate::version::level::Level;
use crate::version::location::Location;

/// A merge accelerator of a device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Clock frequency, in MHz.
    pub clock_mhz: f64,
    /// Input bytes merged per cycle.
    pub bytes_per_cycle: u32,
    /// The longest entry that can be merged (key and pointer or value), in bytes.
    pub max_entry_bytes: u32,
    /// Time of a firmware core to set up one merge, in microseconds.
    pub setup_us: f64,
    /// Time of a firmware core to put one segment of the result into the level list, in
    /// microseconds.
    pub segment_us: f64,
}

impl Accelerator {
    /// Returns a message for each invalid parameter.
    pub fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("clock_mhz", self.clock_mhz, 0.001..=1e6),
            bounds::range("bytes_per_cycle", self.bytes_per_cycle, 1..=1 << 20),
            bounds::time_us("setup_us", self.setup_us),
            bounds::time_us("segment_us", self.segment_us),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the time that the hardware takes to merge `bytes` of input.
    fn time_for(&self, bytes: u64) -> Nanos {
        let cycles = bytes.div_ceil(u64::from(self.bytes_per_cycle));
        Nanos((cycles as f64 * 1_000.0 / self.clock_mhz).ceil() as u64)
    }

    /// Returns the firmware time of a merge that writes `segments` segments.
    fn firmware_time_for(&self, segments: usize) -> Nanos {
        Nanos::from_micros_f64(self.setup_us + self.segment_us * segments as f64)
    }
}

/// The accelerator of a running store. It runs one merge at a time.
pub(crate) struct MergeUnit {
    device: Accelerator,
    server: Cores,
}

impl MergeUnit {
    pub(crate) fn new(handle: Handle, device: Accelerator) -> Self {
        // The quantum has no effect: merges are not split into slices.
        Self { device, server: Cores::new(handle, 1, Nanos(1)) }
    }

    /// Whether every entry of these segments is short enough for the accelerator.
    fn takes(&self, pages: &[PageImage], format: PointerFormat) -> bool {
        pages.iter().all(|page| {
            let segment = MetaSegment::new(page.bytes(), format).expect("checked when it was read");
            let longest =
                (0..segment.len()).map(|index| segment.entry(index).full_len(format)).max();
            longest.unwrap_or(0) <= self.device.max_entry_bytes as usize
        })
    }

    /// Saves or restores the accelerator's booked time (see [`Carrier`]).
    pub(crate) fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        self.server.carry(by)
    }

    /// Returns the total time that the accelerator was busy.
    pub(crate) fn busy(&self) -> Nanos {
        self.server.busy()
    }
}

/// The unit that does a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merger {
    Processor,
    Accelerator,
}

/// The inputs of a merge and the unit that merges them.
pub(crate) struct Inputs {
    pub newer: Vec<PageImage>,
    pub older: Vec<PageImage>,
    pub merger: Merger,
}

impl<M: Medium> Inner<M> {
    /// Returns the accelerator if it does the compactions into `level`.
    fn accelerator_into(&self, level: usize) -> Option<&MergeUnit> {
        self.merge_unit.as_ref().filter(|_| !self.is_pinned(level))
    }

    /// Returns the number of pages that a compaction of `slice` of `level` writes only for the
    /// accelerator to read: the segments that are only in memory.
    pub(crate) fn pages_to_copy(&self, version: &Version, level: usize, slice: &Slice) -> u32 {
        if self.accelerator_into(level + 1).is_none() {
            return 0;
        }
        self.store.in_units(in_memory(version.level(level), slice.upper.clone()).len() as u32)
    }

    /// Reads both inputs of the merge of `slice`. The accelerator reads all segments from flash:
    /// pinned segments are first written to temporary pages, from the space promised in `copies`.
    pub(crate) async fn merge_inputs(
        &self,
        version: &Version,
        level: usize,
        slice: &Slice,
        copies: Option<Promise<'_>>,
        urgency: impl Fn() -> f64,
    ) -> Result<Inputs, EngineError> {
        let mut newer = self.load(version.level(level), slice.upper.clone()).await?;
        let unit = self.accelerator_into(level + 1);
        let takes =
            |pages: &[PageImage]| unit.is_some_and(|unit| unit.takes(pages, self.store.format));
        let mut is_for_hardware = takes(&newer);
        if let Some(copies) = copies.filter(|_| is_for_hardware) {
            let places = in_memory(version.level(level), slice.upper.clone());
            is_for_hardware = self.take_through_flash(&mut newer, &places, copies, urgency).await?;
        }
        let older = self.load(version.level(level + 1), slice.below.clone()).await?;
        is_for_hardware &= takes(&older);
        let is_left_over = unit.is_some() && !is_for_hardware;
        self.stats.borrow_mut().accelerator.left_to_processor += u64::from(is_left_over);
        let merger = if is_for_hardware { Merger::Accelerator } else { Merger::Processor };
        Ok(Inputs { newer, older, merger })
    }

    /// Writes the pages at `places` to flash and replaces them with the images read back. Returns
    /// false if a page cannot be read back: the images in memory stay valid, and the processor
    /// merges them.
    async fn take_through_flash(
        &self,
        pages: &mut [PageImage],
        places: &[usize],
        promise: Promise<'_>,
        urgency: impl Fn() -> f64,
    ) -> Result<bool, EngineError> {
        let copies = places.iter().map(|place| pages[*place].bytes().to_vec()).collect();
        let class = IoClass::CompactionWrite;
        let written = self.store.write_temporary(copies, promise, class, urgency).await?;
        self.stats.borrow_mut().accelerator.pages_copied += places.len() as u64;
        let read = |page: &PageNo| (*page, self.store.medium.read(*page, IoClass::CompactionRead));
        let reads: Vec<_> = written.pages().iter().map(read).collect();
        let mut are_intact = true;
        for (place, (page, read)) in places.iter().zip(reads) {
            match self.check_meta(page, read.await, IoClass::CompactionRead).await {
                Ok(image) => pages[*place] = image,
                Err(_) => are_intact = false,
            }
        }
        Ok(are_intact)
    }

    /// Charges the time of a merge of `pages` pages and `entries` entries into `segments` segments
    /// to the unit that does it.
    pub(crate) async fn spend_on_merge(
        &self,
        merger: Merger,
        pages: usize,
        entries: usize,
        segments: usize,
    ) {
        let cpu = &self.store.cpu;
        let Some(unit) = self.merge_unit.as_ref().filter(|_| merger == Merger::Accelerator) else {
            return cpu.cores.spend_in_background(cpu.costs.of_merge(entries)).await;
        };
        let bytes = pages as u64 * u64::from(self.store.shape.page_bytes);
        cpu.cores.spend_in_background(unit.device.firmware_time_for(segments)).await;
        unit.server.spend(unit.device.time_for(bytes)).await;
        let work = &mut self.stats.borrow_mut().accelerator;
        work.merges += 1;
        work.bytes += bytes;
    }
}

/// Returns which segments of `range` are only in memory, as indexes relative to its start.
fn in_memory(level: &Level, range: Range<usize>) -> Vec<usize> {
    let is_pinned =
        |n: &usize| matches!(level.segment(range.start + n).location, Location::Pinned(_));
    (0..range.len()).filter(is_pinned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::entry::IndexEntry;
    use crate::format::meta_segment::MetaSegmentBuilder;
    use crate::format::pointer::Pointer;
    use crate::medium::Shape;

    fn device() -> Accelerator {
        Accelerator {
            clock_mhz: 175.0,
            bytes_per_cycle: 16,
            max_entry_bytes: 256,
            setup_us: 10.0,
            segment_us: 2.0,
        }
    }

    #[test]
    fn it_merges_at_2_8_gigabytes_a_second() {
        let time = device().time_for(2_800_000_000);
        assert_eq!(time, Nanos(1_000_000_000));
        assert_eq!(device().time_for(1), Nanos(6), "a cycle begun is a cycle");
        assert_eq!(device().firmware_time_for(5), Nanos(20_000));
    }

    #[test]
    fn entries_of_256_bytes_are_the_longest_it_takes() {
        let shape = Shape {
            payload_bytes: 8192,
            page_bytes: 8192,
            pages_per_extent: 1 << 14,
            extents: 512,
            grows_to: 0,
            append_unit: 1,
            parallelism: 64,
        };
        let format = PointerFormat::new(&shape);
        let rt = runtime::Runtime::new(1);
        let unit = MergeUnit::new(rt.handle(), device());
        let page = |key_len: usize| {
            let mut builder = MetaSegmentBuilder::new(format, 8192);
            for key in [b"a", &vec![b'b'; key_len][..]] {
                let pointer = Pointer::TOMBSTONE;
                assert!(builder.push(&IndexEntry { key, pointer, tail: &[] }));
            }
            PageImage::new(&builder.finish())
        };
        assert!(unit.takes(&[page(5), page(256 - format.bytes)], format));
        assert!(!unit.takes(&[page(5), page(257 - format.bytes)], format));
    }
}
