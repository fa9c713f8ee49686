//! The bugs that can be planted in a drive.

use design::Planted;

/// A bug to plant, by the crate that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Pages(pages::Fault),
    Tree(engine::Fault),
    Table(hashkv::Fault),
}

impl Fault {
    /// Every fault that shows on a drive. A checkpoint that does not wait is behind its edits by a moment only there; crate
    /// `torture` catches it, where edits wait for windows. Pages of the journal that cannot be read are lost on files alone; tests of crate
    /// `engine` catch what takes them for others.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let pages = pages::Fault::ALL.map(Self::Pages);
        let tree = engine::Fault::ALL.map(Self::Tree);
        let table = hashkv::Fault::ALL.map(Self::Table);
        let shows = |fault: &Self| {
            !matches!(
                fault,
                Self::Tree(engine::Fault::CheckpointBeforeDurable)
                    | Self::Pages(pages::Fault::UnreadableIsOld | pages::Fault::UnreadableIsNeeded)
            )
        };
        pages.into_iter().chain(tree).chain(table).filter(shows)
    }

    /// What is planted in a drive that has `fault`.
    pub(crate) fn planted(fault: Option<Self>) -> Planted {
        let mut planted = Planted::default();
        match fault {
            None => {}
            Some(Self::Pages(fault)) => planted.pages = pages::Planted::new(fault),
            Some(Self::Tree(fault)) => planted.tree = planted::Planted::new(fault),
            Some(Self::Table(fault)) => planted.table = planted::Planted::new(fault),
        }
        planted
    }
}
