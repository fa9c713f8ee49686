//! Compaction of tables: picked by `super::picker`, merged in steps, written as pages
//! become full.
//!
//! A job holds the readahead pages of each input and the pages that are written at a time. Its
//! tables are busy until it ends; the rest of the tree is not blocked. Space for its largest
//! possible output is promised before it begins.

use std::cell::Cell;
use std::rc::Rc;

use super::cut::Cutter;
use super::give_way::Courtesy;
use super::inputs::RunReader;
use super::merge::{Below, Input, Output, Stop};
use super::picker::{Running, grandparents, least_jobs, removed};
use super::space::{Contents, most_early};
use super::{STEP_ENTRIES, TableJob, Worker, merge};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::medium::Medium;
use crate::planted::Fault;
use crate::space::apart::Apart;
use crate::space::priority::Claimant;
use crate::space::promise::Promise;
use crate::version::open_table::Table;
use crate::version::tree::TreeEdit;

/// The outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Done,
    /// The job gave way to L0; its output is garbage.
    Discarded,
}

/// The result of looking for a job.
enum Fitting {
    Job(Box<TableJob>),
    /// A compaction is due, but the smallest job needs this many extents, which are not free.
    Short(usize),
    NothingDue,
}

impl<M: Medium> Inner<M> {
    /// Runs one of the tasks that compact tables, forever.
    pub(crate) async fn compact_tables_forever(self: Rc<Self>, worker: Worker) {
        loop {
            let Some((job, promise)) = self.next_job(worker) else {
                self.wait_for_work(worker).await;
                continue;
            };
            self.front.make_progress();
            let outcome = self.run_job(&job, promise).await;
            let keeps_claim = self.planted.has(Fault::DiscardedKeepsClaim)
                && matches!(outcome, Ok(Ended::Discarded));
            self.end_job(&job, keeps_claim);
            match outcome {
                Ok(Ended::Done) => self.stats.borrow_mut().compactions[job.from] += 1,
                Ok(Ended::Discarded) => {}
                Err(error) => self.store.fail(error),
            }
            self.store.handle.yield_now().await;
        }
    }

    /// Returns the most urgent compaction, with its tables claimed and its space promised.
    fn next_job(&self, worker: Worker) -> Option<(TableJob, Option<Promise<'_>>)> {
        let tables = self.tables_of();
        let is_wanted = || match worker {
            Worker::Any(0) | Worker::L0 => true,
            Worker::Any(_) => tables.load(&self.store.shape).is_under_pressure(&tables.options),
        };
        if !self.store.is_healthy() || !is_wanted() {
            return None;
        }
        let may_begin = |job: &TableJob| match worker {
            Worker::Any(_) => self.may_begin(job),
            Worker::L0 => job.from == 0,
        };
        let fitting = self.job_that_fits(self.is_squeezing.get(), may_begin);
        if worker != Worker::L0 {
            let short = if let Fitting::Short(extents) = fitting { extents } else { 0 };
            tables.short_of.set(short);
        }
        let Fitting::Job(job) = fitting else { return None };
        let mut job = *job;
        if self.planted.has(Fault::CompactNewestAlone) && (job.from, job.into) == (0, 1) {
            job.upper.truncate(1);
        }
        let extents = self.extents_of_job(&job);
        let promise = (!job.is_move).then(|| self.promise_tables(extents, Claimant::Compaction));
        self.begin_job(&job);
        Some((job, promise.map(|promise| promise.expect("it fits"))))
    }

    /// Returns the most urgent compaction that `may_begin` and that has space; if a usual job has
    /// no space, the smallest possible job.
    fn job_that_fits(&self, squeezes: bool, may_begin: impl Fn(&TableJob) -> bool) -> Fitting {
        let (tables, shape) = (self.tables_of(), &self.store.shape);
        let short_of = Cell::new(0);
        let fits = |job: &TableJob| {
            let extents = self.extents_of_job(job);
            let later = if job.into == 0 { self.extents_after_intra_l0(job) } else { 0 };
            let fits = job.is_move || self.can_promise_tables(extents.max(later));
            if !fits {
                short_of.set(extents);
            }
            fits && may_begin(job)
        };
        let usual = tables.pick(shape, squeezes, false, fits);
        let smallest = || tables.pick(shape, squeezes, true, fits);
        let job = usual.or_else(|| (short_of.get() > 0).then(smallest).flatten());
        match (job, short_of.get()) {
            (Some(job), _) => Fitting::Job(Box::new(job)),
            (None, 0) => Fitting::NothingDue,
            (None, extents) => Fitting::Short(extents),
        }
    }

