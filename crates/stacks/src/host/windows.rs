//! The policy of windows on the sets of a host's data.

use runtime::Nanos;
use serde::{Deserialize, Serialize};
use volume::windows::slot::Rules;
use volume::windows::{Keeper, WindowOptions};

/// The policy of windows on the sets of a host's data.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolicy {
    /// No windows.
    #[default]
    Off,
    /// Each set enters its deterministic window whenever it may; nothing is scheduled by it: PLM
    /// and I-PLM.
    Simple,
    /// One set after the other has a slot of constant length for all writes: R-Vigil.
    Constant,
    /// Slots as long as needed, and pauses without slots: O-Vigil.
    Dynamic,
    /// Like [`Self::Dynamic`], kept by the host alone on a drive without windows.
    Rails,
}

/// The rules of windows without requirements of the drive: slots of 100 ms, at least one in 10 s
/// (assumed).
const RAILS: Rules = Rules {
    max_dtwin: Nanos::from_millis(10_000),
    min_ndwin: Nanos::from_millis(100),
    lockdown: Nanos::from_millis(20),
};

impl WindowPolicy {
    /// All policies and their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Off, "off"),
        (Self::Simple, "simple"),
        (Self::Constant, "constant"),
        (Self::Dynamic, "dynamic"),
        (Self::Rails, "rails"),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all of them are there").1
    }

    /// Returns the window options of the volume; `None` if it does not schedule by windows.
    pub fn options(self) -> Option<WindowOptions> {
        match self {
            Self::Off | Self::Simple => None,
            Self::Constant => Some(WindowOptions::R_VIGIL),
            Self::Dynamic => Some(WindowOptions::O_VIGIL),
            Self::Rails => {
                Some(WindowOptions { keeper: Keeper::Host(RAILS), ..WindowOptions::O_VIGIL })
            }
        }
    }

    /// Whether the policy requires windows of the drive.
    pub fn needs_drive_windows(self) -> bool {
        matches!(self, Self::Simple | Self::Constant | Self::Dynamic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_called_what_the_list_says() {
        assert!(WindowPolicy::ALL.into_iter().all(|(policy, name)| policy.name() == name));
    }
}
