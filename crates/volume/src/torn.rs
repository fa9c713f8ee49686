//! Members that a power cut left with a hole in front of their frontier.
//!
//! Of a unit that is being appended when power fails any page may be there, and not the one in front of it.
//! No one misses it in a stripe that is new. But when a member is filled, or brought up to date, that is
//! a stripe which the others have, and which was synced: what lies in front of the frontier is taken to be
//! there, so the stripe would be without redundancy for as long as the extent lives.
//!
//! So the last units are looked at. A member of which a page there cannot be read, but be rebuilt, is
//! emptied and filled with the extent again, because nothing can be written in front of a frontier. Which
//! stripes were synced is not known here, and a page that rotted there looks like a hole: members are
//! filled again for these, too. That costs time, and must cost nothing else (docs/decisions/0023):
//!
//! - Before anything is decided all members have said whether they take writes, and those without
//!   holes are up to date.
//! - Whoever takes no more writes counts as missing: it will be replaced.
//! - What a torn member has is served until it is emptied, one extent after the other.
//! - Just before that all is looked at again, and every page that it has is read from the others. If
//!   one is not there, the member keeps what it has, hole and all, and is brought up to date only.
//!
//! Of several members those that are written least go first: one with a hole in a stripe that was
//! synced is not ahead of the others, which have that stripe.

use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError};
use runtime::{IoClass, join_all};

use crate::extents::{Presence, bit};
use crate::header;
use crate::parity;
use crate::volume::{Inner, Taker};

impl<M: Medium> Inner<M> {
    /// Brings the members, of those that are `whole`, up to date with an extent; those with a hole are to be
    /// filled with it again. Never more of them than the layout stands.
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

    /// Whether an extent stays readable, and can be appended to, if a member is emptied and all those are
    /// replaced that take no more writes.
    fn can_do_without(&self, member: usize, id: ExtentId) -> bool {
        let out_of_service = self.all() & !self.writable();
        let missing = self.extents.borrow().get(id).missing();
        out_of_service & bit(member) == 0 && self.stands(missing | out_of_service | bit(member))
    }

    /// Places that cannot be read, behind the last unit that can be read in full.
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

    /// Whether others can give what a member should have at one of these places.
    async fn can_fill_any(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, gaps: &[u32]) -> bool {
        for at in gaps {
            if self.rebuild_at(taker.index, id, *at).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Whether a member is to be emptied in order to be filled with an extent again, and not just to be
    /// brought up to date.
    pub(crate) async fn is_better_emptied(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId) -> bool {
        let Presence::Torn { rows } = self.extents.borrow().get(id).on[taker.index] else {
            return true;
        };
        self.can_do_without(taker.index, id)
            && self.others_have_all(taker, id, rows).await
            && self.can_do_without(taker.index, id)
    }

    /// Whether others can give all that a member has of the first `rows` stripes of an extent, just as it
    /// has it. If they differ, one of them has rotted, and nobody knows here which.
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
                    // It may be the only one that has it, and read it another time.
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
