//! Uniform random overwriting of a full drive under greedy collection.
//!
//! Superblocks consist of slots. Client writes go to one open superblock, moved blocks to another.
//! While there is room for fewer than `kept` superblocks, the one with the fewest valid slots is
//! emptied, slot by slot, and erased. The remainder of a victim is padded to a whole program.

use super::Dice;

/// The drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub superblocks: usize,
    /// Slots of a superblock.
    pub slots: usize,
    /// Slots of a program.
    pub unit: usize,
    /// Logical blocks, all of them written.
    pub blocks: usize,
    /// Superblocks of room that collection keeps.
    pub kept: usize,
}

const NOWHERE: usize = usize::MAX;

struct Model {
    shape: Shape,
    /// The superblock of each block.
    home: Vec<usize>,
    /// Blocks written to each superblock, in order; some have moved since.
    contents: Vec<Vec<usize>>,
    valid: Vec<usize>,
    is_full: Vec<bool>,
    free: Vec<usize>,
    open: [Option<usize>; 2],
    written: [u64; 2],
    wasted: u64,
    victim: Option<Victim>,
}

/// A superblock that is being emptied.
struct Victim {
    number: usize,
    /// Blocks written to it, in order.
    contents: std::vec::IntoIter<usize>,
    moved: usize,
}

const HOST: usize = 0;
const MOVED: usize = 1;

/// Returns the slots programmed per written block, in the last of `times` overwritings. The earlier
/// ones bring the drive from a sequential fill to its steady state.
pub(crate) fn write_amplification(shape: Shape, times: usize, seed: u64) -> f64 {
    let mut model = Model::new(shape);
    let mut dice = Dice::new(seed);
    for time in 0..times {
        if time + 1 == times {
            (model.written, model.wasted) = ([0; 2], 0);
        }
        for _ in 0..shape.blocks {
            model.write(dice.below(shape.blocks), HOST);
            model.collect();
        }
    }
    (model.written[HOST] + model.written[MOVED] + model.wasted) as f64 / model.written[HOST] as f64
}

impl Model {
    fn new(shape: Shape) -> Self {
        let mut model = Self {
            shape,
            home: vec![NOWHERE; shape.blocks],
            contents: vec![Vec::new(); shape.superblocks],
            valid: vec![0; shape.superblocks],
            is_full: vec![false; shape.superblocks],
            free: (0..shape.superblocks).rev().collect(),
            open: [None; 2],
            written: [0; 2],
            wasted: 0,
            victim: None,
        };
        (0..shape.blocks).for_each(|block| model.write(block, HOST));
        model
    }

    /// Uses the next slot of a stream, and returns its superblock.
    fn slot(&mut self, stream: usize, content: usize) -> usize {
        let to = *self.open[stream]
            .get_or_insert_with(|| self.free.pop().expect("a superblock is free"));
        self.contents[to].push(content);
        if self.contents[to].len() == self.shape.slots {
            self.is_full[to] = true;
            self.open[stream] = None;
        }
        to
    }

    fn write(&mut self, block: usize, stream: usize) {
        let to = self.slot(stream, block);
        let from = std::mem::replace(&mut self.home[block], to);
        if from != NOWHERE {
            self.valid[from] -= 1;
        }
        self.valid[to] += 1;
        self.written[stream] += 1;
    }

    fn collect(&mut self) {
        while self.room() < self.shape.kept * self.shape.slots {
            let Some(mut victim) = self.victim.take().or_else(|| self.next_victim()) else {
                return;
            };
            match victim.contents.next() {
                // A block written twice to the same superblock is listed twice, and moves once.
                Some(block) if block != NOWHERE && self.home[block] == victim.number => {
                    self.write(block, MOVED);
                    victim.moved += 1;
                }
                Some(_) => {}
                None => {
                    self.erase(&victim);
                    continue;
                }
            }
            self.victim = Some(victim);
        }
    }

    /// Returns the slots that can be written, including the processed ones of the victim.
    fn room(&self) -> usize {
        let left = |open: &Option<usize>| {
            open.map_or(0, |number| self.shape.slots - self.contents[number].len())
        };
        let emptied = self.victim.as_ref().map_or(0, |v| self.shape.slots - v.contents.len());
        self.free.len() * self.shape.slots + self.open.iter().map(left).sum::<usize>() + emptied
    }

    fn next_victim(&mut self) -> Option<Victim> {
        let full = (0..self.shape.superblocks).filter(|superblock| self.is_full[*superblock]);
        let number = full.min_by_key(|superblock| self.valid[*superblock])?;
        self.is_full[number] = false;
        let contents = std::mem::take(&mut self.contents[number]).into_iter();
        Some(Victim { number, contents, moved: 0 })
    }

    fn erase(&mut self, victim: &Victim) {
        for _ in victim.moved..victim.moved.next_multiple_of(self.shape.unit) {
            self.slot(MOVED, NOWHERE);
            self.wasted += 1;
        }
        assert_eq!(self.valid[victim.number], 0, "all of it is elsewhere");
        self.free.insert(0, victim.number);
    }
}
