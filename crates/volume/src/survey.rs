//! The verdict on an extent after a power cut: a pure function of the members' headers.
//!
//! Headers with the same run and generation belong to the same opening. Of these, the header with
//! the highest revision shows which members missed some of the extent. An extent counts only if
//! enough members have its newest opening that the rest may have been away. Otherwise this opening,
//! or its release, was cut short before anything in it was synced. Members that do not answer may
//! have it.
//!
//! Which opening is the newest? Synced data is on all members except those that the header notes as
//! away. So if a header denies (notes as absent) all members that have another opening, its own
//! opening is the newer one: a later opening with synced data would also be on a member of the
//! first one. Generations and run numbers alone cannot decide this. They derive from the members
//! that answered, and a member that is away may have higher numbers, of data that was never synced.
//! If neither opening denies the other, or both do, the one of the later run is newer; within a
//! run, the one with the higher generation.
//!
//! An unreadable header is not a missing header. Its member may have any opening, so for the
//! verdict it is a member that does not answer. Its data is doubted but served, because any member
//! that lacks synced data is noted in a header of the other members.
//!
//! A member that lacks synced data is noted, and notes never cover more members than the layout
//! tolerates. Suppose the header of an extent notes one member, and another member, which has other
//! extents, lacks the extent without being noted. Then the extent was being released, and it is
//! empty. A member without any data may be a replacement: its lack proves nothing, and neither does
//! that of a member that is noted or whose own headers say that it is not listed. (A replacement is
//! listed once all that it lacks is noted.) With more replacements than the layout tolerates, the
//! state of an extent is unknown. So an extent that a member lacks without being noted was not
//! synced, and its unreadable pages are not lost data. If in addition more members are silent or
//! noted, so that a part of a journal could not be read, the extent is empty: power failed while it
//! was opened or released. Other extents are left to the manifest, which shows whether they are
//! needed.
//!
//! A header that notes more members than the layout tolerates was written by an earlier version, by
//! a sync that could not succeed. Its notes are ignored.

use engine::Stream;

use crate::extents::{bit, bits};
use crate::header::{Header, Standing};
use crate::layout::Layout;
use crate::run;

/// The state of an extent on a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The member is gone.
    Gone,
    /// The member answers, but its header cannot be read.
    Unread,
    /// The member has data, or nothing.
    There {
        /// The number of pages written, as far as the member knows.
        frontier: u32,
        /// Its header, if valid.
        header: Option<Header>,
    },
}

impl Found {
    pub(crate) fn header(&self) -> Option<&Header> {
        match self {
            Self::Gone | Self::Unread => None,
            Self::There { header, .. } => header.as_ref(),
        }
    }

    /// Whether its header has this standing.
    pub(crate) fn is_of(&self, standing: Standing) -> bool {
        self.header().is_some_and(|header| header.standing == standing)
    }
}

/// The state of an extent of the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub run: u64,
    pub generation: u64,
    pub stream: Stream,
    pub revision: u64,
    /// Members that the newest header notes as lacking some of it.
    pub noted: u64,
    /// Members that can be relied on.
    pub whole: u64,
    /// Members whose headers cannot be read, and that no other header notes.
    pub doubted: u64,
    /// Whether a member lacks it that would be noted if anything had been synced.
    pub seems_unsynced: bool,
    /// Whether no later opening can have been synced, because only few members are silent or were
    /// replaced.
    pub is_newest: bool,
}

impl Verdict {
    /// The verdict if too few members answer.
    const UNKNOWN: Self = Self {
        run: 0,
        generation: 0,
        stream: Stream::Objects,
        revision: 0,
        noted: 0,
        whole: 0,
        doubted: 0,
        seems_unsynced: false,
        is_newest: false,
    };
}

/// An opening of the extent, assembled from its headers.
#[derive(Clone, Copy)]
struct Opening {
    /// The newest of its headers, and the member that has it.
    header: Header,
    told_by: usize,
    /// Members that have any of its headers.
    holders: u64,
}

