//! A hierarchical timing wheel: items in order of due time, and for equal due times in order of
//! entry.
//!
//! An instant is a number of eleven digits of six bits. An item whose due time differs from the
//! present in digit `n`, and in no higher digit, is in ring `n`, in the list of its own digit
//! there. So the next item is in the lowest ring in use, in the list of the lowest digit. When the
//! present reaches a list, its items move down to lower rings. A list of a low ring, which usually
//! has few items, is instead sorted as a whole, and items are taken from there. Entering, removing
//! and cancelling an item cost a few dozen instructions, however many items there are.

const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const RINGS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// Marks the end of a list of places.
const NONE: u32 = u32::MAX;

/// Lists of this many lowest rings, which span up to four microseconds each, are sorted as a whole.
const NEAR_RINGS: usize = 3;

/// The maximum number of items that are kept sorted, unless they are due at the same instant.
const MOST_NEAR: usize = 64;

/// The first and last place of a list; both are [`NONE`] if it is empty.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// The place of one item: near, in a list, or free.
struct Place<T> {
    due: u64,
    next: u32,
    previous: u32,
    /// Distinguishes this use of the place from earlier and later ones.
    life: u32,
    thing: Option<T>,
}

/// Identifies an item, to cancel it.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    place: u32,
    life: u32,
}

/// See the module's documentation.
pub(crate) struct Wheel<T> {
    /// The due times and places of all items up to `horizon`; the next item is last.
    near: Vec<(u64, u32)>,
    /// Items due after it are in lists; items due by then are near.
    horizon: u64,
    /// The horizon may go back to this instant at most: the ring and digit of listed items are the
    /// same as seen from there.
    floor: u64,
    /// Bit `n` is set if ring `n` is in use.
    rings: u32,
    /// For each ring, the digits in use.
    digits: [u64; RINGS],
    lists: Box<[[List; DIGITS]; RINGS]>,
    places: Vec<Place<T>>,
    /// The first free place.
    free: u32,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            horizon: 0,
            floor: 0,
            rings: 0,
            digits: [0; RINGS],
            lists: Box::new([[EMPTY; DIGITS]; RINGS]),
            places: Vec::new(),
            free: NONE,
        }
    }
}

impl<T> Wheel<T> {
    /// Enters an item that is due at `due`.
    #[inline]
    pub(crate) fn enter(&mut self, due: u64, thing: T) -> Ticket {
        let place = self.free;
        let Some(free) = self.places.get_mut(place as usize) else {
            return self.enter_at_new_place(due, thing);
        };
        self.free = free.next;
        free.due = due;
        free.thing = Some(thing);
        let life = free.life;
        self.sort_in(place, due);
        Ticket { place, life }
    }

    #[cold]
    fn enter_at_new_place(&mut self, due: u64, thing: T) -> Ticket {
        let place = self.places.len() as u32;
        assert!(place < NONE, "{place} timers wait");
        let (next, previous, life) = (NONE, NONE, 0);
        self.places.push(Place { due, next, previous, life, thing: Some(thing) });
        self.sort_in(place, due);
        Ticket { place, life }
    }

    /// Returns the due time of the first item.
    #[inline]
    pub(crate) fn first_due(&mut self) -> Option<u64> {
        if self.near.is_empty() {
            self.reach_next_list();
        }
        self.near.last().map(|(due, _)| *due)
    }

    /// Removes the first item if it is due by `now` and was near when [`Self::first_due`] was
    /// called.
    #[inline]
    pub(crate) fn take_due(&mut self, now: u64) -> Option<T> {
        let (_, place) = self.near.pop_if(|(due, _)| *due <= now)?;
        self.free_place(place)
    }

