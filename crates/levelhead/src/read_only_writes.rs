//! The writes of a store that was opened read-only. They stay in memory and overlay the files.
//!
//! Opening a store writes the results of its recovery (the log's pairs in the index, a manifest). A
//! reader needs these writes, but the files do not: the next opening repeats them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::SetId;
use block::{Block, DeviceError};

/// Blocks that replace those of the files. Clones share the blocks.
#[derive(Clone)]
pub(crate) struct Kept {
    blocks: Rc<RefCell<BTreeMap<(SetId, u64), Block>>>,
    /// Sets that refuse writes, because their files are lost.
    lost: Rc<[SetId]>,
}

impl Kept {
    pub(crate) fn new(lost: Vec<SetId>) -> Self {
        Self { blocks: Rc::default(), lost: lost.into() }
    }

    /// Writes blocks from `first` on.
    pub(crate) fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
    ) -> Result<(), DeviceError> {
        self.check(set)?;
        self.blocks.borrow_mut().extend((first..).map(|at| (set, at)).zip(blocks));
        Ok(())
    }

    pub(crate) fn check(&self, set: SetId) -> Result<(), DeviceError> {
        if self.lost.contains(&set) { Err(DeviceError::Gone(set)) } else { Ok(()) }
    }

    /// Returns the written blocks among `blocks` blocks from `first` on, each with its distance
    /// from `first`.
    pub(crate) fn of(&self, set: SetId, first: u64, blocks: u32) -> Vec<(usize, Block)> {
        let written = self.blocks.borrow();
        let range = written.range((set, first)..(set, first + u64::from(blocks)));
        range.map(|((_, at), block)| ((at - first) as usize, block.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_of_a_block_is_read_and_a_lost_set_takes_none() {
        let [one, two] = [1, 2].map(|id| SetId::new(id).expect("from 1 on"));
        let kept = Kept::new(vec![two]);
        let block = |byte| Block::new(&[byte]);
        kept.write(one, 7, vec![block(1), block(2)]).expect("it is there");
        kept.write(one, 8, vec![block(3)]).expect("it is there");
        assert_eq!(kept.of(one, 6, 3), [(1, block(1)), (2, block(3))]);
        assert_eq!(kept.of(one, 9, 3), []);
        assert_eq!(kept.write(two, 7, vec![block(1)]), Err(DeviceError::Gone(two)));
        assert_eq!(kept.of(two, 0, 100), []);
    }
}
