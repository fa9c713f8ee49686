//! The random plan of a run: the faults of members, and the end of the run.

use std::fmt;

use faultfs::{Fails, Kind};
use runtime::Rng;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// An event at some members.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Requests fail.
    Fail(Vec<usize>, Fails),
    /// The disk has only this many free bytes.
    Fill(Vec<usize>, u64),
    /// All faults end.
    Mend,
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Clients stop, and then the store is closed or dropped.
    Quiet { mends: bool, closes: bool },
    /// The power of the members is cut, each at a time in milliseconds.
    Cut(Vec<(u64, usize)>),
    /// The process is killed.
    Kill,
}

/// The faults of one run.
#[derive(Clone)]
pub(crate) struct Plan {
    /// The member that is away.
    pub away: Option<usize>,
    /// The member whose pages are blank.
    pub blank: Option<usize>,
    /// Members whose power fails during opening, each after a number of requests.
    pub cut_in_opening: Vec<(usize, u64)>,
    /// The size of each file, in bytes.
    pub capacity: u64,
    pub at_first: Vec<Step>,
    /// Each with its time in milliseconds.
    pub steps: Vec<(u64, Step)>,
    pub length: u64,
    pub ending: Ending,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { away, blank, cut_in_opening, capacity, at_first, steps, length, ending } = self;
        write!(f, "{} MiB", capacity >> 20)?;
        for (what, member) in [("away", away), ("blank", blank)] {
            member.map_or(Ok(()), |member| write!(f, ", {member} is {what}"))?;
        }
        if !cut_in_opening.is_empty() {
            write!(f, ", cut in the opening after {cut_in_opening:?}")?;
        }
        write!(f, ", at first {at_first:?}, then {steps:?}, after {length} ms {ending:?}")
    }
}

/// Returns one member, two, or all of them.
fn some_of(members: usize, rng: &mut Rng) -> Vec<usize> {
    let first = rng.below(members as u64) as usize;
    let count = [1, 1, 1, 2, 2, members][rng.below(6) as usize].min(members);
    (0..count).map(|n| (first + n) % members).collect()
}

fn fails(rng: &mut Rng, is_at_first: bool) -> Fails {
    use Kind::{Discard, Name, Read, Sync, Write};
    let kind = [Read, Read, Write, Write, Sync, Sync, Name, Discard][rng.below(8) as usize];
    let lacks_room = match kind {
        Write => rng.chance(0.35),
        Sync | Name => rng.chance(0.15),
        Read | Discard => false,
    };
    let most = match (kind, is_at_first) {
        (Name, _) => 8,
        (Sync, true) => 30,
        (_, true) => [10, 100, 600][rng.below(3) as usize],
        (_, false) => [1, 20][rng.below(2) as usize],
    };
    let times = [1, 3, 30, u64::MAX][rng.below(4) as usize];
    Fails { kind, after: rng.below(most), times, errno: if lacks_room { ENOSPC } else { EIO } }
}

fn step(members: usize, rng: &mut Rng, is_at_first: bool) -> Step {
    let members = some_of(members, rng);
    match rng.below(10) {
        0 | 1 => Step::Fill(members, rng.below(3) * rng.below(1 << 20)),
        _ => Step::Fail(members, fails(rng, is_at_first)),
    }
}

