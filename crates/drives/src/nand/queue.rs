//! The queue of operations that wait for a die or a channel.

use std::collections::VecDeque;

use runtime::Priority;

/// First come, first served within each priority.
pub(crate) struct PriorityQueue<T> {
    lanes: [VecDeque<T>; 3],
}

impl<T> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self { lanes: Default::default() }
    }
}

impl<T> PriorityQueue<T> {
    pub(crate) fn push(&mut self, priority: Priority, item: T) {
        self.lanes[priority as usize].push_back(item);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    /// Removes the oldest item of the most urgent priority.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(crate) fn pop_of(&mut self, priority: Priority) -> Option<T> {
        self.lanes[priority as usize].pop_front()
    }

    /// Removes the oldest item of `priority` that `may_go`. Searches up to and including the first
    /// item that `blocks`.
    pub(crate) fn pop_first(
        &mut self,
        priority: Priority,
        may_go: impl Fn(&T) -> bool,
        blocks: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let lane = &mut self.lanes[priority as usize];
        let place = lane.iter().position(|item| may_go(item) || blocks(item))?;
        if may_go(&lane[place]) { lane.remove(place) } else { None }
    }

    /// Moves a prefetch to the end of the demand queue, and returns it, if found.
    pub(crate) fn promote(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let place = self.lanes[Priority::Prefetch as usize].iter().position(is_it)?;
        let item = self.lanes[Priority::Prefetch as usize].remove(place)?;
        let demand = &mut self.lanes[Priority::Demand as usize];
        demand.push_back(item);
        demand.back()
    }

    pub(crate) fn peek_of(&self, priority: Priority) -> Option<&T> {
        self.lanes[priority as usize].front()
    }
}