    /// Whether levels are made of tables and compactions could still shrink the tree.
    pub(crate) fn tables_can_shrink(&self) -> bool {
        self.options.is_leveled() && matches!(self.job_that_fits(true, |_| true), Fitting::Job(_))
    }

    fn begin_job(&self, job: &TableJob) {
        for table in job.inputs() {
            let was_busy = table.is_busy.replace(true);
            assert!(!was_busy, "table {} is compacted twice", table.meta.id.0);
        }
        let running = Running { from: job.from, into: job.into, keys: job.keys() };
        let tables = self.tables_of();
        tables.running.borrow_mut().push(running);
        tables.note_change();
    }

    fn end_job(&self, job: &TableJob, keeps_claim: bool) {
        let keys = job.keys();
        let tables = self.tables_of();
        let mut running = tables.running.borrow_mut();
        let is_it = |other: &Running| {
            other.from == job.from && other.into == job.into && other.keys == keys
        };
        let at = running.iter().position(is_it).expect("a compaction ends that was under way");
        running.swap_remove(at);
        for table in job.inputs() {
            table.is_busy.set(keeps_claim);
        }
        tables.note_change();
        self.store.work.notify_all();
        self.store.room.notify_all();
    }

    /// Returns the maximum number of extents of a job's output.
    fn extents_of_job(&self, job: &TableJob) -> usize {
        let tables = self.tables_of();
        let contents = self.contents_of(job.inputs());
        if job.into == 0 {
            return tables.form.extents_of_one(&contents);
        }
        let tree = tables.tree();
        let own = f64::from(contents.data_pages) * f64::from(self.store.shape.page_bytes);
        let beyond = tables.weights(&self.store.shape).sum(grandparents(&tree, job));
        let early = most_early(own, beyond, self.most_met_bytes(job));
        let rest = match &job.frugal {
            Some(Some(_)) => tables.form.extents_of_rest(&self.contents_of(&job.upper)),
            _ => 0,
        };
        tables.form.extents_of_many(&contents, early) + rest
    }

    /// Returns the extents of the smallest job that takes the output of a compaction within L0:
    /// that job must not have to wait for space.
    fn extents_after_intra_l0(&self, job: &TableJob) -> usize {
        let form = &self.tables_of().form;
        let upper = self.contents_of(job.inputs());
        let merged = Contents { data_pages: upper.data_pages + form.table_pages(), ..upper };
        form.extents_of_many(&merged, 0) + form.extents_of_rest(&upper)
    }

    /// Returns the maximum number of bytes of a table together with the tables it overlaps two
    /// levels down.
    fn most_met_bytes(&self, job: &TableJob) -> f64 {
        let most = self.tables_of().options.max_compaction_bytes as f64;
        if job.frugal.is_some() { f64::INFINITY } else { most }
    }

