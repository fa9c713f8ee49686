//! Picks the tables to compact next, by the rules of `RocksDB` 6.23's leveled compaction with
//! `kMinOverlappingRatio` (`compaction_picker_level.cc`, `compaction_picker.cc`). Pure.
//!
//! Tables of a level share no key here, so cuts between them are always clean.

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;

use super::score::{Candidate, Weights, l0_is_due, scores};
use super::space::Form;
use crate::options::tables::TableOptions;
use crate::version::table::{Described, KeyRange, TableId};
use crate::version::tree::{Tree, key_range};

/// The number of L0 tables above the trigger from which on L0 tables may be merged among
/// themselves.
const INTRA_L0_SURPLUS: usize = 2;
/// The minimum number of L0 tables merged among themselves.
const INTRA_L0_LEAST: usize = 4;

/// A set of tables to merge.
#[derive(Clone, Debug)]
pub(crate) struct Job<T> {
    pub from: usize,
    pub into: usize,
    /// The tables of level `from`; of L0 the newest first.
    pub upper: Vec<T>,
    /// The tables of level `into`, if it differs from `from`. Small neighbours are merged within
    /// their own level.
    pub lower: Vec<T>,
    /// Whether the table only changes its level and no entry is read.
    pub is_move: bool,
    /// Set if space is short: the job is as small as possible, and no table ends early. If it holds
    /// a key, only entries of the single upper table before the key are merged; the rest stays in
    /// its level.
    pub frugal: Option<Until>,
}

/// The end of a job that takes a part of its upper table: before this key, or at the table's end.
pub(crate) type Until = Option<Box<[u8]>>;

impl<T: Described> Job<T> {
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &T> {
        self.upper.iter().chain(&self.lower)
    }

    /// Returns the range from the first to the last key.
    pub(crate) fn keys(&self) -> KeyRange {
        key_range(self.inputs()).expect("a job has tables")
    }
}

/// A compaction in progress.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub from: usize,
    pub into: usize,
    pub keys: KeyRange,
}

impl Running {
    fn writes(&self, into: usize, keys: &KeyRange) -> bool {
        self.into == into && self.keys.meets(&keys.first, &keys.last)
    }
}

/// The inputs of a pick.
pub(crate) struct Picker<'a, T> {
    pub tree: &'a Tree<T>,
    pub options: &'a TableOptions,
    pub weights: Weights,
    pub form: Form,
    pub running: &'a [Running],
    /// Whether everything is to move down, regardless of scores.
    pub squeezes: bool,
    /// Whether space is short: jobs are as small as possible.
    pub is_frugal: bool,
}

