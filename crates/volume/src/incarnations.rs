//! Incarnations of a member: a pure function of the headers decides which of them count.
//!
//! An empty member becomes the next incarnation in its place. Each header records the tenures of
//! all members: the incarnation of each, and the last run that it took part in durably. So a
//! replaced member that comes back with its old data is distinguished from its replacement, and an
//! older copy of a member from the member itself: other members know a later tenure than its own
//! headers record. Such a former member's data does not count, and the member becomes the next
//! incarnation (docs/decisions/0056).
//!
//! A former member cannot make others former: it may have run with a member that no other member
//! knows. If two members make each other former, neither is; the headers that deny members decide
//! instead.
//!
//! If some headers of a member cannot be read, one of them may record a later run. If none of its
//! readable headers counts, its unreadable headers count as missing when there are fewer of them
//! than places where the member has nothing or a former header, and another member has a header
//! that does not note it.

use crate::extents::{bit, bits};
use crate::header::{Header, Standing};
use crate::survey::Found;
use crate::tenure::{incarnation_of, tenure};

/// The tenures that the members' headers record for all members.
#[derive(Clone, Debug)]
pub(crate) struct Tellings {
    /// `told[a][b]`: the latest tenure of member `b` in the headers of member `a`.
    told: Vec<Vec<u64>>,
    /// For each member, the number of places with other bytes than a header, on media that cannot
    /// distinguish a torn header.
    torn: Vec<usize>,
}

impl Tellings {
    pub(crate) fn new(members: usize) -> Self {
        Self { told: vec![vec![0; members]; members], torn: vec![0; members] }
    }

    /// Records the tenures in a header of the member `teller`.
    pub(crate) fn hear(&mut self, teller: usize, told: &[u64]) {
        for (known, told) in self.told[teller].iter_mut().zip(told) {
            *known = (*known).max(*told);
        }
    }

    /// Records that a member has other bytes than a header in the place of one.
    pub(crate) fn see_torn(&mut self, member: usize) {
        self.torn[member] += 1;
    }

    /// Returns the former members: a member that is not former itself knows a later tenure of them.
    /// For members with unreadable headers (`unread`) only a later incarnation counts.
    fn former(&self, unread: u64) -> u64 {
        let members = || 0..self.told.len();
        let (mut believed, mut former) = (0_u64, 0_u64);
        loop {
            let before = (believed, former);
            for member in members() {
                if (believed | former) & bit(member) != 0 {
                    continue;
                }
                let known = |tenure: u64| {
                    if unread & bit(member) == 0 { tenure } else { incarnation_of(tenure).into() }
                };
                let own = known(self.told[member][member]);
                let knows_later = |teller: &usize| known(self.told[*teller][member]) > own;
                let by = bits(members().filter(knows_later)) & !former;
                if by == 0 {
                    believed |= bit(member);
                } else if by & believed != 0 {
                    former |= bit(member);
                }
            }
            if before == (believed, former) {
                return former;
            }
        }
    }

    /// Returns the latest tenure of a member that members other than `former` ones record. Of the
    /// member's own record only the incarnation counts: the other members must not repeat its run,
    /// because the header that proves it may be gone by the next run.
    fn latest(&self, member: usize, former: u64) -> u64 {
        let told = |teller: usize| {
            let tenure_of = self.told[teller][member];
            if teller == member { tenure(incarnation_of(tenure_of), 0) } else { tenure_of }
        };
        let tellers = (0..self.told.len()).filter(|teller| former & bit(*teller) == 0);
        tellers.map(told).max().unwrap_or(0)
    }

    /// Returns the tenure of the next incarnation of a member.
    fn next(&self, member: usize) -> u64 {
        tenure(incarnation_of(self.latest(member, 0)).saturating_add(1), 0)
    }
}

/// The result for all members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Incarnations {
    /// The tenure of each member.
    pub tenures: Vec<u64>,
    /// Members whose headers do not count.
    former: u64,
    /// Members whose unreadable headers count as missing.
    lack_unread: u64,
}

