//! Serialization of state, in which one list of fields defines both directions.
//!
//! A type carries each of its fields with the [`Carrier`] that is passed in. On the way out the
//! field is written, on the way back it is set, so the two directions cannot disagree about the
//! order of fields. Numbers are little-endian. On the way back, every step returns `None` if the
//! bytes are not valid output of this code.

use std::cell::Cell;

use crate::Nanos;

/// Carries fields out to bytes, or back from them.
pub struct Carrier<'a> {
    way: Way<'a>,
}

enum Way<'a> {
    Out(&'a mut Vec<u8>),
    Back(&'a [u8]),
}

impl<'a> Carrier<'a> {
    /// Creates a carrier that appends fields to `bytes`.
    pub fn out(bytes: &'a mut Vec<u8>) -> Self {
        Self { way: Way::Out(bytes) }
    }

    /// Creates a carrier that sets fields from `bytes`, in order.
    pub fn back(bytes: &'a [u8]) -> Self {
        Self { way: Way::Back(bytes) }
    }

    /// Whether fields are set, not written.
    pub fn is_back(&self) -> bool {
        matches!(self.way, Way::Back(_))
    }

    /// Whether all bytes were consumed on the way back. Always true on the way out.
    pub fn is_at_end(&self) -> bool {
        match &self.way {
            Way::Out(_) => true,
            Way::Back(bytes) => bytes.is_empty(),
        }
    }

    fn array<const N: usize>(&mut self, value: &mut [u8; N]) -> Option<()> {
        match &mut self.way {
            Way::Out(bytes) => bytes.extend_from_slice(value),
            Way::Back(bytes) => {
                let (head, rest) = bytes.split_first_chunk::<N>()?;
                (*value, *bytes) = (*head, rest);
            }
        }
        Some(())
    }

    /// Carries a byte.
    pub fn u8(&mut self, value: &mut u8) -> Option<()> {
        let mut bytes = [*value];
        self.array(&mut bytes)?;
        [*value] = bytes;
        Some(())
    }

    /// Carries a number in four bytes.
    pub fn u32(&mut self, value: &mut u32) -> Option<()> {
        let mut bytes = value.to_le_bytes();
        self.array(&mut bytes)?;
        *value = u32::from_le_bytes(bytes);
        Some(())
    }

    /// Carries a number in eight bytes.
    pub fn u64(&mut self, value: &mut u64) -> Option<()> {
        let mut bytes = value.to_le_bytes();
        self.array(&mut bytes)?;
        *value = u64::from_le_bytes(bytes);
        Some(())
    }

    /// Carries a `usize`, in eight bytes.
    pub fn usize(&mut self, value: &mut usize) -> Option<()> {
        let mut wide = *value as u64;
        self.u64(&mut wide)?;
        *value = usize::try_from(wide).ok()?;
        Some(())
    }

    /// Carries a floating-point number, bit for bit.
    pub fn f64(&mut self, value: &mut f64) -> Option<()> {
        let mut bits = value.to_bits();
        self.u64(&mut bits)?;
        *value = f64::from_bits(bits);
        Some(())
    }

    /// Carries a flag, in one byte.
    pub fn bool(&mut self, value: &mut bool) -> Option<()> {
        let mut byte = u8::from(*value);
        self.u8(&mut byte)?;
        *value = match byte {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(())
    }

    /// Carries an instant or a span.
    pub fn nanos(&mut self, value: &mut Nanos) -> Option<()> {
        self.u64(&mut value.0)
    }

    /// Carries a byte string. On the way out it writes and returns `value`; on the way back it
    /// returns a slice of the input.
    pub fn string<'b>(&mut self, value: &'b [u8]) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        let mut len = u32::try_from(value.len()).ok()?;
        self.u32(&mut len)?;
        match &mut self.way {
            Way::Out(bytes) => {
                bytes.extend_from_slice(value);
                Some(value)
            }
            Way::Back(bytes) => {
                let (head, rest) = bytes.split_at_checked(len as usize)?;
                *bytes = rest;
                Some(head)
            }
        }
    }

    /// Carries a list; `each` carries one element.
    pub fn list<T: Default>(
        &mut self,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T) -> Option<()>,
    ) -> Option<()> {
        let mut len = u32::try_from(list.len()).ok()?;
        self.u32(&mut len)?;
        if self.is_back() {
            list.clear();
        }
        for index in 0..len as usize {
            if self.is_back() {
                list.push(T::default());
            }
            each(self, &mut list[index])?;
        }
        Some(())
    }

    /// Carries an optional value.
    pub fn option<T: Default>(
        &mut self,
        option: &mut Option<T>,
        each: impl FnOnce(&mut Self, &mut T) -> Option<()>,
    ) -> Option<()> {
        let mut is_some = option.is_some();
        self.bool(&mut is_some)?;
        if !is_some {
            *option = None;
            return Some(());
        }
        each(self, option.get_or_insert_default())
    }

    /// Carries the value of a cell.
    pub fn cell<T: Copy>(
        &mut self,
        cell: &Cell<T>,
        one: impl FnOnce(&mut Self, &mut T) -> Option<()>,
    ) -> Option<()> {
        let mut value = cell.get();
        one(self, &mut value)?;
        cell.set(value);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug, PartialEq, Clone)]
    struct State {
        count: u64,
        share: f64,
        is_on: bool,
        since: Option<Nanos>,
        pages: Vec<u32>,
        name: Vec<u8>,
    }

    impl State {
        fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
            by.u64(&mut self.count)?;
            by.f64(&mut self.share)?;
            by.bool(&mut self.is_on)?;
            by.option(&mut self.since, Carrier::nanos)?;
            by.list(&mut self.pages, Carrier::u32)?;
            self.name = by.string(&self.name)?.to_vec();
            Some(())
        }
    }

    fn state() -> State {
        State {
            count: u64::MAX,
            share: -0.1,
            is_on: true,
            since: Some(Nanos(7)),
            pages: vec![3, 1],
            name: b"page".to_vec(),
        }
    }

    #[test]
    fn what_was_carried_out_comes_back() {
        for state in [state(), State::default()] {
            let mut bytes = Vec::new();
            state.clone().carry(&mut Carrier::out(&mut bytes)).expect("it fits");
            let mut found = State { pages: vec![9; 9], since: Some(Nanos(1)), ..State::default() };
            let mut back = Carrier::back(&bytes);
            found.carry(&mut back).expect("it is what was written");
            assert!(back.is_at_end());
            assert_eq!(found, state);
        }
    }

    #[test]
    fn bytes_that_end_too_soon_or_make_no_sense_are_refused() {
        let mut bytes = Vec::new();
        state().carry(&mut Carrier::out(&mut bytes)).expect("it fits");
        for len in 0..bytes.len() {
            let back = &mut Carrier::back(&bytes[..len]);
            assert_eq!(State::default().carry(back), None, "{len} bytes");
        }
        bytes[16] = 2;
        assert_eq!(State::default().carry(&mut Carrier::back(&bytes)), None, "neither on nor off");
    }
}