impl Plan {
    /// Draws a plan for a store over `members` members. A member may be away or blank only if the
    /// others are complete (`is_whole`). A member that was `replaced` before is blank more often,
    /// so that former contents return.
    pub(crate) fn draw(
        members: usize,
        (is_whole, replaced): (bool, Option<usize>),
        capacity: u64,
        rng: &mut Rng,
    ) -> Self {
        let length = [10, 40, 100, 200][rng.below(4) as usize];
        let one = rng.below(members as u64) as usize;
        let (away, blank) = match rng.below(8) {
            0 if is_whole => (Some(one), None),
            1 | 2 if is_whole => (None, Some(one)),
            3 | 4 if is_whole => (None, replaced),
            _ => (None, None),
        };
        let mut plan = Self {
            away,
            blank,
            cut_in_opening: Vec::new(),
            capacity: if rng.chance(0.1) { capacity + (32 << 20) } else { capacity },
            at_first: Vec::new(),
            steps: Vec::new(),
            length,
            ending: Self::ending(members, rng),
        };
        if rng.chance(0.1) {
            let most = [20, 200][rng.below(2) as usize];
            plan.cut_in_opening = (0..members).map(|it| (it, 1 + rng.below(most))).collect();
        }
        if rng.chance(0.2) {
            return plan;
        }
        for _ in 0..=rng.below(3) {
            if rng.chance(0.3) {
                plan.at_first.push(step(members, rng, true));
                continue;
            }
            let at = rng.below(length);
            plan.steps.push((at, step(members, rng, false)));
            if rng.chance(0.4) {
                plan.steps.push((at + rng.below(length), Step::Mend));
            }
        }
        plan.steps.sort_by_key(|(at, _)| *at);
        plan
    }

    fn ending(members: usize, rng: &mut Rng) -> Ending {
        match rng.below(10) {
            0..4 => Ending::Quiet { mends: rng.chance(0.7), closes: rng.chance(0.5) },
            4..8 => {
                let apart = [0, 2, 20][rng.below(3) as usize];
                let mut moments: Vec<_> =
                    (0..members).map(|member| (rng.below(apart + 1), member)).collect();
                moments.sort_unstable();
                Ending::Cut(moments)
            }
            _ => Ending::Kill,
        }
    }

    /// Returns all steps, including the initial ones.
    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.at_first.iter().chain(self.steps.iter().map(|(_, step)| step))
    }
}

/// The faults of a run so far.
#[derive(Clone, Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(crate) struct Harm {
    /// Members that had a fault.
    pub members: Vec<usize>,
    /// Whether there was any fault.
    pub any: bool,
    /// Whether a disk was full.
    pub lacks_room: bool,
    /// Whether there was a fault with permanent effect on a store of one file: a failed write or
    /// sync.
    pub for_good: bool,
    /// Whether some pages may be unreadable.
    pub unreadable: bool,
    /// Whether all members were complete when the store was opened.
    pub was_whole: bool,
}

impl Harm {
    pub(crate) fn of_members(&mut self, members: &[usize]) {
        self.any = true;
        for member in members {
            if !self.members.contains(member) {
                self.members.push(*member);
            }
        }
    }

    pub(crate) fn add(&mut self, step: &Step) {
        match step {
            Step::Fail(members, fails) => {
                self.of_members(members);
                let waits = fails.kind == Kind::Write && fails.errno == ENOSPC;
                self.lacks_room |= fails.errno == ENOSPC;
                self.for_good |= matches!(fails.kind, Kind::Write | Kind::Sync) && !waits;
                self.unreadable |= fails.kind == Kind::Read;
            }
            Step::Fill(members, _) => {
                self.of_members(members);
                self.lacks_room = true;
            }
            Step::Mend => {}
        }
    }

    /// Records that the power of a member fails, or is about to.
    pub(crate) fn of_power(&mut self, member: usize) {
        self.of_members(&[member]);
        (self.for_good, self.unreadable) = (true, true);
    }

    /// Whether redundancy hides the faults from callers.
    fn is_borne(&self, of: usize) -> bool {
        of > 1 && self.was_whole && self.members.len() < 2 && !self.lacks_room
    }

    /// Whether callers may receive errors.
    pub(crate) fn may_show(&self, of: usize) -> bool {
        self.any && !self.is_borne(of)
    }

    /// Whether the same handle must take writes again once all faults have ended.
    ///
    /// If background work met an unreadable page, the store takes no writes until it is reopened.
    pub(crate) fn passes(&self, of: usize) -> bool {
        !(self.for_good || self.unreadable) || self.is_borne(of)
    }
}
