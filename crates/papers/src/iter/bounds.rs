//! Upper bounds of the board by arithmetic on its profile, shown beside the measured values.
//!
//! One request is outstanding. A Next without prefetch takes the time of firmware and host plus the
//! read of its value, one after the other. A Next whose value was prefetched long before takes the
//! time of firmware and host, or the time that the channels need for a value, whichever is longer.

use stacks::kvssd::DeviceProfile;

/// Times of a board, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Board {
    /// Firmware and host of a command, without the transfer of the value.
    pub fixed_us: f64,
    /// Command cycles and tR.
    sense_us: f64,
    /// Transfer of a page on its channel.
    page_us: f64,
    page_bytes: f64,
    channels: f64,
    host_mb_per_s: f64,
}

impl Board {
    pub(super) fn new(device: &DeviceProfile) -> Self {
        let (flash, controller, host) = (&device.flash, &device.controller, &device.host);
        let (timing, geometry) = (&flash.timing, &flash.geometry);
        Self {
            fixed_us: controller.command_us + controller.pipeline_us + host.latency_us,
            sense_us: timing.command_us + timing.read_us[0],
            page_us: f64::from(geometry.transfer_bytes) / timing.channel_mb_per_s,
            page_bytes: f64::from(geometry.page_bytes),
            channels: f64::from(geometry.channels),
            host_mb_per_s: host.read_mb_per_s,
        }
    }

    /// Returns the time of firmware and host and of the transfer of the value to the host. Prefetch
    /// cannot hide this time.
    pub(super) fn floor_us(&self, value_bytes: u64) -> f64 {
        self.fixed_us + value_bytes as f64 / self.host_mb_per_s
    }

    /// Returns the time to read `pages` pages in parallel, distributed over all channels.
    pub(super) fn phase_us(&self, pages: u32) -> f64 {
        if pages == 0 {
            0.0
        } else {
            self.sense_us + self.page_us * (f64::from(pages) / self.channels).ceil()
        }
    }

    fn pages(&self, value_bytes: u64) -> u32 {
        (value_bytes as f64 / self.page_bytes).ceil() as u32
    }

    /// Returns the time of a Next that reads its value.
    pub(super) fn next_us(&self, value_bytes: u64) -> f64 {
        self.floor_us(value_bytes) + self.phase_us(self.pages(value_bytes))
    }

    /// Returns the minimum time of a Next whose value was prefetched.
    pub(super) fn ahead_us(&self, value_bytes: u64) -> f64 {
        let on_channels = self.page_us * f64::from(self.pages(value_bytes)) / self.channels;
        self.floor_us(value_bytes).max(on_channels)
    }

    /// Returns the maximum gain of value prefetch if values share no pages.
    pub(super) fn most_gain(&self, value_bytes: u64) -> f64 {
        self.next_us(value_bytes) / self.ahead_us(value_bytes)
    }

    /// Returns an upper bound of the latency of a Next that waits for phases of index reads, over
    /// the latency of other Nexts. `phases` are pages; nothing else delays the reads. If
    /// `is_ahead`, values are prefetched, and other Nexts take their minimum time.
    pub(super) fn most_tail(&self, value_bytes: u64, phases: &[u32], is_ahead: bool) -> f64 {
        let waits: f64 = phases.iter().map(|pages| self.phase_us(*pages)).sum();
        let other = if is_ahead { self.ahead_us(value_bytes) } else { self.next_us(value_bytes) };
        (other + waits) / other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        let mut device = DeviceProfile::load("cosmos-plus-4ch").expect("built in");
        (device.controller.command_us, device.controller.pipeline_us) = (4.0, 4.0);
        device.host.latency_us = 5.0;
        device.flash.timing.read_us = vec![60.0];
        device.host.read_mb_per_s = 3_200.0;
        Board::new(&device)
    }

    #[test]
    fn four_channels_bring_a_page_each_22_56_us() {
        let board = board();
        assert!((board.ahead_us(16 << 10) - 22.56).abs() < 1e-9);
        // 13 us, 5.12 us on the link, command and tR, 90.24 us on the channel.
        assert!((board.next_us(16 << 10) - 168.66).abs() < 1e-9);
        assert!((board.most_gain(16 << 10) - 168.66 / 22.56).abs() < 1e-9);
    }

    #[test]
    fn where_firmware_and_host_take_longer_than_the_channels_they_bound_the_gain() {
        let slow = Board { fixed_us: 40.0, ..board() };
        assert!((slow.ahead_us(16 << 10) - 45.12).abs() < 1e-9);
    }

    #[test]
    fn a_page_of_the_index_is_less_than_twice_and_three_phases_are_more() {
        let board = board();
        assert!(board.most_tail(4 << 10, &[1], false) < 2.0);
        assert!(board.most_tail(4 << 10, &[1, 1, 2], false) > 3.0);
        // Eight pages take two turns on four channels.
        assert!((board.phase_us(8) - 60.3 - 2.0 * 90.24).abs() < 1e-9);
        assert!(board.phase_us(0).abs() < 1e-9);
    }
}