impl Opening {
    fn told_by(member: usize, header: Header) -> Self {
        Self { header, told_by: member, holders: bit(member) }
    }

    fn is_of(&self, header: &Header) -> bool {
        (self.header.run, self.header.generation) == (header.run, header.generation)
    }

    /// Adds a header of the same opening on another member.
    fn join(&mut self, member: usize, header: Header, rules: &Rules) {
        self.holders |= bit(member);
        if rules.are_too_many(header.absent) {
            return;
        }
        // If two headers were rewritten in turn with the other member away, the header that denies
        // the other's member is newer.
        let denies = header.absent & bit(self.told_by) != 0;
        let is_denied = self.header.absent & bit(member) != 0;
        let (new, old) = ((header.revision, denies), (self.header.revision, is_denied));
        if new > old || rules.are_too_many(self.header.absent) {
            (self.header, self.told_by) = (header, member);
        }
    }

    fn denies(&self, other: &Self) -> bool {
        other.holders & !self.header.absent == 0
    }

    fn is_newer_than(&self, other: &Self) -> bool {
        let order = |it: &Self| (run::count(it.header.run), it.header.generation);
        match (self.denies(other), other.denies(self)) {
            (true, false) => true,
            (false, true) => false,
            (true, true) | (false, false) => order(self) > order(other),
        }
    }
}

/// The inputs of a verdict besides the headers.
#[expect(clippy::struct_excessive_bools, reason = "three are for planted faults")]
pub(crate) struct Rules {
    pub layout: Layout,
    /// Number of members that may be missing.
    pub spares: usize,
    /// Whether headers, not frontiers, show which members lack data.
    pub heeds_notes: bool,
    /// Members whose lack of an extent proves nothing.
    pub fresh: u64,
    /// Members whose lack of an extent proves that it was not synced, unless they are noted.
    pub listed: u64,
    /// Set by planted faults only.
    pub believes_stale: bool,
    pub believes_too_many: bool,
    pub believes_released: bool,
}

impl Rules {
    /// Whether a header that notes these members was written by a sync that could not succeed.
    fn are_too_many(&self, absent: u64) -> bool {
        !self.believes_too_many && absent.count_ones() as usize > self.spares
    }
}

/// Returns the newest opening of the headers.
fn newest_opening(found: &[Found], rules: &Rules) -> Option<Opening> {
    let mut openings: Vec<Opening> = Vec::with_capacity(1);
    for (member, found) in found.iter().enumerate() {
        let Some(header) = found.header() else { continue };
        match openings.iter_mut().find(|opening| opening.is_of(header)) {
            Some(opening) => opening.join(member, *header, rules),
            None => openings.push(Opening::told_by(member, *header)),
        }
    }
    let newer = |one: Opening, other: Opening| if other.is_newer_than(&one) { other } else { one };
    openings.into_iter().reduce(newer)
}

/// Whether an extent may have been synced that only members without any data lack. The exception is
/// the first checkpoint of a new store: a power cut may leave it on a few members, and no data is
/// lost.
fn may_be_synced(header: &Header) -> bool {
    header.stream != Stream::Manifest || run::count(header.run) > 1 || header.absent != 0
}

