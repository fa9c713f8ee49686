//! How a host keeps windows on the sets that its data lie on.

use runtime::Nanos;
use serde::{Deserialize, Serialize};
use volume::windows::slot::Rules;
use volume::windows::{Keeper, WindowOptions};

/// How a host keeps windows on the sets that its data lie on.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolicy {
    /// Not at all.
    #[default]
    Off,
    /// Each set is taken to its deterministic window whenever it may; nothing is scheduled by that: PLM and
    /// I-PLM.
    Simple,
    /// Set after set has a slot of constant length for all that is written: R-Vigil.
    Constant,
    /// Slots by need, and pauses without any: O-Vigil.
    Dynamic,
    /// As [`Self::Dynamic`], kept by the host alone on a drive that knows nothing of windows.
    Rails,
}

/// What a host grants a set where the drive asks for nothing: a slot of 100 ms, one in 10 s at least (assumed).
const RAILS: Rules = Rules {
    max_dtwin: Nanos::from_millis(10_000),
    min_ndwin: Nanos::from_millis(100),
    lockdown: Nanos::from_millis(20),
};

impl WindowPolicy {
    /// All of them, and what they are called.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Off, "off"),
        (Self::Simple, "simple"),
        (Self::Constant, "constant"),
        (Self::Dynamic, "dynamic"),
        (Self::Rails, "rails"),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all of them are there").1
    }

    /// What the volume is told, if it is to schedule by windows.
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

    /// Whether the drive has to have windows.
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