impl<T: Candidate> Picker<'_, T> {
    /// Returns the most urgent compaction that `fits`, if one is due and can begin.
    pub(crate) fn pick(&self, fits: impl Fn(&Job<T>) -> bool) -> Option<Job<T>> {
        let scores = scores(self.tree, self.options, &self.weights);
        let mut by_score: Vec<usize> = (0..scores.len()).collect();
        by_score.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let is_due = |n: &usize| scores[*n] >= 1.0 || self.squeezes && scores[*n] > 0.0;
        let mut l0_waits = false;
        for n in by_score.into_iter().filter(is_due) {
            // Otherwise L1 would always be busy when L0 needs it.
            if n == 1 && l0_waits {
                continue;
            }
            let job = if n == 0 { self.pick_l0() } else { self.pick_from(n) };
            if job.as_ref().is_some_and(&fits) {
                return job;
            }
            l0_waits |= n == 0 && !self.is_frugal;
        }
        self.squeezes.then(|| self.pick_small()).flatten().filter(fits)
    }

    /// Returns a job that merges neighbours of a level that take fewer extents as one table. Such
    /// tables exist because tables without overlap are moved down unchanged, however small they
    /// are.
    fn pick_small(&self) -> Option<Job<T>> {
        let levels = self.tree.levels().iter().enumerate().skip(1);
        levels.rev().find_map(|(n, level)| {
            let job = |upper: &[T]| Job {
                from: n,
                into: n,
                upper: upper.to_vec(),
                lower: Vec::new(),
                is_move: false,
                frugal: Some(None),
            };
            let idle = level.chunk_by(|a, b| !a.is_busy() && !b.is_busy());
            let small = idle.filter_map(|tables| self.form.small_neighbours(tables));
            let mut jobs = small.map(job);
            jobs.find(|job| self.is_free(n, &job.upper, &[]))
        })
    }

    /// Returns a job that merges the L0 tables that share keys into L1, or otherwise the newest L0
    /// tables with each other.
    fn pick_l0(&self) -> Option<Job<T>> {
        if self.is_frugal {
            self.pick_oldest()
        } else {
            self.pick_l0_down().or_else(|| self.pick_intra_l0())
        }
    }

    /// Returns a job for the oldest table of L0, because no other table of L0 can have older
    /// entries.
    fn pick_oldest(&self) -> Option<Job<T>> {
        let is_free = self.running.iter().all(|job| job.from > 0);
        let oldest = self.tree.level(0).last().filter(|_| is_free)?;
        self.least(0, oldest)
    }

    fn pick_l0_down(&self) -> Option<Job<T>> {
        if self.running.iter().any(|job| job.from == 0) {
            return None;
        }
        self.complete(0, 1, self.l0_together()?)
    }

    /// Returns the tables of L0 that a compaction into L1 takes.
    fn l0_together(&self) -> Option<Vec<T>> {
        let level = self.tree.level(0);
        let seed = self.by_overlap(0).into_iter().find(|table| !table.is_busy())?;
        // All tables that share keys with them are included; otherwise newer entries would end up
        // below older ones.
        let mut keys = key_range([seed]).expect("one table");
        let mut count = 0;
        loop {
            let shares = |table: &&T| keys.meets(&table.meta().first_key, &table.meta().last_key);
            let upper: Vec<T> = level.iter().filter(shares).cloned().collect();
            if upper.len() == count {
                return Some(upper);
            }
            count = upper.len();
            keys = key_range(&upper).expect("the seed is among them");
        }
    }

    /// Whether L0 is due for a compaction into L1 that cannot begin while `job` holds its tables.
    pub(crate) fn blocks_l0(&self, job: &Job<T>) -> bool {
        if job.from != 1 || !l0_is_due(self.tree, self.options, &self.weights) {
            return false;
        }
        let Some(upper) = self.l0_together() else { return false };
        let keys = key_range(&upper).expect("there is a table");
        let wanted = self.tree.overlapping(1, &keys.first, &keys.last);
        let is_held = |table: &T| job.inputs().any(|own| own.meta().id == table.meta().id);
        wanted.iter().any(is_held)
    }

    /// Returns a job that merges the newest tables of L0 into one, so that a Get has fewer tables
    /// to search while L1 is busy.
    fn pick_intra_l0(&self) -> Option<Job<T>> {
        let level = self.tree.level(0);
        let least = self.options.l0_compaction_trigger as usize + INTRA_L0_SURPLUS;
        if level.len() < least || level[0].is_busy() {
            return None;
        }
        let (mut bytes, mut best) = (self.weights.bytes(&level[0]), f64::INFINITY);
        let mut count = 1;
        for table in level[1..].iter().take_while(|table| !table.is_busy()) {
            let with_it = bytes + self.weights.bytes(table);
            let per_table_less = with_it / count as f64;
            if per_table_less > best || with_it > self.options.max_compaction_bytes as f64 {
                break;
            }
            (bytes, best, count) = (with_it, per_table_less, count + 1);
        }
        (count >= INTRA_L0_LEAST).then(|| Job {
            from: 0,
            into: 0,
            upper: level[..count].to_vec(),
            lower: Vec::new(),
            is_move: false,
            frugal: None,
        })
    }

    /// Returns a job for the table of level `n` with the smallest overlap ratio, and the tables
    /// that can be added without more overlap.
    fn pick_from(&self, n: usize) -> Option<Job<T>> {
        let candidates = self.by_overlap(n).into_iter().filter(|table| !table.is_busy());
        let job = |table: &T| {
            if self.is_frugal {
                self.least(n, table)
            } else {
                self.complete(n, n + 1, vec![table.clone()])
            }
        };
        candidates.into_iter().find_map(job)
    }

    /// Returns a job for `table` of level `n` and the first table it overlaps below, up to the end
    /// of that overlap.
    fn least(&self, n: usize, table: &T) -> Option<Job<T>> {
        let (lower, until) = least_lower(self.tree, n, table);
        let upper = vec![table.clone()];
        if !self.is_free(n + 1, &upper, lower) {
            return None;
        }
        let is_move = self.can_move(n, n + 1, &upper, lower);
        let lower = lower.to_vec();
        Some(Job { from: n, into: n + 1, upper, lower, is_move, frugal: Some(until) })
    }

    /// Whether no compaction reads these tables or writes to their key range.
    fn is_free(&self, into: usize, upper: &[T], lower: &[T]) -> bool {
        let keys = key_range(upper.iter().chain(lower)).expect("there is a table");
        let is_idle = upper.iter().chain(lower).all(|table| !table.is_busy());
        is_idle && !self.running.iter().any(|job| job.writes(into, &keys))
    }

    /// Returns the tables of level `n`, smallest overlap ratio first; if space is short, smallest
    /// overlap first.
    fn by_overlap(&self, n: usize) -> Vec<&T> {
        let ratio = |table: &T| {
            let meta = table.meta();
            let below = self.tree.overlapping(n + 1, &meta.first_key, &meta.last_key);
            let weight = if self.is_frugal { 1.0 } else { self.weights.compensated(table) };
            self.weights.sum(below) / weight
        };
        let mut tables: Vec<(f64, &T)> =
            self.tree.level(n).iter().map(|table| (ratio(table), table)).collect();
        tables.sort_by(|a, b| a.0.total_cmp(&b.0));
        tables.into_iter().map(|(_, table)| table).collect()
    }

    /// Returns the job of `upper` with its overlap below; `None` if any of these tables is busy.
    fn complete(&self, from: usize, into: usize, upper: Vec<T>) -> Option<Job<T>> {
        let keys = key_range(&upper).expect("there is a table");
        let lower = self.tree.overlapping(into, &keys.first, &keys.last).to_vec();
        if !self.is_free(into, &upper, &lower) {
            return None;
        }
        let wider = self.wider(from, into, &upper, &lower);
        let upper = wider.filter(|wider| self.is_free(into, wider, &lower)).unwrap_or(upper);
        let is_move = self.can_move(from, into, &upper, &lower);
        Some(Job { from, into, upper, lower, is_move, frugal: None })
    }

    /// Returns more tables of level `from` that can be included without more tables of level
    /// `into`.
    fn wider(&self, from: usize, into: usize, upper: &[T], lower: &[T]) -> Option<Vec<T>> {
        if lower.is_empty() || from == 0 {
            return None;
        }
        let keys = key_range(upper.iter().chain(lower)).expect("there is a table");
        let meets_no_more = |upper: &[T]| {
            let keys = key_range(upper).expect("there is a table");
            self.tree.overlapping(into, &keys.first, &keys.last).len() == lower.len()
        };
        let fits = |wider: &[T]| {
            let bytes = self.weights.sum(wider) + self.weights.sum(lower);
            wider.len() > upper.len() && bytes < self.options.max_compaction_bytes as f64
        };
        let sharing = self.tree.overlapping(from, &keys.first, &keys.last);
        let lies_within =
            |table: &&T| keys.first <= table.meta().first_key && table.meta().last_key <= keys.last;
        let within: Vec<T> = sharing.iter().filter(lies_within).cloned().collect();
        [sharing.to_vec(), within].into_iter().find(|wider| fits(wider) && meets_no_more(wider))
    }

    /// Whether tables can change their level unchanged: there is no overlap, and the overlap two
    /// levels down is not too large.
    fn can_move(&self, from: usize, into: usize, upper: &[T], lower: &[T]) -> bool {
        let shares_keys = |pair: &[T]| pair[0].meta().first_key <= pair[1].meta().last_key;
        let is_apart = || {
            let mut by_key: Vec<T> = upper.to_vec();
            by_key.sort_by(|a, b| b.meta().first_key.cmp(&a.meta().first_key));
            !by_key.windows(2).any(shares_keys)
        };
        let meets_little = |table: &T| {
            let meta = table.meta();
            let beyond = if into + 1 < self.tree.levels().len() {
                self.tree.overlapping(into + 1, &meta.first_key, &meta.last_key)
            } else {
                &[]
            };
            let bytes = self.weights.bytes(table) + self.weights.sum(beyond);
            bytes <= self.options.max_compaction_bytes as f64
        };
        lower.is_empty() && (from > 0 || is_apart()) && upper.iter().all(meets_little)
    }
}

