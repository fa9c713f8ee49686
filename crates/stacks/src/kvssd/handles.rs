//! Numbers of iterator handles: a slot and the slot's generation.
//!
//! Pure arithmetic on the 32 bits that a completion has room for. The generations of a slot wrap
//! around; until then a destroyed handle is never mistaken for that of another iterator.

/// An open iterator, as the host knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IteratorHandle(u32);

/// The numbering of handles for a table of `slots` slots.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    slots: u32,
}

impl Numbering {
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots: slots.max(1) }
    }

    /// Returns the number of distinguishable generations of a slot.
    fn generations(self) -> u32 {
        u32::MAX / self.slots
    }

    /// Returns the first generation of slots in a power cycle: handles of the previous cycle must
    /// not be mistaken for handles of this one.
    pub(crate) fn first(self, power_cycle: u64) -> u32 {
        let generations = u64::from(self.generations());
        // The golden section of the range: multiples of such a step keep far apart.
        let step = (generations * 0x9E37_79B9) >> 32;
        (power_cycle.wrapping_mul(step) % generations) as u32
    }

    pub(crate) fn next(self, generation: u32) -> u32 {
        (generation + 1) % self.generations()
    }

    pub(crate) fn handle(self, slot: usize, generation: u32) -> IteratorHandle {
        assert!(slot < self.slots as usize, "slot {slot} of {}", self.slots);
        assert!(generation < self.generations(), "generation {generation} has no number");
        IteratorHandle(generation * self.slots + slot as u32)
    }

    /// Returns the slot and its generation. For a number that was never a handle the slot may not
    /// exist.
    pub(crate) fn parts(self, handle: IteratorHandle) -> (usize, u32) {
        ((handle.0 % self.slots) as usize, handle.0 / self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_can_be_taken_apart_again_also_when_generations_go_round() {
        for slots in [1, 2, 7, 16, 100, u32::MAX] {
            let numbering = Numbering::new(slots);
            let last = numbering.generations() - 1;
            assert_eq!(numbering.next(last), 0);
            for generation in [0, 1.min(last), last / 2, last] {
                for slot in [0, slots / 2, slots - 1] {
                    let handle = numbering.handle(slot as usize, generation);
                    assert_eq!(numbering.parts(handle), (slot as usize, generation));
                }
            }
        }
    }

    #[test]
    fn power_cycles_begin_far_apart() {
        let numbering = Numbering::new(16);
        let firsts: Vec<u32> = (1..50).map(|cycle| numbering.first(cycle)).collect();
        for (i, first) in firsts.iter().enumerate() {
            assert!(firsts[i + 1..].iter().all(|other| other.abs_diff(*first) > 100_000));
        }
        assert_eq!(Numbering::new(u32::MAX).first(9), 0, "there is one generation");
    }
}
