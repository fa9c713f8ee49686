//! The bugs that can be planted in a host's store and what it stands on.

/// A bug to plant, by the crate that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// In pages, log and manifest.
    Pages(pages::Fault),
    /// In the tree.
    Tree(engine::Fault),
    /// In the volume, or its windows.
    Volume(volume::Fault),
    /// In the drives.
    Drive(ssd::Fault),
}

impl Fault {
    /// What is planted in the store.
    pub(crate) fn in_store(fault: Option<Self>) -> design::Planted {
        let mut planted = design::Planted::default();
        match fault {
            Some(Self::Pages(fault)) => planted.pages = plant(fault),
            Some(Self::Tree(fault)) => planted.tree = plant(fault),
            Some(Self::Volume(_) | Self::Drive(_)) | None => {}
        }
        planted
    }

    /// What is planted in the volume.
    pub(crate) fn in_volume(fault: Option<Self>) -> volume::Planted {
        match fault {
            Some(Self::Volume(fault)) => plant(fault),
            _ => volume::Planted::default(),
        }
    }

    /// What is planted in drives.
    pub(crate) fn in_drive(fault: Option<Self>) -> ssd::Planted {
        match fault {
            Some(Self::Drive(fault)) => plant(fault),
            _ => ssd::Planted::default(),
        }
    }
}

/// Plants a bug.
fn plant<F: Copy + PartialEq>(fault: F) -> planted::Planted<F> {
    planted::Planted::new(fault)
}
