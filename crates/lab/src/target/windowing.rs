//! Windows on the volume of a host's data, as a bench turns them on.

use std::cell::RefCell;
use std::pin::Pin;

use block::BlockDevice;
use host::WindowPolicy;
use volume::windows::{SimpleWindows, WindowStats};
use volume::{BlockRange, Volume};

/// Windows that a run turns on.
pub(crate) trait Windowing {
    /// They begin; it returns when they have begun.
    fn start(&self) -> Pin<Box<dyn Future<Output = ()>>>;

    /// What they did.
    fn stats(&self) -> Option<WindowStats>;
}

/// The windows of a volume.
pub(crate) struct VolumeWindows<D> {
    volume: Volume<BlockRange<D>>,
    policy: WindowPolicy,
    simple: RefCell<Option<SimpleWindows>>,
}

impl<D> VolumeWindows<D> {
    pub(crate) fn new(volume: &Volume<BlockRange<D>>, policy: WindowPolicy) -> Self {
        Self { volume: volume.clone(), policy, simple: RefCell::default() }
    }
}

impl<D: BlockDevice + Clone> Windowing for VolumeWindows<D> {
    fn start(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        match (self.policy, self.policy.options()) {
            (WindowPolicy::Simple, _) => {
                let simple = self.volume.start_simple_windows();
                self.simple.replace(Some(simple));
            }
            (_, Some(options)) => self.volume.start_windows(options),
            (_, None) => {}
        }
        let volume = self.volume.clone();
        Box::pin(async move { volume.windows_begun().await })
    }

    fn stats(&self) -> Option<WindowStats> {
        self.volume.window_stats()
    }
}
