//! Checks of scans: every pair, and the gap between two pairs.
//!
//! A scan must return every record of its snapshot from the sought key on, each once and in order,
//! with its value in the snapshot. The pairs returned and omitted narrow down the time of the
//! snapshot, so a scan that mixes keys of different instants is detected, unless the writes in
//! between overlapped. The order of keys lists all records; the walk along it stops at each pair,
//! so a scan costs one step per record.

use engine::Value;

use super::mismatch::{Finding, write_name};
use super::order::{Cursor, KeyOrder};
use super::snapshot::{SnapshotTime, SnapshotView};
use super::versions::Seen;
use super::{MismatchKind, Oracle};
use crate::target::Pair;

/// A scan in flight.
#[must_use = "a scan that is not ended keeps the journal of all changes growing"]
pub(crate) struct ScanTicket {
    /// The time of the snapshot, as far as known; further results narrow it down.
    time: SnapshotTime,
    /// The time of the iterator's request.
    opened: SnapshotTime,
    /// The sought position.
    start: u64,
    /// The position at which the scan ends, if before the end of the store.
    bound: Option<u64>,
    cursor: Cursor,
    is_off_track: bool,
}

/// A wrong result of a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ScanSurprise {
    pub(crate) kind: MismatchKind,
    /// The key, escaped to ASCII.
    pub(crate) key: String,
    /// `None` if the key is not one of the session's keys.
    pub(crate) key_number: Option<u64>,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl ScanTicket {
    /// Returns whether the scan returned an impossible key: later pairs cannot be checked.
    pub(crate) fn is_off_track(&self) -> bool {
        self.is_off_track
    }
}

#[cfg(test)]
impl ScanTicket {
    pub(super) fn time(&self) -> SnapshotTime {
        self.time
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }
}

impl Oracle {
    /// Prepares a run with scans. All key numbers below `issued` have been issued.
    pub(crate) fn prepare_scans(&mut self, keys: &crate::KeyFormat, issued: u64) {
        self.order.get_or_insert_with(|| KeyOrder::new(keys.clone())).settle(issued);
    }

    /// Returns the number of the key `count` keys after that of `key`, if it exists.
    pub(crate) fn key_after(&self, key: u64, count: u64) -> Option<u64> {
        self.order().number_after(key, count)
    }

    /// Notes that an iterator is requested, to read from the key `start` up to the key `bound`.
    pub(crate) fn begin_scan(&mut self, start: u64, bound: Option<u64>) -> ScanTicket {
        let time = self.versions.open_snapshot();
        let order = self.order();
        let start = order.keys().position(start);
        let bound = bound.map(|number| order.keys().position(number));
        let cursor = order.before(start);
        ScanTicket { time, opened: time, start, bound, cursor, is_off_track: false }
    }

    /// Notes that the iterator was created: its snapshot has been taken.
    pub(crate) fn scan_created(&self, ticket: &mut ScanTicket) {
        ticket.time.answered = self.versions.now();
    }

    /// Notes that the scan has ended, for any reason.
    #[expect(clippy::needless_pass_by_value, reason = "nothing is to be asked of it afterwards")]
    pub(crate) fn end_scan(&mut self, ticket: ScanTicket) {
        self.versions.close_snapshot(ticket.opened);
    }

    /// Checks the next pair of the scan, and the gap before it. Returns the errors found.
    pub(crate) fn check_pair(&mut self, ticket: &mut ScanTicket, pair: &Pair) -> Vec<ScanSurprise> {
        let (position, number) = match self.place(ticket, &pair.key) {
            Ok(place) => place,
            Err(surprise) => {
                ticket.is_off_track = true;
                return vec![surprise];
            }
        };
        let next_is_ours = || format!("{} as the next key", pair.key.escape_ascii());
        let mut surprises = Vec::new();
        surprises.extend(self.check_gap(ticket, Some(position), next_is_ours));
        ticket.cursor = self.order().past(ticket.cursor, position);
        surprises.extend(self.check_value(ticket, number, &pair.value));
        surprises
    }

