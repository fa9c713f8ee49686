//! A hierarchical timing wheel: things by when they are due, soonest first, those of one instant in
//! the order they came in.
//!
//! An instant is a number of eleven digits of six bits. What differs from the present in digit `n`, and
//! in none above, is listed in ring `n` under its own digit there: so the lowest ring in use, and in it
//! the lowest digit, has what comes next. When that is taken the present moves to it, and what was in
//! its list goes down to lower rings, which are empty then. Lists keep their order, and with it the
//! order of arrival. Cost: of entering, taking out and cancelling a few dozen instructions, however
//! many there are; each thing goes down as many times as there are digits in which it has company,
//! mostly once.

const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const RINGS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// Marks the end of a list of places.
const NONE: u32 = u32::MAX;

/// First and last place of a list; [`NONE`] both if it is empty.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// Where one thing stands, in a list of those that are due about the same time, or of free places.
struct Place<T> {
    due: u64,
    next: u32,
    previous: u32,
    /// Tells this life of the place from others.
    life: u32,
    thing: Option<T>,
}

/// Names what was entered, to cancel it.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    place: u32,
    life: u32,
}

/// See the module's documentation.
pub(crate) struct Wheel<T> {
    /// Nothing is due before it.
    present: u64,
    /// Bit `n`: ring `n` is in use.
    rings: u32,
    /// For each ring, the digits in use.
    digits: [u64; RINGS],
    lists: Box<[List]>,
    places: Vec<Place<T>>,
    /// The first free place.
    free: u32,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self {
            present: 0,
            rings: 0,
            digits: [0; RINGS],
            lists: vec![EMPTY; RINGS * DIGITS].into_boxed_slice(),
            places: Vec::new(),
            free: NONE,
        }
    }
}

impl<T> Wheel<T> {
    /// Enters what is due at `due`, which nothing that was taken out so far was due after.
    pub(crate) fn enter(&mut self, due: u64, thing: T) -> Ticket {
        assert!(due >= self.present, "the wheel has passed {due}");
        let place = self.free;
        let Some(free) = self.places.get_mut(place as usize) else {
            return self.enter_at_new_place(due, thing);
        };
        self.free = free.next;
        free.due = due;
        free.thing = Some(thing);
        let life = free.life;
        self.append(place, due);
        Ticket { place, life }
    }

    #[cold]
    fn enter_at_new_place(&mut self, due: u64, thing: T) -> Ticket {
        let place = self.places.len() as u32;
        assert!(place < NONE, "{place} timers wait");
        let (next, previous, life) = (NONE, NONE, 0);
        self.places.push(Place { due, next, previous, life, thing: Some(thing) });
        self.append(place, due);
        Ticket { place, life }
    }

    /// When the first is due.
    pub(crate) fn first_due(&self) -> Option<u64> {
        let (ring, digit) = self.first_list()?;
        let mut place = self.lists[ring * DIGITS + digit].first;
        let mut first = u64::MAX;
        while let Some(this) = self.places.get(place as usize) {
            first = first.min(this.due);
            place = this.next;
        }
        Some(first)
    }

    /// Takes out the first if it is due by `now`.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<T> {
        // What is due at the present has a list of its own.
        let own = now as usize % DIGITS;
        if now == self.present {
            return if self.digits[0] >> own & 1 == 0 { None } else { self.take_first(0, own) };
        }
        let due = self.first_due().filter(|due| *due <= now)?;
        let (ring, digit) = self.first_list()?;
        self.present = due;
        let list = self.lists[ring * DIGITS + digit];
        if ring == 0 || list.first == list.last {
            return self.take_first(ring, digit);
        }
        self.send_down(ring, digit);
        self.take_first(0, due as usize % DIGITS)
    }

    /// Takes back what was entered, unless it was taken out before.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.places.get(ticket.place as usize)?;
        if place.life != ticket.life || place.thing.is_none() {
            return None;
        }
        let (ring, digit) = self.list_of(place.due);
        self.take(ticket.place, ring, digit)
    }

    /// The ring and the digit of the list that something due then is in.
    fn list_of(&self, due: u64) -> (usize, usize) {
        let ring = ((due ^ self.present) | 1).ilog2() / DIGIT_BITS;
        (ring as usize, (due >> (ring * DIGIT_BITS)) as usize % DIGITS)
    }

    fn first_list(&self) -> Option<(usize, usize)> {
        let ring = self.rings.trailing_zeros() as usize;
        let digits = self.digits.get(ring)?;
        Some((ring, digits.trailing_zeros() as usize % DIGITS))
    }

    fn append(&mut self, place: u32, due: u64) {
        let (ring, digit) = self.list_of(due);
        self.rings |= 1 << ring;
        self.digits[ring] |= 1 << digit;
        let list = &mut self.lists[ring * DIGITS + digit];
        let last = std::mem::replace(&mut list.last, place);
        match self.places.get_mut(last as usize) {
            Some(last) => last.next = place,
            None => list.first = place,
        }
        let this = &mut self.places[place as usize];
        (this.previous, this.next) = (last, NONE);
    }

    /// The present has reached a list: what is in it belongs in lower rings now.
    fn send_down(&mut self, ring: usize, digit: usize) {
        let list = std::mem::replace(&mut self.lists[ring * DIGITS + digit], EMPTY);
        self.note_empty(ring, digit);
        let mut place = list.first;
        while place != NONE {
            let Place { due, next, .. } = self.places[place as usize];
            self.append(place, due);
            place = next;
        }
    }

    fn take_first(&mut self, ring: usize, digit: usize) -> Option<T> {
        self.take(self.lists[ring * DIGITS + digit].first, ring, digit)
    }

    /// Takes what is at `place` out of its list, and frees the place.
    fn take(&mut self, place: u32, ring: usize, digit: usize) -> Option<T> {
        let this = self.places.get_mut(place as usize)?;
        let thing = this.thing.take();
        let (previous, next) = (this.previous, this.next);
        this.life = this.life.wrapping_add(1);
        this.next = std::mem::replace(&mut self.free, place);
        let list = &mut self.lists[ring * DIGITS + digit];
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
        thing
    }

    fn note_empty(&mut self, ring: usize, digit: usize) {
        self.digits[ring] &= !(1 << digit);
        if self.digits[ring] == 0 {
            self.rings &= !(1 << ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// What a wheel should hold: when it is due, which number it came in with, and its ticket.
    type Held = Vec<(u64, u32, Ticket)>;

    fn first(held: &Held) -> Option<usize> {
        (0..held.len()).min_by_key(|at| (held[*at].0, held[*at].1))
    }

    /// Enters, cancels and takes out at random, with spans of `bits` bits; `slack` is how much later
    /// than the first one is due the clock may be.
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
                while let Some(number) = wheel.take_due(now) {
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
