//! What counts of an extent that a power cut left: a plain function of what its members say.
//!
//! The newest generation that any header says is the extent's, and of its headers the one with the
//! highest revision says who missed some of it. An extent counts only if so many members have it that
//! the others may have been away; else its opening, or its release, was cut short before anything in it
//! was synced. Members that do not answer may have it.

use pages::Stream;

use crate::extents::bits;
use crate::header::Header;
use crate::layout::Layout;

/// What a member says of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The member is gone.
    Gone,
    /// It has something, or nothing.
    There {
        /// How far it was written, as far as the member can tell.
        frontier: u32,
        /// Its header, if that is whole.
        header: Option<Header>,
    },
}

impl Found {
    fn header(&self) -> Option<&Header> {
        match self {
            Self::Gone => None,
            Self::There { header, .. } => header.as_ref(),
        }
    }
}

/// What an extent is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub generation: u64,
    pub stream: Stream,
    pub revision: u32,
    /// Members that the newest header says have not all of it.
    pub noted: u64,
    /// Members to be relied on.
    pub whole: u64,
}

impl Verdict {
    /// Too few members answer to know anything.
    const UNKNOWN: Self =
        Self { generation: 0, stream: Stream::Objects, revision: 0, noted: 0, whole: 0 };
}

/// What the extent is by what its members say; `None` if it holds nothing that counts. `heeds_notes`
/// where members do not tell by a frontier how much they have.
pub(crate) fn judge(
    found: &[Found],
    layout: Layout,
    spares: usize,
    heeds_notes: bool,
    believes_stale: bool,
) -> Option<Verdict> {
    let headers = found.iter().filter_map(Found::header);
    let newest = headers.max_by_key(|header| (header.generation, header.revision));
    let gone = found.iter().filter(|found| **found == Found::Gone).count();
    let Some(newest) = newest else {
        // Those that are gone may have had it: what is there is not to be taken for nothing.
        return (gone > spares).then_some(Verdict::UNKNOWN);
    };
    let members = || found.iter().enumerate();
    let all = |is_it: &dyn Fn(&Found) -> bool| {
        bits(members().filter(|(_, found)| is_it(found)).map(|(member, _)| member))
    };
    let is_current =
        |found: &Found| found.header().is_some_and(|h| h.generation == newest.generation);
    let (current, there) = (all(&is_current), all(&|found| *found != Found::Gone));
    let denies = (there & !current).count_ones();
    let counts = match layout {
        Layout::Parity { .. } => denies <= 1,
        Layout::Striped { .. } | Layout::Mirrored => true,
    };
    let noted = if heeds_notes { newest.absent } else { 0 };
    let whole = match layout {
        // Nobody is left who could tell whether what is there is the newest.
        Layout::Parity { .. } if gone > spares => 0,
        // There is nothing to stand in for what is stale: pages say themselves what they are.
        Layout::Striped { .. } => there,
        _ if believes_stale => there,
        _ => current & !noted,
    };
    let Header { generation, stream, revision, absent, .. } = *newest;
    counts.then_some(Verdict { generation, stream, revision, noted: absent, whole })
}

#[cfg(test)]
mod tests {
    use pages::ExtentId;

    use super::*;

    const PARITY: Layout = Layout::Parity { chunk_pages: 1 };
    const BLANK: Found = Found::There { frontier: 0, header: None };

    fn found(generation: u64, revision: u32, absent: u64) -> Found {
        let header = Header {
            layout: PARITY,
            members: 3,
            member: 0,
            volume: 1,
            generation,
            extent: ExtentId(0),
            revision,
            absent,
            stream: Stream::Log,
        };
        Found::There { frontier: 1, header: Some(header) }
    }

    fn whole(layout: Layout, found: &[Found]) -> Option<u64> {
        let spares = match layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => found.len() - 1,
        };
        judge(found, layout, spares, true, false).map(|verdict| verdict.whole)
    }

    #[test]
    fn who_has_another_generation_is_stale() {
        let (now, old) = (found(5, 0, 0), found(4, 7, 0));
        for (members, expected) in [
            ([now, now, now], Some(0b111)),
            ([now, old, now], Some(0b101)),
            ([now, BLANK, now], Some(0b101)),
            ([now, Found::Gone, now], Some(0b101)),
            ([now, Found::Gone, old], Some(0b001)),
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
        let by_frontier = judge(&[after, before, before], PARITY, 1, false, false);
        assert_eq!(by_frontier.map(|verdict| verdict.whole), Some(0b111));
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
