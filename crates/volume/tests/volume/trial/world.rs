//! What trials run on.

use pages::Shape;
use runtime::Rng;
use volume::Layout;

/// What a trial runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub layout: Layout,
    pub members: usize,
    pub shape: Shape,
    pub is_anywhere: bool,
    pub flips: bool,
    pub lives: u32,
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
        }
    }

    pub(super) fn spares(&self) -> usize {
        match self.layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => self.members - 1,
        }
    }
}
