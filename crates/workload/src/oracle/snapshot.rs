//! What a key may hold in a snapshot.
//!
//! A snapshot was taken at some instant between its being asked for and answered. What it may hold
//! of a key is what a Get with these two ends could return, which must still be known when a scan
//! comes to the key, long after: the journal tells what the key was like. Each key that changed in
//! the meantime narrows down when the snapshot was taken.

use super::ticket::ReadTicket;
use super::versions::{Seen, Versions, is_put};

/// When a snapshot was taken, by the clock of the versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotTime {
    /// Not before this.
    pub(super) asked: u64,
    /// And not after this.
    pub(super) answered: u64,
}

/// What a key may hold in a snapshot.
pub(super) struct SnapshotView {
    /// What could be current when the snapshot was asked for.
    before: ReadTicket,
    /// Versions issued until it was answered, rising.
    meanwhile: Vec<u32>,
    /// Whether nothing has happened to the key since the snapshot was asked for.
    is_unchanged: bool,
}

impl SnapshotView {
    /// The newest version that the snapshot can hold; later ones began after it was answered.
    pub(super) fn newest(&self) -> u32 {
        self.meanwhile.last().copied().unwrap_or(self.before.newest)
    }
}

impl Versions {
    /// A snapshot is asked for. It has to be closed for the journal to end.
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

    /// The part of `time` within which the key can have held what was seen of it; all of it if that
    /// is no part.
    ///
    /// What the other keys of the snapshot hold must be so within this part as well.
    pub(super) fn narrow(&self, time: SnapshotTime, key: u64, seen: Seen) -> SnapshotTime {
        let mut changes = self.journal.since(key, time.asked).peekable();
        if changes.peek().is_none_or(|change| change.at > time.answered) {
            return time;
        }
        // Changes cut the time into pieces, in each of which the key is like before the next one.
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

    /// Whether the snapshot may hold what was seen of the key.
    pub(super) fn view_allows(&self, view: &SnapshotView, seen: Seen) -> bool {
        let mut current = self.current(&view.before).into_owned().into_iter();
        current.any(|version| seen.is(version))
            || view.meanwhile.iter().any(|version| seen.is(*version))
    }

    /// Whether the snapshot may hold what was seen; if so, what that settles is noted.
    pub(super) fn finish_view(&mut self, view: &SnapshotView, seen: Seen) -> bool {
        if view.is_unchanged {
            // As good as a Get that has just begun.
            return self.finish_read(&view.before, seen);
        }
        self.view_allows(view, seen)
    }

    /// The Puts that the snapshot may hold.
    pub(super) fn puts_of_view(&self, view: &SnapshotView) -> impl Iterator<Item = u32> {
        let current = self.current(&view.before).into_owned();
        current.into_iter().chain(view.meanwhile.clone()).filter(|version| is_put(*version))
    }
}
