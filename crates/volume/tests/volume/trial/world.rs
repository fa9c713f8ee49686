//! The configuration of a trial.

use engine::Shape;
use runtime::{Nanos, Rng};
use volume::Layout;
use volume::windows::slot::{Rules, SlotPolicy};
use volume::windows::{InternalReads, JournalWrites, Keeper, Overflow, WindowOptions};

/// The configuration of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub layout: Layout,
    pub members: usize,
    pub shape: Shape,
    pub is_anywhere: bool,
    pub flips: bool,
    pub lives: u32,
    /// The options of windows, if they may be turned on.
    pub windows: Option<WindowOptions>,
    /// The hedging delay of client reads, while windows are off.
    pub hedge_after: Option<Nanos>,
}

impl World {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "world");
        let append_unit = 1 + rng.below(2) as u32;
        let chunk_pages = append_unit * (1 + rng.below(3) as u32);
        let (layout, members) = match rng.below(6) {
            0 => (Layout::Striped { chunk_pages }, 1 + rng.below(4)),
            1 | 2 => (Layout::Mirrored, 2 + rng.below(2)),
            _ => (Layout::Parity { chunk_pages }, 3 + rng.below(3)),
        };
        let shape = Shape {
            payload_bytes: 512,
            page_bytes: 512,
            pages_per_extent: append_unit * 2 + chunk_pages * (2 + rng.below(6) as u32),
            extents: 6,
            grows_to: 0,
            append_unit,
            parallelism: 2,
        };
        let pages_per_extent = shape.in_units(shape.pages_per_extent);
        Self {
            layout,
            members: members as usize,
            shape: Shape { pages_per_extent, ..shape },
            is_anywhere: rng.chance(0.5),
            flips: rng.chance(0.3),
            lives: 3 + rng.below(4) as u32,
            windows: None,
            hedge_after: match Rng::derive(seed, "hedge").below(4) {
                0 => Some(Nanos::from_micros(1)),
                1 => Some(Nanos::from_micros(20)),
                _ => None,
            },
        }
    }

    /// Returns the configuration of a seed, with windows kept by the host some of the time.
    pub(crate) fn with_windows_of_seed(seed: u64) -> Self {
        let world = Self::of_seed(seed);
        let rng = &mut Rng::derive(seed, "windows");
        Self { windows: Some(windows(rng, &world.shape)), ..world }
    }

    /// Returns the configuration of a seed, with windows and a journal that does not wait for
    /// slots.
    pub(crate) fn with_journal_at_once_of_seed(seed: u64) -> Self {
        let mut world = Self::with_windows_of_seed(seed);
        if let Some(windows) = &mut world.windows {
            windows.journal = JournalWrites::AtOnce;
        }
        world
    }

    pub(super) fn spares(&self) -> usize {
        match self.layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => self.members - 1,
        }
    }
}

fn windows(rng: &mut Rng, shape: &Shape) -> WindowOptions {
    let mut pick = |of: &[u64]| of[rng.below(of.len() as u64) as usize];
    let rules = Rules {
        max_dtwin: Nanos::from_micros(pick(&[300, 2_000, 20_000])),
        min_ndwin: Nanos::from_micros(pick(&[1, 100, 1_000])),
        lockdown: Nanos::from_micros(pick(&[0, 20])),
    };
    let page = u64::from(shape.page_bytes);
    let constant = SlotPolicy::Constant(Nanos::from_micros(pick(&[0, 50, 500])));
    let bytes_per_second = pick(&[1_000_000, 1_000_000_000]);
    let piece_bytes = if bytes_per_second == 1_000_000 { page } else { 3 * page };
    let limited = InternalReads::AnyTime { bytes_per_second, piece_bytes };
    let one_of_two = |n| n == 0;
    WindowOptions {
        keeper: Keeper::Host(rules),
        slots: if one_of_two(pick(&[0, 1])) { constant } else { SlotPolicy::Dynamic },
        cache_bytes: page * pick(&[1, 20, 100, 10_000]),
        overflow: if one_of_two(pick(&[0, 1, 1])) { Overflow::Write } else { Overflow::Wait },
        internal_reads: if one_of_two(pick(&[0, 1])) { InternalReads::InSlots } else { limited },
        journal: JournalWrites::InSlots,
        pauses: one_of_two(pick(&[0, 1])),
        write_bytes_per_second: pick(&[100_000, 10_000_000, 1_000_000_000]),
    }
}
