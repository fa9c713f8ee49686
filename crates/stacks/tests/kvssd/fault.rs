//! Bugs that can be planted in a drive.

use engine::Fault;

/// Returns every fault that shows on a drive. A checkpoint that does not wait lags behind its edits
/// only for a moment on a drive; crate `torture` catches that fault, where edits wait for windows.
/// Unreadable journal pages occur only on files; tests of crate `engine` catch the faults that
/// mistake them for other pages.
pub(crate) fn faults() -> impl Iterator<Item = Fault> {
    let shows = |fault: &Fault| {
        !matches!(
            fault,
            Fault::CheckpointBeforeDurable | Fault::UnreadableIsOld | Fault::UnreadableIsNeeded
        )
    };
    Fault::ALL.into_iter().filter(shows)
}
