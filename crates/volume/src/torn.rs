//! Members that a power cut left with a hole in front of their frontier.
//!
//! Of a unit that is being appended when power fails any page may be there, and not the one in front of it.
//! No one misses it in a stripe that is new. But when a member is filled, or brought up to date, that is
//! a stripe which the others have, and which was synced: what lies in front of the frontier is taken to be
//! there, so the stripe would be without redundancy for as long as the extent lives.
//!
//! So the last units are looked at. A member of which a page there cannot be read, but be rebuilt, counts
//! as without the extent, and is filled with it again from the beginning, because nothing can be written
//! in front of a frontier. Which stripes were synced is not known here: members are filled again for
//! stripes that were not, too. That costs time, and should cost nothing else: a member that has a page
//! which others cannot give keeps it, and its hole. A page that rotted there is not told apart from a hole: if
//! another member is lost before it is filled again, that is one too many (docs/todo.md). Of several members those that are written least go first: one
//! with a hole in a stripe that was synced is not ahead of the others, which have that stripe.

use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError};
use runtime::{IoClass, join_all};

use crate::extents::{Presence, bit};
use crate::header;
use crate::volume::{Condition, Inner, Taker};

impl<M: Medium> Inner<M> {
    /// The members, of those that are `whole`, that are to be filled with an extent again; they count as
    /// without it when this returns. Never more than the layout stands.
    pub(crate) async fn torn(self: &Rc<Self>, id: ExtentId, frontiers: &[u32], whole: u64) -> u64 {
        let is_whole = |member: &usize| whole & bit(*member) != 0;
        let mut members: Vec<usize> = (0..frontiers.len()).filter(is_whole).collect();
        members.sort_by_key(|member| frontiers[*member]);
        let mut torn = 0;
        for member in members {
            let (taker, frontier) = (self.taker(member), frontiers[member]);
            if self.can_do_without(member, id)
                && self.has_hole(&taker, id, frontier).await
                && self.others_have_all(&taker, id, frontier).await
                && self.can_do_without(member, id)
            {
                self.extents.borrow_mut().get_mut(id).on[member] = Presence::Absent;
                self.count(|stats| stats.stale_extents += 1);
                torn |= bit(member);
            }
        }
        torn
    }

    /// Whether a member can be filled with an extent again.
    fn can_do_without(&self, member: usize, id: ExtentId) -> bool {
        let missing = self.extents.borrow().get(id).missing();
        missing & bit(member) == 0
            && self.stands(missing | bit(member))
            && self.condition(member) == Condition::Serving
    }

    /// Whether a page is not there that others can give, behind the last unit that can be read in full.
    async fn has_hole(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, frontier: u32) -> bool {
        let shape = self.stripes.member_shape();
        let unit = shape.append_unit;
        let mut first = frontier.min(self.stripes.end_of_rows(self.stripes.rows()));
        // The first unit is the header.
        while first > unit {
            first -= unit;
            let run = taker.medium.read_run(shape.page(id, first), unit, IoClass::Journal).await;
            if run.iter().all(Result::is_ok) {
                return false;
            }
            for (at, found) in (first..).zip(run) {
                match found {
                    Ok(_) => {}
                    Err(MediumError::Unreadable(_)) => {
                        if self.rebuild_at(taker.index, id, at).await.is_ok() {
                            return true;
                        }
                    }
                    Err(_) => return false,
                }
            }
        }
        false
    }

    /// Whether others can give all that a member has of an extent.
    async fn others_have_all(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        frontier: u32,
    ) -> bool {
        let shape = self.stripes.member_shape();
        for row in 0..self.stripes.rows_begun(frontier) {
            let places = self.stripes.end_of_rows(row)..self.stripes.end_of_rows(row + 1);
            let rebuilds = places.clone().map(|at| self.rebuild_at(taker.index, id, at));
            let rebuilt = join_all(rebuilds.collect::<Vec<_>>()).await;
            for (at, rebuilt) in places.zip(rebuilt) {
                if rebuilt.is_ok() {
                    continue;
                }
                let own = taker.medium.read(shape.page(id, at), IoClass::Journal).await;
                if own.is_ok_and(|image| !header::is_lost(image.bytes())) {
                    return false;
                }
            }
        }
        true
    }
}