/// Decides the tenures of members from the state of each extent.
pub(crate) fn incarnations(found: &[Vec<Found>], tellings: &Tellings) -> Incarnations {
    let members = tellings.told.len();
    let mut known = Incarnations { tenures: vec![0; members], former: 0, lack_unread: 0 };
    if found.iter().flatten().all(|found| found.header().is_none()) {
        return known;
    }
    let of = |member: usize, is_it: &dyn Fn(&Found) -> bool| {
        found.iter().filter(|found| is_it(&found[member])).count()
    };
    let unread = |member: usize| of(member, &|it| *it == Found::Unread) + tellings.torn[member];
    let gone = |member: usize| of(member, &|it| *it == Found::Gone);
    known.former = tellings.former(bits((0..members).filter(|it| unread(*it) > 0)));
    // If a member is lost meanwhile, not all its headers were read.
    known.former &= !bits((0..members).filter(|it| gone(*it) > 0));
    for member in 0..members {
        let latest = tellings.latest(member, known.former);
        known.tenures[member] = latest;
        if gone(member) > 0 {
            continue;
        }
        let counts = |found: &Found| {
            let is_it = |header: &Header| header.incarnation == incarnation_of(latest);
            known.former & bit(member) == 0 && found.header().is_some_and(is_it)
        };
        let others_have = |found: &[Found]| {
            let has = |found: &Found| found.header().is_some_and(|it| it.absent & bit(member) == 0);
            (0..members).any(|other| other != member && has(&found[other]))
        };
        let lacks = |found: &Vec<Found>| {
            let is_read = matches!(found[member], Found::There { .. });
            is_read && !counts(&found[member]) && others_have(found)
        };
        let is_listed = |found: &Found| counts(found) && !found.is_of(Standing::Unlisted);
        let is_here = of(member, &counts) > 0;
        let unread = unread(member);
        let is_next =
            !is_here && (unread == 0 || found.iter().filter(|it| lacks(it)).count() > unread);
        if is_next {
            known.tenures[member] = tellings.next(member);
        }
        if is_next || is_here && of(member, &is_listed) == 0 {
            known.lack_unread |= bit(member);
        }
    }
    known
}

