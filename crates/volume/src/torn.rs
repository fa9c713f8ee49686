//! Members that a power cut left with a hole before their frontier.
//!
//! When power fails during the append of a unit, any page of it may be present while the page
//! before it is missing. In a new stripe that loses nothing. But if the member was being filled or
//! brought up to date, the other members have the stripe, and it was synced. Everything before the
//! frontier counts as present, so the stripe would have no redundancy for the rest of the extent's
//! life.
//!
//! So recovery checks the last units. If a page there cannot be read but can be rebuilt, the member
//! is emptied and filled with the extent again, because nothing can be written before a frontier.
//! Recovery does not know which stripes were synced, and a rotted page looks like a hole: members
//! are refilled for these, too. That costs time, and must cost nothing else (docs/decisions/0023):
//!
//! - Before any decision, the members that take no writes are known, and members without holes are
//!   up to date.
//! - A member that takes no more writes counts as missing: it will be replaced.
//! - The data of a torn member is served until the member is emptied, one extent at a time.
//! - Just before that everything is checked again, and each page that the member has is rebuilt
//!   from the others. If one of them cannot be, the member keeps its data, including the hole, and
//!   is only brought up to date.
//!
//! Of several members the one with the least data is decided first: a member with a hole in a
//! synced stripe is not ahead of the others, which have that stripe.

use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError};
use runtime::{IoClass, join_all};

use crate::extents::{Presence, bit};
use crate::volume::{Inner, Taker};
use crate::{header, parity};

impl<M: Medium> Inner<M> {
    /// Brings those members that are in `whole` up to date with an extent. Marks members with a
    /// hole to be filled again, at most as many as the layout tolerates.
    pub(crate) async fn bring_in_line(
        self: &Rc<Self>,
        id: ExtentId,
        frontiers: &[u32],
        whole: u64,
    ) {
        let is_whole = |member: &usize| whole & bit(*member) != 0;
        let mut suspects = Vec::new();
        for member in (0..frontiers.len()).filter(is_whole) {
            let (taker, frontier) = (self.taker(member), frontiers[member]);
            let gaps = self.gaps(&taker, id, frontier).await;
            if gaps.is_empty() {
                self.catch_up(&taker, id, frontier).await;
            } else {
                suspects.push((frontier, taker, gaps));
            }
        }
        suspects.sort_by_key(|(frontier, ..)| *frontier);
        for (frontier, taker, gaps) in suspects {
            let is_torn = self.can_fill_any(&taker, id, &gaps).await;
            if is_torn && self.can_do_without(taker.index, id) {
                let rows = self.stripes.rows_begun(frontier);
                self.extents.borrow_mut().get_mut(id).on[taker.index] = Presence::Torn { rows };
            } else {
                self.count(|stats| stats.kept_holes += u64::from(is_torn));
                self.catch_up(&taker, id, frontier).await;
            }
        }
    }

    /// Whether an extent stays readable and can be appended to if this member is emptied and all
    /// members that take no more writes are replaced.
    fn can_do_without(&self, member: usize, id: ExtentId) -> bool {
        let out_of_service = self.all() & !self.writable();
        let missing = self.extents.borrow().get(id).missing();
        out_of_service & bit(member) == 0 && self.stands(missing | out_of_service | bit(member))
    }

    /// Returns the offsets of unreadable pages after the last unit that can be read completely.
    async fn gaps(&self, taker: &Taker<M>, id: ExtentId, frontier: u32) -> Vec<u32> {
        let shape = self.stripes.member_shape();
        let unit = shape.append_unit;
        let mut first = frontier.min(self.stripes.end_of_rows(self.stripes.rows()));
        let mut gaps = Vec::new();
        // The first unit is the header.
        while first > unit && self.stripes.spares() > 0 {
            first -= unit;
            let run = taker.medium.read_run(shape.page(id, first), unit, IoClass::Journal).await;
            let before = gaps.len();
            for (at, found) in (first..).zip(run) {
                match found {
                    Ok(_) => {}
                    Err(MediumError::Unreadable(_)) => gaps.push(at),
                    Err(_) => return Vec::new(),
                }
            }
            if gaps.len() == before {
                break;
            }
        }
        gaps
    }

    /// Whether the others can provide the member's page at any of these offsets.
    async fn can_fill_any(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, gaps: &[u32]) -> bool {
        for at in gaps {
            if self.rebuild_at(taker.index, id, *at).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Whether a member should be emptied and refilled with an extent, instead of only being
    /// brought up to date.
    pub(crate) async fn is_better_emptied(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId) -> bool {
        let Presence::Torn { rows } = self.extents.borrow().get(id).on[taker.index] else {
            return true;
        };
        self.can_do_without(taker.index, id)
            && self.others_have_all(taker, id, rows).await
            && self.can_do_without(taker.index, id)
    }

    /// Whether the others can provide all that a member has of the first `rows` stripes, with the
    /// same bytes. If the bytes differ, one member's page has rotted, and it is unknown here which.
    async fn others_have_all(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, rows: u32) -> bool {
        let shape = self.stripes.member_shape();
        for row in 0..rows {
            let places = self.stripes.end_of_rows(row)..self.stripes.end_of_rows(row + 1);
            let rebuilds = places.clone().map(|at| self.rebuild_at(taker.index, id, at));
            let rebuilt = join_all(rebuilds.collect::<Vec<_>>()).await;
            for (at, rebuilt) in places.zip(rebuilt) {
                let own = taker.medium.read(shape.page(id, at), IoClass::Journal).await;
                let can_be_emptied = match (own, rebuilt) {
                    (Ok(own), _) if header::is_lost(own.bytes()) => true,
                    (Ok(own), rebuilt) => {
                        rebuilt.is_ok_and(|other| parity::is_same(own.bytes(), other.bytes()))
                    }
                    // The member may have the only copy, and be able to read it later.
                    (Err(_), Err(_)) => !taker.medium.unreadable_is_lost(id),
                    (Err(_), Ok(_)) => true,
                };
                if !can_be_emptied {
                    return false;
                }
            }
        }
        true
    }
}