/// Returns the verdict on an extent; `None` if it is empty or does not count.
pub(crate) fn judge(found: &[Found], rules: &Rules) -> Option<Verdict> {
    let Rules { layout, spares, .. } = *rules;
    let members = || found.iter().enumerate();
    let all = |is_it: &dyn Fn(&Found) -> bool| {
        bits(members().filter(|(_, found)| is_it(found)).map(|(member, _)| member))
    };
    let unread = all(&|found| *found == Found::Unread);
    let gone = all(&|found| *found == Found::Gone);
    let silent = (gone | unread).count_ones() as usize;
    let Some(newest) = newest_opening(found, rules) else {
        // Silent members may have the extent, so it must not count as empty.
        return (silent > spares).then_some(Verdict::UNKNOWN);
    };
    let (current, there) = (newest.holders, !gone & all(&|_| true));
    let denies = there & !current & !unread;
    let Header { run, generation, stream, revision, .. } = newest.header;
    let absent = if rules.are_too_many(newest.header.absent) { 0 } else { newest.header.absent };
    let noted = if rules.heeds_notes { absent } else { 0 };
    let seems_unsynced = rules.heeds_notes && denies & !noted & !rules.fresh != 0;
    let is_told = denies & !noted & rules.listed != 0;
    // Members that lack it without being noted or replaced.
    let unexplained = denies & !absent & !rules.fresh;
    let lack = match unexplained {
        _ if rules.believes_released => denies,
        0 => denies & !absent,
        // It was never synced, on any member.
        _ if seems_unsynced && is_told && stream.is_journal() => denies | noted | unread | gone,
        _ => denies | noted,
    };
    let is_lacked = lack.count_ones() as usize > spares;
    // Too many members were replaced: only the existence of the extent is known.
    let is_forgotten = unexplained == 0 && is_lacked && may_be_synced(&newest.header);
    let counts = match layout {
        Layout::Parity { .. } => !is_lacked || is_forgotten,
        Layout::Striped { .. } | Layout::Mirrored => true,
    };
    let (whole, doubted) = match layout {
        // No remaining member can show whether this data is the newest.
        Layout::Parity { .. } if silent > spares || is_forgotten => (0, 0),
        // No redundancy replaces stale data here. Each page's own header shows its age.
        Layout::Striped { .. } => (there, 0),
        _ if rules.believes_stale => (there, 0),
        _ => (current & !noted, unread & !noted),
    };
    let untold = (gone | unread | rules.fresh) & !current;
    let is_newest = (untold.count_ones() as usize) < found.len() - spares;
    let noted = absent;
    counts.then_some(Verdict {
        run,
        generation,
        stream,
        revision,
        noted,
        whole,
        doubted,
        seems_unsynced,
        is_newest,
    })
}

#[cfg(test)]
mod tests {
    use engine::ExtentId;

    use super::*;

    const PARITY: Layout = Layout::Parity { chunk_pages: 1 };
    const BLANK: Found = Found::There { frontier: 0, header: None };

    fn found(generation: u64, revision: u64, absent: u64) -> Found {
        found_of(1 << 32, generation, revision, absent)
    }

    fn found_of(run: u64, generation: u64, revision: u64, absent: u64) -> Found {
        let header = Header {
            layout: PARITY,
            members: 3,
            member: 0,
            volume: 1,
            generation,
            extent: ExtentId(0),
            run,
            revision,
            absent,
            stream: Stream::Log,
            standing: Standing::Listed,
            incarnation: 0,
        };
        Found::There { frontier: 1, header: Some(header) }
    }

