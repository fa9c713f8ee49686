//! Throughput of a block drive by arithmetic, as a check of the model.

use block::BLOCK_BYTES;
use drives::ssd::SsdProfile;

/// Upper bounds of the rate of 4 KiB reads, in reads per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub dies: f64,
    pub channels: f64,
    pub link: f64,
    pub firmware: f64,
}

impl Bounds {
    /// Returns the bounds of a whole drive.
    pub(super) fn of(profile: &SsdProfile) -> Self {
        let (geometry, timing) = (&profile.flash.geometry, &profile.flash.timing);
        let transfer_us = transfer_us(profile);
        let on_channel_us = if timing.commands_on_channel { timing.command_us } else { 0.0 };
        let sense_us = timing.read_us.iter().sum::<f64>() / timing.read_us.len() as f64;
        Self {
            dies: f64::from(geometry.dies()) * 1e6 / (timing.command_us + sense_us + transfer_us),
            channels: f64::from(geometry.channels) * 1e6 / (on_channel_us + transfer_us),
            link: profile.host.read_mb_per_s * 1e6 / f64::from(BLOCK_BYTES),
            firmware: f64::from(profile.controller.cores) * 1e6 / profile.controller.command_us,
        }
    }

    /// Returns the name of the smallest bound, and the bound.
    pub(super) fn smallest(&self) -> (&'static str, f64) {
        let all = [
            ("dies", self.dies),
            ("channels", self.channels),
            ("link", self.link),
            ("firmware", self.firmware),
        ];
        all.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are four")
    }
}

/// Returns how long a channel transfers 4 KiB and their share of the error-correcting code, in
/// microseconds.
fn transfer_us(profile: &SsdProfile) -> f64 {
    let geometry = &profile.flash.geometry;
    let share = f64::from(BLOCK_BYTES) / f64::from(geometry.page_bytes);
    f64::from(geometry.transfer_bytes) * share / profile.flash.timing.channel_mb_per_s
}