    /// Returns an upper bound of the merge output of these tables.
    fn contents_of<'t>(&self, tables: impl IntoIterator<Item = &'t Rc<Table>>) -> Contents {
        let contents = Contents::of(tables);
        let bytes = contents.data_pages as usize * self.inlining.room();
        Contents { data_pages: self.inlining.most_pages(bytes), ..contents }
    }

    /// Returns the number of extents to keep free for the largest of the smallest jobs of all
    /// tables, so that compaction can always continue.
    pub(crate) fn extents_of_least_jobs(&self) -> usize {
        let tables = self.tables_of();
        let tree = tables.tree();
        let extents = |(upper, lower): (&Rc<Table>, &[Rc<Table>])| {
            let merged = self.contents_of(lower.iter().chain([upper]));
            let rest = self.contents_of([upper]);
            tables.form.extents_of_many(&merged, 0) + tables.form.extents_of_rest(&rest)
        };
        least_jobs(&tree).map(extents).max().unwrap_or(0)
    }

    async fn run_job(
        &self,
        job: &TableJob,
        promise: Option<Promise<'_>>,
    ) -> Result<Ended, EngineError> {
        let Some(promise) = promise else {
            self.move_tables(job)?;
            return Ok(Ended::Done);
        };
        let buffers = self.buffers_of(job);
        let _buffers = self.buffers(buffers);
        let merged = self.merge_tables(job, promise).await?;
        let Some((mut added, out)) = merged else { return Ok(Ended::Discarded) };
        self.count_job(job, &added, &out);
        if self.planted.has(Fault::MergedL0GoesFirst) && job.into == 0 {
            let added = std::mem::take(&mut added);
            self.install(self.edit_of_tables(TreeEdit { removed: Vec::new(), added }))?;
        }
        let edit = self.edit_of_tables(TreeEdit { removed: removed(job), added });
        self.install(self.with_dead(edit, &out.dead).await)?;
        Ok(Ended::Done)
    }

    fn count_job(&self, job: &TableJob, added: &[(usize, Rc<Table>)], out: &Output) {
        let mut stats = self.stats.borrow_mut();
        let written: u64 = added.iter().map(|(_, table)| u64::from(table.meta.pages.pages)).sum();
        stats.tables.written_pages += written;
        stats.tables.intra_l0 += u64::from(job.into == 0);
        stats.dropped_duplicates += out.duplicates as u64;
    }

    fn move_tables(&self, job: &TableJob) -> Result<(), EngineError> {
        let added = job.upper.iter().map(|table| (job.into, Rc::clone(table))).collect();
        self.stats.borrow_mut().tables.moves += job.upper.len() as u64;
        self.install(self.edit_of_tables(TreeEdit { removed: removed(job), added }))?;
        Ok(())
    }

    /// Returns the number of pages that a job holds in memory.
    fn buffers_of(&self, job: &TableJob) -> usize {
        let options = &self.tables_of().options;
        let upper = if job.from == 0 { job.upper.len() } else { 1 };
        let inputs = upper + usize::from(!job.lower.is_empty());
        let bytes = inputs as u64 * options.readahead_bytes + options.write_bytes;
        (bytes / u64::from(self.store.shape.page_bytes)) as usize
    }

    /// Merges the tables of a job and writes the result. Returns `None` if the job was discarded.
    async fn merge_tables(
        &self,
        job: &TableJob,
        promise: Promise<'_>,
    ) -> Result<Option<(Vec<(usize, Rc<Table>)>, Output)>, EngineError> {
        let mut readers = readers(job);
        let mut inputs: Vec<Input> = readers.iter().map(|_| Input::default()).collect();
        let mut out = self.output_of(job);
        let mut apart = Apart::new(&self.store, promise);
        let mut added = Vec::new();
        let mut courtesy = Courtesy::of(job);
        loop {
            let Some(urgency) = self.give_way(job, &mut courtesy).await else {
                self.discard(job, &readers, added, apart)?;
                return Ok(None);
            };
            let class = urgency.of_writes();
            for (input, reader) in inputs.iter_mut().zip(&mut readers) {
                if input.needs_pages() {
                    let (pages, is_last) = reader.next(self, urgency.of_reads()).await?;
                    input.supply(pages, is_last);
                }
            }
            let (taken, stop) = merge::step(&mut inputs, &mut out, self.store.format, STEP_ENTRIES);
            let cost = self.store.cpu.costs.of_merge(taken);
            self.store.cpu.cores.spend_in_background(cost).await;
            self.stats.borrow_mut().merged_entries += taken as u64;
            self.write_full_pages(&mut out.builder, &mut apart, class).await?;
            if matches!(stop, Stop::Cut | Stop::Rest | Stop::End) {
                let level = if out.is_rest { job.from } else { job.into };
                let table = self.end_table(&mut out.builder, &mut apart, class).await?;
                added.extend(table.map(|table| (level, table)));
                out.is_rest |= stop == Stop::Rest;
            }
            if stop == Stop::End {
                apart.make_durable().await?;
                return Ok(Some((added, out)));
            }
        }
    }

    fn output_of(&self, job: &TableJob) -> Output {
        let tables = self.tables_of();
        let tree = tables.tree();
        let shape = &self.store.shape;
        let below = if self.planted.has(Fault::DropTombstonesEarly) {
            Below::Levels(Vec::new())
        } else if job.into == 0 {
            Below::Any
        } else {
            Below::of(tree.levels()[job.into + 1..].iter().map(|level| &level[..]))
        };
        let pages = (job.into > 0).then(|| tables.form.table_pages());
        let beyond = grandparents(&tree, job);
        Output {
            builder: self.table_builder(),
            cutter: Cutter::new(pages, self.most_met_bytes(job), shape.page_bytes, beyond),
            below,
            dead: Vec::new(),
            duplicates: 0,
            until: job.frugal.clone().flatten(),
            cuts_rest: job.from > 0,
            is_rest: false,
        }
    }
}

/// Returns the runs of a job, newest first: each table of L0 is a run; the tables of another level
/// form one run.
fn readers(job: &TableJob) -> Vec<RunReader> {
    let mut readers: Vec<RunReader> = match job.from {
        0 => job.upper.iter().map(|table| RunReader::new([Rc::clone(table)])).collect(),
        _ => vec![RunReader::new(job.upper.iter().cloned())],
    };
    readers.push(RunReader::new(job.lower.iter().cloned()));
    readers
}
