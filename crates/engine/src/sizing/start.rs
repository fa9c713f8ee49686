//! What a design starts from.

use crate::options::Options;
use crate::sizing::pair::Pair;
use crate::sizing::{Room, SizingInput, plan};

/// What a design starts from where all pairs are like this one. It has groups only if lists with an entry for
/// each segment of a full store would take memory from levels that are to be pinned.
pub fn input_for(options: &Options, pair: &Pair, room: &Room) -> SizingInput {
    let input = SizingInput::new(options, pair, room);
    let full = plan(&input, options.level_sizing, options.pinned_levels);
    if full.is_final(&input) {
        return input;
    }
    SizingInput { group_segments: SizingInput::in_groups_of(options.group_pages), ..input }
}