/// Removes headers that do not count from `found`.
pub(crate) fn leave_out_former(found: &mut [Vec<Found>], known: &Incarnations) {
    for found in found {
        for (member, found) in found.iter_mut().enumerate() {
            let is = |members: u64| members & bit(member) != 0;
            let counts = |it: &Header| {
                !is(known.former) && it.incarnation == incarnation_of(known.tenures[member])
            };
            match found {
                Found::Unread if is(known.lack_unread) => {
                    *found = Found::There { frontier: 1, header: None };
                }
                Found::There { header, .. } => *header = header.filter(counts),
                Found::Gone | Found::Unread => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{ExtentId, Stream};

    use super::*;
    use crate::layout::Layout;

    const NOTHING: Found = Found::There { frontier: 0, header: None };
    const DROPPED: Found = Found::There { frontier: 1, header: None };
    /// The tenure of the second incarnation.
    const NEXT: u64 = 1 << 32;

    fn header(incarnation: u32) -> Found {
        of_standing(incarnation, Standing::Listed)
    }

    fn of_standing(incarnation: u32, standing: Standing) -> Found {
        let header = Header {
            layout: Layout::Parity { chunk_pages: 1 },
            members: 3,
            member: 0,
            volume: 1,
            generation: 1,
            extent: ExtentId(0),
            run: 1,
            revision: 1,
            absent: 0,
            stream: Stream::Log,
            standing,
            incarnation,
        };
        Found::There { frontier: 1, header: Some(header) }
    }

    fn tellings<const MEMBERS: usize>(told: &[[u64; MEMBERS]; MEMBERS]) -> Tellings {
        let mut tellings = Tellings::new(MEMBERS);
        told.iter().enumerate().for_each(|(teller, told)| tellings.hear(teller, told));
        tellings
    }

    /// Returns the remaining state of the extents, and the tenures.
    fn left<const MEMBERS: usize>(
        told: &[[u64; MEMBERS]; MEMBERS],
        extents: &[[Found; MEMBERS]],
    ) -> (Vec<Vec<Found>>, Vec<u64>) {
        let mut found: Vec<Vec<Found>> = extents.iter().map(|found| found.to_vec()).collect();
        let known = incarnations(&found, &tellings(told));
        leave_out_former(&mut found, &known);
        (found, known.tenures)
    }

    #[test]
    fn former_are_those_of_which_others_know_a_later_tenure() {
        for (told, former) in [
            ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], 0),
            ([[5, 4, 5], [4, 5, 5], [4, 5, 5]], 0),
            ([[5, 4, 5], [4, 5, 5], [3, 3, 4]], 0b100),
            ([[0, 0, NEXT], [0, 0, 0], [0, 0, 9]], 0b100),
            ([[0, 0, NEXT], [0, 0, 0], [0, 0, NEXT + 1]], 0),
            // The first member is a former one, too.
            ([[0, 0, NEXT], [NEXT, 0, 0], [0, 0, 0]], 0b001),
            // No third member decides between the two.
            ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], 0),
        ] {
            assert_eq!(tellings(&told).former(0), former, "{told:?}");
        }
        assert_eq!(tellings(&[[0, NEXT], [NEXT, 0]]).former(0), 0);
        assert_eq!(tellings(&[[5, 6], [5, 5]]).former(0b10), 0, "what is not read may be later");
        assert_eq!(tellings(&[[5, NEXT], [5, 5]]).former(0b10), 0b10);
    }

    #[test]
    fn a_former_member_and_a_blank_one_have_nothing_and_are_the_next() {
        let (old, new) = (header(0), header(1));
        let told = &[[5, 5, NEXT], [5, 5, NEXT], [5, 5, 5]];
        let (found, tenures) = left(told, &[[old, old, old], [old, old, NOTHING]]);
        assert_eq!(found, [[old, old, DROPPED], [old, old, NOTHING]]);
        assert_eq!(tenures, [5, 5, 2 * NEXT]);
        let (found, tenures) = left(told, &[[old, old, NOTHING]; 2]);
        assert_eq!(found, [[old, old, NOTHING]; 2]);
        assert_eq!(tenures, [5, 5, 2 * NEXT]);
        // Of a member that is present, single headers may be old.
        let told = &[[5, 5, NEXT], [5, 5, NEXT], [5, 5, NEXT + 6]];
        let (found, tenures) = left(told, &[[old, old, old], [old, old, new]]);
        assert_eq!(found, [[old, old, DROPPED], [old, old, new]]);
        assert_eq!(tenures, [5, 5, NEXT]);
        // An older copy of the member.
        let told = &[[6, 6, 6], [6, 6, 6], [5, 5, 5]];
        let (found, tenures) = left(told, &[[old, old, old], [old, old, NOTHING]]);
        assert_eq!(found, [[old, old, DROPPED], [old, old, NOTHING]]);
        assert_eq!(tenures, [6, 6, NEXT]);
    }

    #[test]
    fn a_member_that_is_lost_while_its_headers_are_read_is_no_former_one() {
        let here = header(0);
        let told = &[[6, 6, 6], [6, 6, 6], [5, 5, 5]];
        let found = [[here, here, here], [here, here, Found::Gone]];
        assert_eq!(left(told, &found), (found.map(Vec::from).to_vec(), vec![6, 6, 6]));
    }

    #[test]
    fn what_cannot_be_read_of_a_member_is_in_doubt_only_if_it_is_listed() {
        let here = header(0);
        let unlisted = of_standing(0, Standing::Unlisted);
        let told = &[[0; 3]; 3];
        let (found, _) = left(told, &[[here, here, here], [here, here, Found::Unread]]);
        assert_eq!(found[1][2], Found::Unread);
        let (found, tenures) = left(told, &[[here, here, unlisted], [here, here, Found::Unread]]);
        assert_eq!((found[0][2], found[1][2]), (unlisted, DROPPED));
        assert_eq!(tenures, [0; 3]);
    }

    #[test]
    fn of_a_member_without_a_header_most_places_decide() {
        let here = header(0);
        let told = &[[0; 3]; 3];
        let (nothing, unread) = ([here, here, NOTHING], [here, here, Found::Unread]);
        let (found, tenures) = left(told, &[nothing, nothing, unread]);
        assert_eq!(found, [nothing, nothing, [here, here, DROPPED]]);
        assert_eq!(tenures, [0, 0, NEXT]);
        for places in [&[nothing, unread] as &[_], &[unread]] {
            let (found, tenures) = left(told, places);
            assert_eq!((found.last(), tenures), (Some(&unread.to_vec()), vec![0; 3]));
        }
    }

    #[test]
    fn of_a_new_volume_nobody_is_anything() {
        let (found, tenures) = left(&[[0; 2]; 2], &[[NOTHING, Found::Unread]]);
        assert_eq!((found[0][1], tenures), (Found::Unread, vec![0; 2]));
    }
}
