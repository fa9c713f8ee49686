//! The bugs that can be planted in a host's store and in the layers below.

use runtime::planted::Planted;

/// A bug to plant, by the crate that contains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A bug in the engine.
    Engine(engine::Fault),
    /// A bug in the volume or its windows.
    Volume(volume::Fault),
    /// A bug in the drives.
    Drive(drives::ssd::Fault),
}

impl Fault {
    /// Returns the bug to plant in the store.
    pub(crate) fn in_store(fault: Option<Self>) -> engine::Planted {
        match fault {
            Some(Self::Engine(fault)) => Planted::new(fault),
            _ => Planted::default(),
        }
    }

    /// Returns the bug to plant in the volume.
    pub(crate) fn in_volume(fault: Option<Self>) -> volume::Planted {
        match fault {
            Some(Self::Volume(fault)) => Planted::new(fault),
            _ => Planted::default(),
        }
    }

    /// Returns the bug to plant in the drives.
    pub(crate) fn in_drive(fault: Option<Self>) -> drives::ssd::Planted {
        match fault {
            Some(Self::Drive(fault)) => Planted::new(fault),
            _ => Planted::default(),
        }
    }
}
