//! The acknowledged but not yet durable writes that a power cut may lose.
//!
//! A store orders its writes, and a power cut keeps a prefix of that order. Clients observe a part
//! of the order: a write acknowledged before another write was requested comes first. So if a write
//! is found after recovery, all writes acknowledged before its request must be there too. If a
//! write was durable by its acknowledgement, the same holds. Each session, the time between two
//! power cuts, is checked by itself: its writes were kept or lost by the cut that ended it.

use std::cell::Cell;
use std::collections::BTreeMap;

use engine::LogSync;
use runtime::Nanos;

/// A write with `interval` is durable this long after its acknowledgement: one millisecond, and the
/// time that the log may wait for a slow drive.
const LATEST: Nanos = Nanos::from_millis(50);

/// The events at which a write was requested and acknowledged, by event number.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    session: u32,
    asked: u64,
    acknowledged: Option<Acknowledged>,
}

#[derive(Clone, Debug)]
struct Acknowledged {
    event: u64,
    sync: LogSync,
    at: Nanos,
}

/// Client activity between two power cuts.
pub(crate) struct Session {
    number: Cell<u32>,
    events: Cell<u64>,
    /// See [`LATEST`].
    latest: Cell<Nanos>,
    /// Additional delay per KiB of client writes, because a group is durable only after all its
    /// data is programmed.
    per_kib: Cell<Nanos>,
    /// Bytes of the writes requested by clients.
    bytes: Cell<u64>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            number: Cell::new(0),
            events: Cell::new(0),
            latest: Cell::new(LATEST),
            per_kib: Cell::default(),
            bytes: Cell::default(),
        }
    }
}

impl Session {
    fn next(&self) -> u64 {
        self.events.set(self.events.get() + 1);
        self.events.get()
    }

    /// Sets the maximum lag of the log, and the additional lag per KiB of writes.
    pub(crate) fn expect_log_behind(&self, time: Nanos, per_kib: Nanos) {
        self.latest.set(time.max(LATEST));
        self.per_kib.set(per_kib);
    }

    /// Returns the maximum lag of the log at the end of the session.
    fn behind(&self) -> Nanos {
        self.latest.get() + self.per_kib.get() * self.bytes.get().div_ceil(1024)
    }

    /// Counts the bytes of a requested write.
    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    pub(crate) fn ask(&self) -> Mark {
        Mark { session: self.number.get(), asked: self.next(), acknowledged: None }
    }

    pub(crate) fn acknowledge(&self, mark: &mut Mark, sync: LogSync, at: Nanos) {
        mark.acknowledged = Some(Acknowledged { event: self.next(), sync, at });
    }

    /// Returns the mark of a value found on a recovered drive.
    pub(crate) fn settled(&self) -> Mark {
        let mut mark = self.ask();
        self.acknowledge(&mut mark, LogSync::Group, Nanos::ZERO);
        mark
    }

    /// Returns an event number: at a power cut at `now`, the writes of this session that were
    /// acknowledged before that event are durable.
    pub(crate) fn durable_before<'a>(
        &self,
        marks: impl Iterator<Item = &'a Mark>,
        now: Nanos,
    ) -> u64 {
        let is_durable = |mark: &&Mark| {
            let is_late = |at: Nanos| at + self.behind() <= now;
            mark.session == self.number.get()
                && mark.acknowledged.as_ref().is_some_and(|acknowledged| match acknowledged.sync {
                    LogSync::Group | LogSync::Each => true,
                    LogSync::Interval => is_late(acknowledged.at),
                    LogSync::None => false,
                })
        };
        marks.filter(is_durable).map(|mark| mark.asked).max().unwrap_or(0)
    }

    /// Whether a write survives a power cut at which the events before `before` are durable.
    pub(crate) fn is_durable(&self, mark: &Mark, before: u64) -> bool {
        let Some(acknowledged) = &mark.acknowledged else { return false };
        match acknowledged.sync {
            // In earlier sessions too.
            LogSync::Group | LogSync::Each => true,
            LogSync::None | LogSync::Interval => {
                mark.session == self.number.get() && acknowledged.event < before
            }
        }
    }

    pub(crate) fn end(&self) {
        self.number.set(self.number.get() + 1);
        self.bytes.set(0);
    }
}

/// The result of a read after recovery: one of the equal writes of a key between `oldest` and
/// `newest`. Writes count from 1; 0 is the state before the first write.
pub(crate) struct Finding<'a> {
    pub(crate) key: usize,
    pub(crate) marks: &'a [Mark],
    pub(crate) oldest: usize,
    pub(crate) newest: usize,
}