/// Returns the first table that `table` of level `n` overlaps below, and the first key of the next
/// one.
fn least_lower<'t, T: Candidate>(tree: &'t Tree<T>, n: usize, table: &T) -> (&'t [T], Until) {
    let meta = table.meta();
    let lower = tree.overlapping(n + 1, &meta.first_key, &meta.last_key);
    let until = lower.get(1).map(|next| next.meta().first_key.clone());
    (&lower[..lower.len().min(1)], until)
}

/// Returns the smallest job of each table that could be the next if space is short: as long as
/// there is space for the largest of these, compaction can continue.
pub(crate) fn least_jobs<T: Candidate>(tree: &Tree<T>) -> impl Iterator<Item = (&T, &[T])> {
    let job = |n: usize, table| (table, least_lower(tree, n, table).0);
    let levels = 0..tree.levels().len() - 1;
    levels.flat_map(move |n| tree.level(n).iter().map(move |table| job(n, table)))
}

/// Returns the tables two levels down (`beyond`) that the output of a job may overlap.
pub(crate) fn grandparents<'t, T: Candidate>(tree: &'t Tree<T>, job: &Job<T>) -> &'t [T] {
    let keys = job.keys();
    let beyond = job.into + 1;
    if job.into == 0 || beyond >= tree.levels().len() {
        return &[];
    }
    tree.overlapping(beyond, &keys.first, &keys.last)
}

/// Returns the numbers of a job's tables with their levels.
pub(crate) fn removed<T: Described>(job: &Job<T>) -> Vec<(usize, TableId)> {
    let of = |n: usize, tables: &[T]| {
        tables.iter().map(|table| (n, table.meta().id)).collect::<Vec<_>>()
    };
    let mut all = of(job.from, &job.upper);
    all.extend(of(job.into, &job.lower));
    all
}
