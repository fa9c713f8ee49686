//! The tree of tables of a running store: flushes add tables to L0, compactions merge tables down.
//! The decisions are made in `crate::compaction::leveled`; this module carries them out.

pub(crate) mod cut;
pub(crate) mod give_way;
pub(crate) mod inputs;
pub(crate) mod merge;
pub(crate) mod picker;
pub(crate) mod preemption;
pub(crate) mod run;
pub(crate) mod score;
pub(crate) mod space;
pub(crate) mod write;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::Nanos;

use crate::compaction::leveled::picker::{Job, Picker, Running};
use crate::compaction::leveled::score::{Weights, pending_bytes};
use crate::compaction::leveled::space::{Contents, Form};
use crate::engine::Inner;
use crate::format::inlining::Inlining;
use crate::manifest::changes::Changes;
use crate::manifest::edit::Edit;
use crate::manifest::table_codec;
use crate::medium::{Medium, Shape, Stream};
use crate::options::Options;
use crate::options::tables::TableOptions;
use crate::space::priority::Claimant;
use crate::space::promise::Promise;
use crate::version::Version;
use crate::version::open_table::Table;
use crate::version::table::TableId;
use crate::version::tree::{Tree, TreeEdit};
use crate::write::stall::{Load, Stall, Throttle};

/// The number of entries that a flush or compaction processes before it yields to other tasks.
pub(crate) const STEP_ENTRIES: usize = 128;

type TableJob = Job<Rc<Table>>;

/// A task that compacts tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    /// Compactions of any level; all workers but the first work only under pressure.
    Any(usize),
    /// Compactions out of L0 only.
    L0,
}

/// The tables of a store, and the compactions in progress.
pub(crate) struct Tables {
    pub options: TableOptions,
    pub form: Form,
    /// The maximum number of extents of the smallest compaction, as long as the options stay the
    /// same.
    pub least_step: usize,
    pub(crate) tree: RefCell<Tree<Rc<Table>>>,
    running: RefCell<Vec<Running>>,
    /// How often the tree or the compactions in progress have changed.
    changes: Cell<u64>,
    pub(crate) throttle: RefCell<Throttle>,
    /// The number of the newest table.
    pub(crate) newest: Cell<u64>,
    /// The number of extents that a due compaction needs and cannot get; 0 if none lacks space.
    short_of: Cell<usize>,
}

impl Tables {
    pub(crate) fn new(options: &Options, inlining: &Inlining, shape: &Shape) -> Self {
        let form = Form::new(options, shape);
        Self {
            options: options.tables,
            form,
            least_step: least_step(&form, options, inlining, shape),
            tree: RefCell::new(Tree::new(options.levels as usize)),
            running: RefCell::default(),
            changes: Cell::new(0),
            throttle: RefCell::new(Throttle::new(&options.tables)),
            newest: Cell::new(0),
            short_of: Cell::new(0),
        }
    }

    /// Returns a new table number.
    fn next_id(&self) -> TableId {
        self.newest.set(self.newest.get() + 1);
        TableId(self.newest.get())
    }

