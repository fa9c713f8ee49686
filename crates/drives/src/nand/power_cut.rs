//! Power cuts: the fate of operations in flight.
//!
//! Contract: an operation that waited, or whose command or data was still on the bus, leaves no
//! trace. An operation in the array (running or suspended) ends done, not done, or torn, by seed.
//! Pages programmed earlier are not harmed: the profiles assume parts and firmware that protect the
//! pages which share a word line with a torn page.

use runtime::{PageImage, Rng};

use super::NandArray;
use super::device::{Flash, State, apply};
use super::die::Phase;
use super::operation::{OperationId, Request};

/// Operations hit by a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// Programs and erases that completed.
    pub done: u32,
    /// Programs and erases that left no trace.
    pub not_done: u32,
    /// Programs and erases that left garbage.
    pub torn: u32,
}

impl Flash {
    /// Cuts the power now. Outstanding operations never complete. Returns the cells for the next
    /// power-up, in the state that `rng` decides.
    pub fn power_cut(&self, rng: &mut Rng) -> (NandArray, CutReport) {
        let state = &mut *self.inner().state.borrow_mut();
        assert!(!state.is_off, "the power is off already");
        state.is_off = true;
        let mut report = CutReport::default();
        for die in 0..state.dies.len() {
            if let Some(id) = in_array(state, die) {
                end_somehow(state, id, rng, &mut report);
            }
        }
        let blank = NandArray::new(state.array.geometry());
        (std::mem::replace(&mut state.array, blank), report)
    }
}

/// Returns the program or erase in progress on die number `die`.
fn in_array(state: &State, die: usize) -> Option<OperationId> {
    let die = &state.dies[die];
    match &die.phase {
        Phase::Running(running) => Some(running.id),
        Phase::Suspending(suspended) => Some(suspended.id),
        Phase::Idle | Phase::OnBus(_) => die.suspended.map(|s| s.id),
    }
}

fn end_somehow(state: &mut State, id: OperationId, rng: &mut Rng, report: &mut CutReport) {
    match rng.below(3) {
        0 => {
            report.done += 1;
            // The submitter is not notified.
            apply(state, id);
        }
        1 => report.not_done += 1,
        _ => {
            report.torn += 1;
            tear(state, id, rng);
        }
    }
}

fn tear(state: &mut State, id: OperationId, rng: &mut Rng) {
    match &mut state.operations.get(id).request {
        Request::Program(first, images) => {
            let (first, images) = (*first, std::mem::take(images));
            let damaged = images.iter().map(|image| damage(image, rng)).collect::<Vec<_>>();
            state.array.program_torn(first, damaged.into_iter());
        }
        Request::Erase(block) => {
            let block = *block;
            state.array.erase_torn(block);
        }
        Request::Read(..) => unreachable!("a read does not run in the array"),
    }
}

/// Returns garbage as a torn program leaves it: unreadable, cut off, or with wrong bits.
fn damage(image: &PageImage, rng: &mut Rng) -> Option<PageImage> {
    let mut bytes = image.bytes().to_vec();
    if bytes.is_empty() {
        return None;
    }
    match rng.below(3) {
        0 => return None,
        1 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        _ => {
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    Some(PageImage::new(&bytes))
}