impl Finding<'_> {
    /// Returns the oldest write that the result can be, if its session is certain.
    fn write(&self) -> Option<&Mark> {
        let (oldest, newest) = (self.oldest.checked_sub(1)?, self.newest.checked_sub(1)?);
        let is_certain = self.marks[oldest].session == self.marks[newest].session;
        is_certain.then(|| &self.marks[oldest])
    }
}

/// By session, the event at which the newest found write was requested.
pub(crate) struct Order {
    newest: BTreeMap<u32, u64>,
}

impl Order {
    pub(crate) fn of(findings: &[Finding<'_>]) -> Self {
        let mut newest = BTreeMap::new();
        for mark in findings.iter().filter_map(Finding::write) {
            let asked: &mut u64 = newest.entry(mark.session).or_default();
            *asked = mark.asked.max(*asked);
        }
        Self { newest }
    }

    /// Describes a write that was lost although a later write was found.
    pub(crate) fn lost(&self, findings: &[Finding<'_>]) -> Option<String> {
        findings.iter().find_map(|finding| {
            let later = &finding.marks[finding.newest..];
            let lost = later.iter().find(|mark| {
                let newest = self.newest.get(&mark.session).copied().unwrap_or(0);
                mark.acknowledged.as_ref().is_some_and(|a| a.event < newest)
            })?;
            let Finding { key, newest, .. } = finding;
            Some(format!(
                "after recovery: key {key} has its write {newest}, a later one is lost ({lost:?}), and \
                 what was written after that is there ({:?})",
                self.newest
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates one acknowledged write to each of the keys 0, 1, 2, ..., with the given
    /// durabilities.
    fn session(syncs: &[LogSync]) -> (Session, Vec<Vec<Mark>>) {
        let session = Session::default();
        let marks = syncs.iter().map(|sync| {
            let mut mark = session.ask();
            session.acknowledge(&mut mark, *sync, Nanos::ZERO);
            vec![mark]
        });
        let marks = marks.collect();
        (session, marks)
    }

    #[test]
    fn what_came_before_a_durable_write_is_durable() {
        let (session, marks) =
            session(&[LogSync::None, LogSync::Interval, LogSync::Group, LogSync::None]);
        let durable = |now| {
            let before = session.durable_before(marks.iter().flatten(), now);
            marks.iter().map(|m| session.is_durable(&m[0], before)).collect::<Vec<_>>()
        };
        assert_eq!(durable(Nanos(1)), [true, true, true, false]);
        session.end();
        assert_eq!(durable(Nanos(1)), [false, false, true, false], "of the session before");
    }

    #[test]
    fn an_interval_ends() {
        let (session, marks) = session(&[LogSync::None, LogSync::Interval, LogSync::None]);
        let before = |now| session.durable_before(marks.iter().flatten(), now);
        assert_eq!(before(Nanos(1)), 0);
        assert!(session.is_durable(&marks[0][0], before(LATEST)));
        assert!(!session.is_durable(&marks[2][0], before(LATEST)));
    }

    #[test]
    fn a_log_of_many_bytes_is_further_behind() {
        let (session, marks) = session(&[LogSync::None, LogSync::Interval]);
        session.expect_log_behind(LATEST, Nanos(1_000));
        session.count_bytes(1_500);
        let before = |now| session.durable_before(marks.iter().flatten(), now);
        assert_eq!(before(LATEST + Nanos(1_999)), 0);
        assert!(session.is_durable(&marks[0][0], before(LATEST + Nanos(2_000))));
        session.end();
        assert_eq!(session.behind(), LATEST);
    }

    #[test]
    fn a_gap_in_what_survived_is_noticed() {
        let (_, marks) = session(&[LogSync::None; 4]);
        let lost = |survived: [usize; 4]| {
            let finding = |key: usize| {
                let (oldest, newest) = (survived[key], survived[key]);
                Finding { key, marks: &marks[key], oldest, newest }
            };
            let findings: Vec<_> = (0..4).map(finding).collect();
            Order::of(&findings).lost(&findings).is_some()
        };
        for kept in 0..=4 {
            assert!(!lost(std::array::from_fn(|key| usize::from(key < kept))), "the first {kept}");
        }
        assert!(lost([1, 0, 1, 0]) && lost([0, 0, 0, 1]) && lost([0, 1, 0, 0]));
    }
}
