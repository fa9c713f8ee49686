//! The possible contents of a key in a snapshot.
//!
//! A snapshot was taken at some instant between its request and the reply. The possible contents of
//! a key are those that a Get with the same begin and end could return. They must still be known
//! much later, when a scan reaches the key: the journal has the earlier states. Each key that
//! changed in between narrows down the time of the snapshot.

use super::ticket::ReadTicket;
use super::versions::{Seen, Versions, is_put};

/// The time of a snapshot, by the clock of the versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotTime {
    /// Earliest time.
    pub(super) asked: u64,
    /// Latest time.
    pub(super) answered: u64,
}

/// The possible contents of a key in a snapshot.
pub(super) struct SnapshotView {
    /// The possible current versions when the snapshot was requested.
    before: ReadTicket,
    /// Versions issued until the reply, ascending.
    meanwhile: Vec<u32>,
    /// Whether the key is unchanged since the snapshot was requested.
    is_unchanged: bool,
}

impl SnapshotView {
    /// Returns the newest version that the snapshot can contain; later ones began after the reply.
    pub(super) fn newest(&self) -> u32 {
        self.meanwhile.last().copied().unwrap_or(self.before.newest)
    }
}

impl Versions {
    /// Notes that a snapshot was requested. It must be closed for the journal to end.
    pub(super) fn open_snapshot(&mut self) -> SnapshotTime {
        let asked = self.now();
        self.journal.open(asked);
        SnapshotTime { asked, answered: asked }
    }

    pub(super) fn close_snapshot(&mut self, time: SnapshotTime) {
        self.journal.close(time.asked);
    }

    pub(super) fn view(&self, time: SnapshotTime, key: u64) -> SnapshotView {
        let mut changes = self.journal.since(key, time.asked).peekable();
        let Some(first) = changes.peek() else {
            let before = self.begin_read(key);
            return SnapshotView { before, meanwhile: Vec::new(), is_unchanged: true };
        };
        let before = first.before.clone();
        let mut meanwhile = Vec::new();
        while let Some(change) = changes.next_if(|change| change.at <= time.answered) {
            let after = changes.peek().map_or_else(|| self.newest(key), |next| next.before.newest);
            if after > change.before.newest {
                meanwhile.push(after);
            }
        }
        SnapshotView { before, meanwhile, is_unchanged: false }
    }

    /// Returns the part of `time` within which the key can have had the seen state; all of `time`
    /// if no part fits.
    ///
    /// The states of the snapshot's other keys must also be possible within this part.
    pub(super) fn narrow(&self, time: SnapshotTime, key: u64, seen: Seen) -> SnapshotTime {
        let mut changes = self.journal.since(key, time.asked).peekable();
        if changes.peek().is_none_or(|change| change.at > time.answered) {
            return time;
        }
        // Changes split the time into parts; in each part the state of the key is that before the
        // next change.
        let mut held: Option<SnapshotTime> = None;
        let mut asked = time.asked;
        while asked <= time.answered {
            let next = changes.next();
            let before = next.map_or_else(|| self.begin_read(key), |change| change.before.clone());
            let end = next.map_or(u64::MAX, |change| change.at);
            if self.current(&before).iter().any(|version| seen.is(*version)) {
                let asked = held.map_or(asked, |held| held.asked);
                held = Some(SnapshotTime { asked, answered: time.answered.min(end - 1) });
            }
            asked = end;
        }
        held.unwrap_or(time)
    }

    /// Returns whether the snapshot may contain the seen state of the key.
    pub(super) fn view_allows(&self, view: &SnapshotView, seen: Seen) -> bool {
        let mut current = self.current(&view.before).into_owned().into_iter();
        current.any(|version| seen.is(version))
            || view.meanwhile.iter().any(|version| seen.is(*version))
    }

    /// Returns whether the snapshot may contain the seen state; if so, notes the order that this
    /// settles.
    pub(super) fn finish_view(&mut self, view: &SnapshotView, seen: Seen) -> bool {
        if view.is_unchanged {
            // Equivalent to a Get that has just begun.
            return self.finish_read(&view.before, seen);
        }
        self.view_allows(view, seen)
    }

    /// Returns the Puts that the snapshot may contain.
    pub(super) fn puts_of_view(&self, view: &SnapshotView) -> impl Iterator<Item = u32> {
        let current = self.current(&view.before).into_owned();
        current.into_iter().chain(view.meanwhile.clone()).filter(|version| is_put(*version))
    }
}
