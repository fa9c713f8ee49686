//! What is written to a store that was opened to be read only: it stays in memory, in front of the files.
//!
//! Opening a store writes what a recovery has to (the log's pairs into the index, a manifest); a reader needs it, and the files do not: the next
//! opening does it again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use block::nvme::SetId;
use block::{Block, DeviceError};

/// Blocks that are not those of the files any more. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Kept {
    blocks: Rc<RefCell<BTreeMap<(SetId, u64), Block>>>,
    /// Sets that take nothing, because their files are lost.
    lost: Rc<[SetId]>,
}

impl Kept {
    pub(crate) fn new(lost: Vec<SetId>) -> Self {
        Self { blocks: Rc::default(), lost: lost.into() }
    }

    /// Blocks from `first` on.
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

    /// Those of so many blocks from `first` on that were written, by how far behind it they are.
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
