//! Concurrent flushes: as many may run as memtables may be frozen.
//!
//! A flush writes its data, and its table if the index consists of tables, as soon as there is
//! space. It enters its entries into the index only after the memtables before it. The index
//! therefore receives memtables in the order in which they were frozen, newer entries over older
//! ones. While one memtable is merged, or waits to become durable, the pages of the next one are
//! written.
//!
//! Only the flush of the oldest memtable waits for space (docs/decisions/0010). A later flush uses
//! the space that a flush may use, if it exists and the earlier flushes have theirs. Whatever a
//! later flush holds, the space that the oldest one needs next was left free.

use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

use super::Front;
use crate::medium::Medium;
use crate::memtable::Write;
use crate::space::priority::{Claimant, Need};
use crate::space::promise::Promise;

/// The number of writes copied from a memtable in one step: about ten microseconds.
const WRITES_A_STEP: usize = 128;

/// The number of a flush, in the order in which the memtables are frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlushNo(u64);

/// The part of a flush that needs space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Objects.
    Data,
    /// A table of its own.
    Table,
}

/// The progress of flushes. Each count follows the order of their numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Order {
    begun: u64,
    /// The number of flushes that were promised space, by [`Part`].
    promised: [u64; 2],
}

/// The ways in which a flush may get its space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MayTake {
    /// None: an earlier flush has no space yet.
    Nothing,
    /// Only space that is available at once.
    WhatIsThere,
    /// All the space it needs, waiting for it.
    WhatItTakes,
}

impl Order {
    /// Returns the next flush to begin and the position of its memtable among the `frozen` ones;
    /// the first of these has number `done`.
    fn next(self, done: u64, frozen: usize) -> Option<(FlushNo, usize)> {
        assert!(done <= self.begun, "{done} flushes are done, and {} were begun", self.begun);
        let place = (self.begun - done) as usize;
        (place < frozen).then_some((FlushNo(self.begun), place))
    }

    fn may_take(self, flush: FlushNo, part: Part, done: u64) -> MayTake {
        let promised = self.promised[part as usize];
        assert!(promised <= flush.0, "flush {flush:?} asks for space twice");
        match () {
            () if promised < flush.0 => MayTake::Nothing,
            () if done < flush.0 => MayTake::WhatIsThere,
            () => MayTake::WhatItTakes,
        }
    }
}

/// The order of a store's flushes.
#[derive(Default)]
pub(crate) struct Flushes(Cell<Order>);

impl<M: Medium> Front<M> {
    /// Waits for a memtable that no flush has begun with. Returns its number and its writes.
    pub(crate) async fn begin_flush(&self) -> (FlushNo, Vec<Write>) {
        let next = || {
            let frozen = self.memtables.borrow().frozen.len();
            self.order.0.get().next(self.flushes.get(), frozen)
        };
        self.store.work.wait_until(|| self.store.is_healthy() && next().is_some()).await;
        let (flush, place) = next().expect("a memtable waits");
        let order = self.order.0.get();
        self.order.0.set(Order { begun: order.begun + 1, ..order });
        let memtable = Rc::clone(&self.memtables.borrow().frozen[place]);
        let mut writes: Vec<Write> = Vec::with_capacity(memtable.borrow().len());
        loop {
            let from =
                writes.last().map_or(Bound::Unbounded, |last| Bound::Excluded(&last.key[..]));
            let step = memtable.borrow().writes(from, WRITES_A_STEP);
            let is_last = step.len() < WRITES_A_STEP;
            writes.extend(step);
            if is_last {
                return (flush, writes);
            }
            self.store.handle.give_way().await;
        }
    }

    /// Waits for space for the data of a flush. See [`Self::promise_data`] for `pages` and
    /// `has_moved`.
    pub(crate) async fn promise_data_of(
        &self,
        flush: FlushNo,
        pages: u32,
        has_moved: impl Fn() -> bool,
    ) -> Promise<'_> {
        self.promise_part(flush, Part::Data, || Self::need_of_data(pages, &has_moved)).await
    }

    /// Waits for the space of one part of a flush. The flush holds only its memtable and its other
    /// parts meanwhile.
    pub(crate) async fn promise_part(
        &self,
        flush: FlushNo,
        part: Part,
        need: impl Fn() -> Need,
    ) -> Promise<'_> {
        let promise = loop {
            match self.order.0.get().may_take(flush, part, self.flushes.get()) {
                MayTake::WhatItTakes => break self.wait_for_space(need).await,
                MayTake::WhatIsThere => {
                    let Need { stream, pages, .. } = need();
                    let promise = self.store.try_promise(stream, pages, Claimant::Flush);
                    if let Some(promise) = promise {
                        break promise;
                    }
                }
                MayTake::Nothing => {}
            }
            self.store.work.notified().await;
        };
        let mut order = self.order.0.get();
        order.promised[part as usize] = flush.0 + 1;
        self.order.0.set(order);
        if order.begun > flush.0 + 1 {
            self.store.work.notify_all(); // later flushes may have waited for this
        }
        promise
    }

    /// Waits until every memtable before that of `flush` is in the index.
    pub(crate) async fn wait_for_turn(&self, flush: FlushNo) {
        self.store.work.wait_until(|| self.flushes.get() == flush.0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{FlushNo, MayTake, Order, Part};

    #[test]
    fn memtables_are_taken_in_the_order_in_which_they_were_frozen() {
        let order = Order { begun: 7, ..Order::default() };
        assert_eq!(order.next(7, 0), None);
        assert_eq!(order.next(7, 1), Some((FlushNo(7), 0)));
        assert_eq!(order.next(6, 1), None, "the one that is frozen is in hand");
        assert_eq!(order.next(6, 2), Some((FlushNo(7), 1)));
        assert_eq!(order.next(5, 3), Some((FlushNo(7), 2)));
    }

    #[test]
    fn only_the_oldest_waits_for_space_and_nobody_overtakes() {
        let order = Order { begun: 9, promised: [8, 7] };
        assert_eq!(order.may_take(FlushNo(7), Part::Table, 7), MayTake::WhatItTakes);
        assert_eq!(order.may_take(FlushNo(7), Part::Table, 6), MayTake::WhatIsThere);
        assert_eq!(order.may_take(FlushNo(8), Part::Table, 6), MayTake::Nothing);
        assert_eq!(order.may_take(FlushNo(8), Part::Data, 6), MayTake::WhatIsThere);
    }
}
