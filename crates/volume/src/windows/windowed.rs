//! The interface of a medium whose device has windows.

use std::future::Future;

use block::BlockDevice;
use block::nvme::{PerSetLog, PlmConfig, Thresholds, WindowSelect};
use engine::{Medium, MediumError, PageNo};

use crate::block_range::{BlockRange, as_medium_error};

/// A medium whose device has predictable-latency windows.
pub trait Windowed: Medium {
    /// Turns windows on or off (`PLMConfig` of Vigil-KV, table 1).
    ///
    /// # Errors
    /// Returns [`MediumError::Gone`], or [`MediumError::Io`] if the device has no windows.
    fn configure_windows(
        &self,
        is_on: bool,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Takes the device to a window, and returns when it is in it (`PLMWindow`).
    ///
    /// # Errors
    /// As [`Self::configure_windows`].
    fn select_window(
        &self,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Returns the device's requirements and the window it is in (`GetLogPage`).
    ///
    /// # Errors
    /// As [`Self::configure_windows`].
    fn window_log(&self) -> impl Future<Output = Result<PerSetLog, MediumError>> + use<Self>;
}

impl<D: BlockDevice + Clone> Windowed for BlockRange<D> {
    fn configure_windows(
        &self,
        is_on: bool,
    ) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        let config = PlmConfig { enabled: is_on, thresholds: Thresholds::default() };
        let configured = self.device().configure_plm(self.set(), config);
        async move { configured.await.map_err(|error| as_medium_error(&error, PageNo(0))) }
    }

    fn select_window(
        &self,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        let selected = self.device().select_window(self.set(), window);
        async move { selected.await.map_err(|error| as_medium_error(&error, PageNo(0))) }
    }

    fn window_log(&self) -> impl Future<Output = Result<PerSetLog, MediumError>> + use<D> {
        let log = self.device().plm_log(self.set(), true);
        async move { log.await.map_err(|error| as_medium_error(&error, PageNo(0))) }
    }
}