    pub(crate) fn tree(&self) -> std::cell::Ref<'_, Tree<Rc<Table>>> {
        self.tree.borrow()
    }

    fn weights(&self, shape: &Shape) -> Weights {
        Weights::of(&*self.tree(), shape.page_bytes)
    }

    /// Returns the maximum number of bytes of a full medium's tables in a checkpoint, if all tables
    /// have full size.
    pub(crate) fn most_tree_bytes(&self, shape: &Shape) -> u64 {
        let per_table = self.form.table_pages() / shape.pages_per_extent;
        let tables = shape.extents.div_ceil(per_table);
        u64::from(tables) * table_codec::most_table_bytes(per_table as usize)
    }

    /// Returns the target size of each level in pages, L0 first.
    pub(crate) fn capacities(&self, shape: &Shape) -> Vec<u64> {
        let levels = 0..self.tree().levels().len();
        levels.map(|n| self.options.target_bytes(n) as u64 / u64::from(shape.page_bytes)).collect()
    }

    /// Returns the pages with entries and the entries of each level, L0 first.
    pub(crate) fn sizes(&self) -> Vec<(u64, u64)> {
        let of = |level: &Vec<Rc<Table>>| {
            let metas = level.iter().map(|table| &table.meta);
            metas.fold((0, 0), |(pages, entries), meta| {
                (pages + u64::from(meta.data_pages), entries + meta.entries)
            })
        };
        self.tree().levels().iter().map(of).collect()
    }

    /// Returns the state of compactions as one line.
    pub(crate) fn background(&self) -> String {
        let tree = self.tree();
        let counts: Vec<usize> = tree.levels().iter().map(Vec::len).collect();
        let running = self.running.borrow();
        let running: Vec<String> =
            running.iter().map(|job| format!("L{} into L{}", job.from, job.into)).collect();
        let (stall, short) = (self.throttle.borrow().stall(), self.short_of.get());
        format!(
            "{counts:?} tables, compactions {running:?}, stall {stall:?}, {short} extents short"
        )
    }

    /// Returns the compaction load of the tree.
    pub(crate) fn load(&self, shape: &Shape) -> Load {
        let tree = self.tree();
        let pending_bytes = pending_bytes(&*tree, &self.options, &self.weights(shape));
        Load { l0: tree.level(0).len(), pending_bytes }
    }

    /// Whether compactions lag so far that writes stop.
    pub(crate) fn stops_writes(&self) -> bool {
        self.throttle.borrow().stall() == Stall::Stopped
    }

    /// Whether writes are delayed.
    pub(crate) fn delays_writes(&self) -> bool {
        self.throttle.borrow().stall() == Stall::Delayed
    }

    /// Returns the delay of a write of `bytes` bytes.
    pub(crate) fn delay(&self, now: Nanos, bytes: u64) -> Nanos {
        self.throttle.borrow_mut().delay(now, bytes)
    }

    /// Whether no compaction is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.borrow().is_empty()
    }

    fn note_change(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Whether a compaction out of L0 is in progress.
    fn l0_runs(&self) -> bool {
        self.running.borrow().iter().any(|job| job.from == 0)
    }

    /// Calls `ask` with a picker for the current tree.
    fn with_picker<T>(&self, shape: &Shape, ask: impl FnOnce(Picker<'_, Rc<Table>>) -> T) -> T {
        let (tree, running) = (self.tree(), self.running.borrow());
        ask(Picker {
            tree: &tree,
            options: &self.options,
            weights: Weights::of(&*tree, shape.page_bytes),
            form: self.form,
            running: &running,
            squeezes: false,
            is_frugal: false,
        })
    }

    /// Whether a due compaction of L0 has to wait for `job`.
    fn blocks_l0(&self, shape: &Shape, job: &TableJob) -> bool {
        self.with_picker(shape, |picker| picker.blocks_l0(job))
    }

    fn pick(
        &self,
        shape: &Shape,
        squeezes: bool,
        is_frugal: bool,
        fits: impl Fn(&TableJob) -> bool,
    ) -> Option<TableJob> {
        self.with_picker(shape, |picker| Picker { squeezes, is_frugal, ..picker }.pick(fits))
    }
}

impl<M: Medium> Inner<M> {
    pub(crate) fn tables_of(&self) -> &Tables {
        self.tables.as_ref().expect("asked for where levels are made of tables")
    }

    fn can_promise_tables(&self, extents: usize) -> bool {
        let pages = self.store.pages_of_extents(extents);
        self.store.can_promise(Stream::Tables, pages, Claimant::Compaction)
    }

    fn promise_tables(&self, extents: usize, claimant: Claimant) -> Option<Promise<'_>> {
        let pages = self.store.pages_of_extents(extents);
        self.store.try_promise(Stream::Tables, pages, claimant)
    }

    /// Whether a compaction is due and there is no space for its output.
    pub(crate) fn tables_are_starved(&self) -> bool {
        let extents = self.tables_of().short_of.get();
        extents > 0 && !self.can_promise_tables(extents)
    }

    /// Whether no compaction is in progress or due.
    pub(crate) fn tables_are_settled(&self) -> bool {
        let tables = self.tables_of();
        let pick = || tables.pick(&self.store.shape, self.is_squeezing.get(), false, |_| true);
        tables.is_idle() && pick().is_none()
    }

    /// Returns the edit for a change of the tree: pages of added tables become live, pages of
    /// removed tables become dead. A table that only moves is both added and removed.
    pub(crate) fn edit_of_tables(&self, edit: TreeEdit<Rc<Table>>) -> Edit {
        let mut changes = Changes::default();
        let tree = self.tables_of().tree();
        let is_moved = |id: TableId| {
            let stays = |(_, table): &(usize, Rc<Table>)| table.meta.id == id;
            edit.added.iter().any(stays) && edit.removed.iter().any(|(_, gone)| *gone == id)
        };
        for (_, table) in edit.added.iter().filter(|(_, table)| !is_moved(table.meta.id)) {
            for page in table.meta.page_numbers(&self.store.shape) {
                self.store.publish_page(&mut changes, page);
            }
        }
        for (level, id) in edit.removed.iter().filter(|(_, id)| !is_moved(*id)) {
            let gone = tree.level(*level).iter().find(|table| table.meta.id == *id);
            let gone = gone.expect("a compaction removes tables that are there");
            for page in gone.meta.page_numbers(&self.store.shape) {
                self.store.mark_page_dead(&mut changes, page);
            }
        }
        Edit { tables: edit, changes, ..Edit::default() }
    }

    /// Installs the tree that the edit leads to. Does not await.
    pub(crate) fn apply_to_tables(&self, edit: &TreeEdit<Rc<Table>>) {
        let tables = self.tables_of();
        let next = tables.tree().edited(edit).expect("an edit fits the tree it was made of");
        let version = Version::of_tree(&next, self.options.prefix_bytes);
        let index_bytes = self.index_memory_of(&version).index_bytes();
        let mut stats = self.stats.borrow_mut();
        stats.peak_index_bytes = stats.peak_index_bytes.max(index_bytes);
        stats.tables.most_in_l0 = stats.tables.most_in_l0.max(next.level(0).len() as u64);
        drop(stats);
        *tables.tree.borrow_mut() = next;
        tables.note_change();
        tables.throttle.borrow_mut().note(tables.load(&self.store.shape), &tables.options);
        self.expect_checkpoint_of_tables();
        self.reserve_step();
        *self.version.borrow_mut() = Rc::new(version);
        self.store.room.notify_all();
    }

    fn expect_checkpoint_of_tables(&self) {
        if let Some(manifest) = &self.manifest {
            let bytes =
                self.checkpoint_rest.get() + table_codec::tree_bytes(&*self.tables_of().tree());
            manifest.expect_checkpoint_of(&self.store, bytes);
        }
    }
}

/// Returns the maximum number of extents of a memtable that is flushed as a table.
pub(crate) fn extents_of_memtable(options: &Options, inlining: &Inlining, shape: &Shape) -> usize {
    let pages = inlining.most_pages_of_memtable(options.memtable_bytes);
    let contents = Contents::any(pages, shape.payload_bytes);
    Form::new(options, shape).extents_of_one(&contents)
}

/// Returns the maximum number of extents of the smallest compaction: a part of a table merged with
/// one table of the next level, and the rest of the former.
fn least_step(form: &Form, options: &Options, inlining: &Inlining, shape: &Shape) -> usize {
    // The upper table may be the largest of L0 or the largest of another level.
    let table = form.table_pages();
    let upper = inlining.most_pages_of_memtable(options.memtable_bytes).max(table);
    let contents = |pages: u32| {
        let pages = inlining.most_pages(pages as usize * inlining.room());
        Contents::any(pages, shape.payload_bytes)
    };
    form.extents_of_many(&contents(upper + table), 0) + form.extents_of_rest(&contents(upper))
}