    /// Checks the end of the scan: no further pairs may exist.
    pub(crate) fn check_end(&self, ticket: &mut ScanTicket) -> Option<ScanSurprise> {
        self.check_gap(ticket, ticket.bound, || "the end".to_owned())
    }

    fn order(&self) -> &KeyOrder {
        self.order.as_ref().expect("a run with scans has prepared them")
    }

    /// Returns position and number of `key` if it may come next.
    fn place(&self, ticket: &ScanTicket, key: &[u8]) -> Result<(u64, u64), ScanSurprise> {
        let keys = self.order().keys();
        let place = keys.parse(key).map(|position| (position, keys.number_at(position)));
        let place = place.filter(|(_, number)| self.versions.newest(*number) > 0);
        let key_of = |position| keys.display(keys.number_at(position));
        let (kind, expected) = match place {
            None => (MismatchKind::ForeignKey, "a key that was written".to_owned()),
            Some((position, _)) if position < ticket.start => {
                (MismatchKind::OutOfBounds, format!("a key from {} on", key_of(ticket.start)))
            }
            Some((position, _)) if position < ticket.cursor.ahead => {
                let last = key_of(ticket.cursor.ahead - 1);
                (MismatchKind::OutOfOrder, format!("a key above {last}, which came before"))
            }
            Some((position, _)) if ticket.bound.is_some_and(|bound| bound <= position) => {
                let bound = ticket.bound.map_or_else(String::new, key_of);
                (MismatchKind::OutOfBounds, format!("a key below the bound {bound}"))
            }
            Some(place) => return Ok(place),
        };
        let got = "this key".to_owned();
        let (key, key_number) = (key.escape_ascii().to_string(), place.map(|(_, number)| number));
        Err(ScanSurprise { kind, key, key_number, expected, got })
    }

    /// Checks that no key of the snapshot was skipped before the position `until`. Reports only the
    /// first such key, because possibly all keys are missing.
    fn check_gap(
        &self,
        ticket: &mut ScanTicket,
        until: Option<u64>,
        got: impl FnOnce() -> String,
    ) -> Option<ScanSurprise> {
        let order = self.order();
        let is_skipped = |position: &u64| until.is_none_or(|until| *position < until);
        while let Some(position) = order.peek(ticket.cursor).filter(is_skipped) {
            let number = order.keys().number_at(position);
            let view = self.versions.view(ticket.time, number);
            if !self.versions.view_allows(&view, Seen::Nothing) {
                let (kind, got) = (MismatchKind::Skipped, got());
                return Some(self.surprise(&view, number, kind, got));
            }
            ticket.time = self.versions.narrow(ticket.time, number, Seen::Nothing);
            ticket.cursor = order.past(ticket.cursor, position);
        }
        None
    }

    fn check_value(
        &mut self,
        ticket: &mut ScanTicket,
        number: u64,
        value: &Value,
    ) -> Option<ScanSurprise> {
        let view = self.versions.view(ticket.time, number);
        let finding = self.find_origin(number, value, || self.versions.puts_of_view(&view));
        let kind = match finding {
            Finding::Write(version) if self.versions.finish_view(&view, Seen::Write(version)) => {
                ticket.time = self.versions.narrow(ticket.time, number, Seen::Write(version));
                return None;
            }
            Finding::Write(version) if version > view.newest() => MismatchKind::Newer,
            Finding::Write(_) if self.versions.puts_of_view(&view).next().is_none() => {
                MismatchKind::Resurrected
            }
            Finding::Write(_) => MismatchKind::Stale,
            _ => MismatchKind::Foreign,
        };
        Some(self.surprise(&view, number, kind, finding.to_string()))
    }

    fn surprise(
        &self,
        view: &SnapshotView,
        number: u64,
        kind: MismatchKind,
        got: String,
    ) -> ScanSurprise {
        let nothing = self.versions.view_allows(view, Seen::Nothing).then(|| "nothing".to_owned());
        let writes = self.versions.puts_of_view(view).map(write_name);
        let expected: Vec<String> = nothing.into_iter().chain(writes).collect();
        let expected = expected.join(" or ");
        let key = self.order().keys().display(number);
        ScanSurprise { kind, key, key_number: Some(number), expected, got }
    }
}
