//! The initial sizing parameters of a design.

use super::pair::Pair;
use super::{Room, SizingInput, plan};
use crate::options::Options;

/// Returns the sizing parameters of a design if all pairs are like `pair`. The design uses groups
/// only if lists with one entry per segment of a full store would take memory from levels to be
/// pinned.
pub fn input_for(options: &Options, pair: &Pair, room: &Room) -> SizingInput {
    let input = SizingInput::new(options, pair, room);
    let full = plan(&input, options.level_sizing, options.pinned_levels);
    if full.is_final(&input) {
        return input;
    }
    SizingInput { group_segments: SizingInput::in_groups_of(options.group_pages), ..input }
}