    fn whole(layout: Layout, found: &[Found]) -> Option<u64> {
        let spares = match layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => found.len() - 1,
        };
        judge(found, &rules(layout, spares)).map(|verdict| verdict.whole)
    }

    fn rules(layout: Layout, spares: usize) -> Rules {
        Rules {
            layout,
            spares,
            heeds_notes: true,
            fresh: 0,
            listed: u64::MAX,
            believes_stale: false,
            believes_too_many: false,
            believes_released: false,
        }
    }

    #[test]
    fn who_has_another_generation_is_stale() {
        let (now, old) = (found(5, 0, 0), found(4, 7, 0));
        for (members, expected) in [
            ([now, now, now], Some(0b111)),
            ([now, old, now], Some(0b101)),
            ([now, BLANK, now], Some(0b101)),
            ([now, Found::Gone, now], Some(0b101)),
            ([now, Found::Gone, old], None),
            ([now, old, old], None),
            ([Found::Gone, Found::Gone, now], Some(0)),
            ([now, BLANK, BLANK], None),
            ([BLANK, BLANK, BLANK], None),
            ([BLANK, Found::Gone, BLANK], None),
            ([BLANK, Found::Gone, Found::Gone], Some(0)),
        ] {
            assert_eq!(whole(PARITY, &members), expected, "{members:?}");
        }
    }

    #[test]
    fn the_newest_header_says_who_missed_writes() {
        let (before, after) = (found(5, 0, 0), found(5, 1, 0b010));
        assert_eq!(whole(PARITY, &[after, before, before]), Some(0b101));
        assert_eq!(whole(PARITY, &[before, found(5, 2, 0), after]), Some(0b111));
        let by_frontier = Rules { heeds_notes: false, ..rules(PARITY, 1) };
        let by_frontier = judge(&[after, before, before], &by_frontier);
        assert_eq!(by_frontier.map(|verdict| verdict.whole), Some(0b111));
    }

    #[test]
    fn who_went_on_without_a_member_knows_more_than_that_one() {
        let before = |generation, revision| found_of(7 << 32 | 1, generation, revision, 0);
        // The first member took no part in that run.
        let without = |absent| found_of(7 << 32 | 2, 5, 0, absent);
        for old in [before(5, 0), before(5, 9), before(6, 0), found_of(9 << 32, 5, 0, 0)] {
            for layout in [PARITY, Layout::Mirrored] {
                let (first, last) = (without(0b001), without(0b100));
                assert_eq!(whole(layout, &[old, first, first]), Some(0b110), "{old:?}");
                assert_eq!(whole(layout, &[last, last, old]), Some(0b011), "{old:?}");
            }
            assert_eq!(whole(Layout::Mirrored, &[without(0b10), old]), Some(0b01), "{old:?}");
        }
        // Each member was alone once; the later run saw the other member in between.
        let alone = [found_of(8 << 32, 4, 0, 0b10), found_of(7 << 32, 5, 0, 0b01)];
        assert_eq!(whole(Layout::Mirrored, &alone), Some(0b01));
    }

    #[test]
    fn of_headers_that_were_written_again_by_turns_the_one_that_denies_counts() {
        let (with, without) = (found(5, 2, 0), found(5, 2, 0b100));
        assert_eq!(whole(Layout::Mirrored, &[without, without, with]), Some(0b011));
        assert_eq!(whole(Layout::Mirrored, &[with, found(5, 2, 0b001)]), Some(0b10));
    }

    #[test]
    fn a_header_that_cannot_be_read_is_not_one_that_is_not_there() {
        let now = found(5, 0, 0);
        for (members, expected) in [
            ([now, Found::Unread, now], Some((0b101, 0b010))),
            // If anything had been synced, the last member would have it or be noted.
            ([now, Found::Unread, BLANK], None),
            ([found(5, 1, 0b100), Found::Unread, BLANK], Some((0b001, 0b010))),
            ([found(5, 1, 0b010), Found::Unread, now], Some((0b101, 0))),
            ([now, Found::Unread, Found::Unread], Some((0, 0))),
            ([now, Found::Unread, Found::Gone], Some((0, 0))),
            ([BLANK, Found::Unread, Found::Unread], Some((0, 0))),
            ([BLANK, Found::Unread, BLANK], None),
        ] {
            let verdict = judge(&members, &rules(PARITY, 1));
            let found = verdict.map(|verdict| (verdict.whole, verdict.doubted));
            assert_eq!(found, expected, "{members:?}");
        }
        assert_eq!(whole(Layout::Mirrored, &[now, Found::Unread]), Some(0b01));
    }

    #[test]
    fn a_header_that_notes_more_than_the_layout_stands_says_nothing() {
        let (before, noted, too_many) = (found(5, 0, 0), found(5, 1, 0b001), found(5, 2, 0b011));
        assert_eq!(whole(PARITY, &[before, noted, too_many]), Some(0b110));
        assert_eq!(whole(PARITY, &[too_many, before, before]), Some(0b111));
        assert_eq!(whole(PARITY, &[before, before, too_many]), Some(0b111));
    }

    #[test]
    fn an_extent_that_one_lacks_beside_one_that_is_noted_was_being_released() {
        let (before, noted) = (found(5, 0, 0), found(5, 1, 0b001));
        assert_eq!(whole(PARITY, &[before, noted, noted]), Some(0b110));
        assert_eq!(whole(PARITY, &[before, noted, BLANK]), None);
        assert_eq!(whole(PARITY, &[BLANK, noted, noted]), Some(0b110), "that is the one");
        // The last member is a replacement.
        let fresh = Rules { fresh: 0b100, ..rules(PARITY, 1) };
        let (before, noted) = (found_of(2 << 32, 5, 0, 0), found_of(2 << 32, 5, 1, 0b001));
        let verdict = judge(&[before, noted, BLANK], &fresh);
        assert_eq!(verdict.map(|verdict| verdict.whole), Some(0b010), "too little to be read");
    }

    #[test]
    fn a_part_of_a_journal_that_one_lacks_who_is_listed_was_not_synced() {
        let of = |stream| match found(5, 0, 0) {
            Found::There { frontier, header: Some(header) } => {
                Found::There { frontier, header: Some(Header { stream, ..header }) }
            }
            other => other,
        };
        for silent in [Found::Gone, Found::Unread] {
            for (stream, listed, expected) in [
                (Stream::Log, 0b100, None),
                (Stream::Manifest, 0b100, None),
                // The manifest shows whether it is needed.
                (Stream::Objects, 0b100, Some(0b001)),
                // An earlier version may have begun to fill the last member.
                (Stream::Log, 0b011, Some(0b001)),
            ] {
                let rules = Rules { listed, ..rules(PARITY, 1) };
                let verdict = judge(&[of(stream), silent, BLANK], &rules);
                let whole = verdict.map(|verdict| verdict.whole);
                assert_eq!(whole, expected, "{stream:?}, {silent:?}, {listed:b}");
            }
        }
    }

    #[test]
    fn who_is_noted_or_was_replaced_does_not_deny_what_the_others_have() {
        let noted = found_of(2 << 32, 5, 1, 0b001);
        let (first, later) = (found(5, 0, 0), found_of(2 << 32, 5, 0, 0));
        let checkpoint = |found: Found| match found {
            Found::There { frontier, header: Some(header) } => {
                let header = Some(Header { stream: Stream::Manifest, ..header });
                Found::There { frontier, header }
            }
            other => other,
        };
        for (members, fresh, expected) in [
            // One member was away at the opening and another was replaced: the extent is unknown,
            // not empty.
            ([BLANK, noted, BLANK], 0b100, Some(0b010)),
            ([BLANK, noted, BLANK], 0b101, Some(0b010)),
            ([BLANK, noted, noted], 0b001, Some(0b110)),
            // It was being released: a member lacks it that was neither away nor replaced.
            ([BLANK, noted, BLANK], 0b001, None),
            ([BLANK, noted, BLANK], 0b000, None),
            // Two members were replaced.
            ([later, BLANK, BLANK], 0b110, Some(0)),
            ([first, BLANK, BLANK], 0b110, Some(0)),
            ([checkpoint(later), BLANK, BLANK], 0b110, Some(0)),
            ([checkpoint(noted), BLANK, BLANK], 0b110, Some(0)),
            // The first checkpoint of a new store.
            ([checkpoint(first), BLANK, BLANK], 0b110, None),
            ([first, BLANK, BLANK], 0b010, None),
        ] {
            for heeds_notes in [true, false] {
                let rules = Rules { heeds_notes, fresh, ..rules(PARITY, 1) };
                let verdict = judge(&members, &rules).map(|verdict| verdict.whole);
                assert_eq!(verdict, expected, "{members:?}, {fresh:b}, {heeds_notes}");
            }
        }
    }

    #[test]
    fn one_mirror_is_enough_and_stripes_stand_for_themselves() {
        let now = found(5, 0, 0);
        assert_eq!(whole(Layout::Mirrored, &[BLANK, now]), Some(0b10));
        assert_eq!(whole(Layout::Mirrored, &[Found::Gone, now]), Some(0b10));
        let striped = Layout::Striped { chunk_pages: 1 };
        assert_eq!(whole(striped, &[BLANK, now, Found::Gone]), Some(0b011));
    }
}
