//! Windows on the volume of a host's data, which a bench turns on.

use std::cell::RefCell;
use std::pin::Pin;

use block::BlockDevice;
use stacks::host::{Storage, WindowPolicy};
use volume::windows::{SimpleWindows, WindowOptions, WindowStats};
use volume::{BlockRange, Volume, VolumeStats};

/// Windows that a bench turns on for the run.
pub(crate) trait Windowing {
    /// Turns the windows on. The future completes when they have begun.
    fn start(&self) -> Pin<Box<dyn Future<Output = ()>>>;

    /// Returns the counters of the windows.
    fn stats(&self) -> Option<WindowStats>;

    /// Returns the counters of the volume.
    fn volume_stats(&self) -> VolumeStats;
}

/// The windows of a volume.
pub(crate) struct VolumeWindows<D> {
    volume: Volume<BlockRange<D>>,
    is_simple: bool,
    options: Option<WindowOptions>,
    simple: RefCell<Option<SimpleWindows>>,
}

impl<D> VolumeWindows<D> {
    pub(crate) fn new(volume: &Volume<BlockRange<D>>, storage: &Storage) -> Self {
        Self {
            volume: volume.clone(),
            is_simple: storage.windows == WindowPolicy::Simple,
            options: storage.window_options(),
            simple: RefCell::default(),
        }
    }
}

impl<D: BlockDevice + Clone> Windowing for VolumeWindows<D> {
    fn start(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        if self.is_simple {
            let simple = self.volume.start_simple_windows();
            self.simple.replace(Some(simple));
        } else if let Some(options) = self.options {
            self.volume.start_windows(options);
        }
        let volume = self.volume.clone();
        Box::pin(async move { volume.windows_begun().await })
    }

    fn stats(&self) -> Option<WindowStats> {
        self.volume.window_stats()
    }

    fn volume_stats(&self) -> VolumeStats {
        self.volume.stats()
    }
}