    /// Removes an item, unless it was already removed.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.places.get(ticket.place as usize)?;
        if place.life != ticket.life || place.thing.is_none() {
            return None;
        }
        if place.due <= self.horizon {
            self.near.retain(|(_, place)| *place != ticket.place);
        } else {
            self.unlink(ticket.place);
        }
        self.free_place(ticket.place)
    }

    fn free_place(&mut self, place: u32) -> Option<T> {
        let this = &mut self.places[place as usize];
        this.life = this.life.wrapping_add(1);
        this.next = std::mem::replace(&mut self.free, place);
        this.thing.take()
    }

    #[inline]
    fn sort_in(&mut self, place: u32, due: u64) {
        if due <= self.horizon {
            self.sort_near(place, due);
        } else {
            self.append(place, due);
        }
    }

    /// Inserts a place among the near items, before all items that are due by then.
    #[inline]
    fn sort_near(&mut self, place: u32, due: u64) {
        let mut at = self.near.len();
        self.near.push((due, place));
        while at > 0 && self.near[at - 1].0 <= due {
            self.near[at] = self.near[at - 1];
            at -= 1;
        }
        self.near[at] = (due, place);
        if self.near.len() > MOST_NEAR {
            self.spill();
        }
    }

    /// Reduces the number of near items: all but those that are due first move back to lists.
    #[cold]
    fn spill(&mut self) {
        let Some((first, _)) = self.near.last().copied().filter(|(due, _)| *due >= self.floor)
        else {
            return;
        };
        (self.floor, self.horizon) = (first, first);
        let count = self.near.partition_point(|(due, _)| *due > first);
        let listed: Vec<_> = self.near.drain(..count).collect();
        for (due, place) in listed.into_iter().rev() {
            self.append(place, due);
        }
    }

    /// Returns the ring and the digit of the list for an item due after the horizon.
    fn list_of(&self, due: u64) -> (usize, usize) {
        let ring = ((due ^ self.horizon) | 1).ilog2() / DIGIT_BITS;
        (ring as usize, (due >> (ring * DIGIT_BITS)) as usize % DIGITS)
    }

    fn append(&mut self, place: u32, due: u64) {
        let (ring, digit) = self.list_of(due);
        self.rings |= 1 << ring;
        self.digits[ring] |= 1 << digit;
        let list = &mut self.lists[ring][digit];
        let last = std::mem::replace(&mut list.last, place);
        match self.places.get_mut(last as usize) {
            Some(last) => last.next = place,
            None => list.first = place,
        }
        let this = &mut self.places[place as usize];
        (this.previous, this.next) = (last, NONE);
    }

    fn unlink(&mut self, place: u32) {
        let Place { due, previous, next, .. } = self.places[place as usize];
        let (ring, digit) = self.list_of(due);
        let list = &mut self.lists[ring][digit];
        match self.places.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => list.first = next,
        }
        match self.places.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => list.last = previous,
        }
        if list.first == NONE {
            self.note_empty(ring, digit);
        }
    }

    fn note_empty(&mut self, ring: usize, digit: usize) {
        self.digits[ring] &= !(1 << digit);
        if self.digits[ring] == 0 {
            self.rings &= !(1 << ring);
        }
    }

    /// Moves the items of the first list, if any: they become near, or move down to lower rings.
    fn reach_next_list(&mut self) {
        while self.near.is_empty() && self.rings != 0 {
            let ring = self.rings.trailing_zeros() as usize;
            let digit = self.digits[ring].trailing_zeros() as usize;
            let list = std::mem::replace(&mut self.lists[ring][digit], EMPTY);
            self.note_empty(ring, digit);
            (self.floor, self.horizon) = if ring < NEAR_RINGS {
                let first = self.places[list.first as usize].due;
                let below = (1 << (ring as u32 * DIGIT_BITS)) - 1;
                (first & !below, first | below)
            } else {
                let first = self.first_of(list);
                (first, first)
            };
            let mut place = list.first;
            while place != NONE {
                let Place { due, next, .. } = self.places[place as usize];
                self.sort_in(place, due);
                place = next;
            }
        }
    }

    /// Returns the earliest due time in a list.
    fn first_of(&self, list: List) -> u64 {
        let mut place = list.first;
        let mut first = u64::MAX;
        while let Some(this) = self.places.get(place as usize) {
            first = first.min(this.due);
            place = this.next;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// The expected contents of a wheel: due time, order of entry and ticket.
    type Held = Vec<(u64, u32, Ticket)>;

    fn first(held: &Held) -> Option<usize> {
        (0..held.len()).min_by_key(|at| (held[*at].0, held[*at].1))
    }

    /// Enters, cancels and removes items at random, with spans of `bits` bits; the clock may be up
    /// to `slack` later than the first due time.
    fn drive(seed: u64, bits: u64, slack: u64) {
        let (mut rng, mut wheel, mut held) = (Rng::new(seed), Wheel::default(), Held::new());
        let (mut now, mut taken) = (0_u64, 0);
        for number in 0..4000_u32 {
            for _ in 0..rng.below(3) {
                let span = rng.next_u64() >> (64 - bits) >> rng.below(bits);
                let due = now.saturating_add(span);
                held.push((due, number, wheel.enter(due, number)));
            }
            if rng.chance(0.2) && !held.is_empty() {
                let (_, number, ticket) = held.remove(rng.below(held.len() as u64) as usize);
                assert_eq!(wheel.cancel(ticket), Some(number));
                assert_eq!(wheel.cancel(ticket), None, "it was taken back before");
            }
            let due = first(&held).map(|at| held[at].0);
            assert_eq!(wheel.first_due(), due);
            if rng.chance(0.6)
                && let Some(due) = due
            {
                assert!(due == now || wheel.take_due(now.min(due - 1)).is_none());
                now = now.max(due).saturating_add(rng.below(slack + 1));
                while wheel.first_due().is_some_and(|due| due <= now) {
                    let number = wheel.take_due(now).expect("one is due");
                    let at = first(&held).expect("the wheel has no more than it was given");
                    let (due, expected, ticket) = held.remove(at);
                    assert!(due <= now && number == expected && wheel.cancel(ticket).is_none());
                    taken += 1;
                }
                assert!(held.iter().all(|(due, ..)| *due > now));
            }
        }
        assert!(taken > 1000, "{taken} were taken");
    }

    #[test]
    fn what_is_due_first_comes_out_first_and_of_one_instant_what_came_first() {
        for seed in 0..20 {
            drive(seed, 4 + seed % 4 * 5, 0);
            drive(seed, 4 + seed % 4 * 5, 300);
        }
        drive(1, 58, 1 << 40);
    }

    #[test]
    fn many_things_within_a_microsecond_keep_their_order() {
        for span in [1, 50, 3000, 100_000] {
            let (mut rng, mut wheel) = (Rng::new(span), Wheel::default());
            let mut expected: Vec<_> = (0..3000_u32).map(|n| (rng.below(span), n)).collect();
            for (due, number) in &expected {
                wheel.enter(*due, *number);
            }
            let mut taken = Vec::new();
            while let Some(due) = wheel.first_due() {
                while let Some(number) = wheel.take_due(due) {
                    taken.push((due, number));
                    if rng.chance(0.5) {
                        let (due, number) = (due + rng.below(span), expected.len() as u32);
                        expected.push((due, number));
                        wheel.enter(due, number);
                    }
                }
            }
            expected.sort_unstable();
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn the_end_of_time_has_its_place() {
        let mut wheel = Wheel::default();
        for due in [u64::MAX, 1 << 63, u64::MAX, 0] {
            wheel.enter(due, due);
        }
        let mut taken = Vec::new();
        while let Some(due) = wheel.first_due() {
            taken.extend(wheel.take_due(due));
        }
        assert_eq!(taken, [0, 1 << 63, u64::MAX, u64::MAX]);
    }
}
