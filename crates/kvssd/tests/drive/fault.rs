//! Bugs that can be planted in a drive.

use design::Planted;

/// A planted bug, by the crate that contains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Pages(pages::Fault),
    Tree(engine::Fault),
    Table(hashkv::Fault),
}

impl Fault {
    /// Returns every fault that shows on a drive. A checkpoint that does not wait lags behind its
    /// edits only for a moment on a drive; crate `torture` catches that fault, where edits wait for
    /// windows. Unreadable journal pages occur only on files; tests of crate `engine` catch the
    /// faults that mistake them for other pages.
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

    /// Returns the planted bugs of a drive with `fault`.
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
