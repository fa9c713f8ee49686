//! Opening a store without its memory: from manifest and log.
//!
//! The newest checkpoint is restored and the edits after it are replayed. Then the extents are
//! compared with the medium, which may contain more: pages that were written but never committed
//! are released, or left as holes. Before that, pinned levels are read. Then the log from the last
//! flush on is replayed into memtables, and a new checkpoint records the resulting state. A power
//! cut at any point before leaves the old checkpoint in force. Cost: one read of each extent's
//! header, the journal, and the pinned levels.

use std::rc::Rc;

use super::found::Scan;
use super::open::Setup;
use super::tree_dump;
use crate::engine::{Engine, Inner};
use crate::error::OpenError;
use crate::manifest::{Manifest, RunStart, edit_codec};
use crate::medium::Medium;
use crate::planted::Fault;
use crate::sizing::LevelPlan;
use crate::space::extents::Extents;
use crate::version::level::{NamedSegment, Segment};
use crate::version::location::Location;
use crate::version::table::TableMeta;
use crate::version::tree::Tree;
use crate::version::{LevelEdit, Version};

/// The state after replaying checkpoint and edits.
struct Replayed {
    version: Version,
    tables: Option<Tree<Rc<TableMeta>>>,
    extents: Extents,
    plan: LevelPlan,
}

impl<M: Medium> Engine<M> {
    /// Opens the store on a medium, or creates a new one if nothing was ever written there.
    /// Requires a design with a log. Background tasks start at once.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(setup: Setup<M>) -> Result<Self, OpenError> {
        Self::open_on(setup, None).await
    }

    /// Like [`Self::open`], with log and manifest on a separate medium: see
    /// [`Self::create_with_journal`].
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::ForeignJournal`] if `journal` does not belong to the data.
    ///
    /// # Panics
    /// Panics if the design has no log.
    pub async fn open_with_journal(setup: Setup<M>, journal: M) -> Result<Self, OpenError> {
        Self::open_on(setup, Some(journal)).await
    }

    async fn open_on(setup: Setup<M>, journal: Option<M>) -> Result<Self, OpenError> {
        let mut engine = Self::build_on(setup, journal)?;
        let scan = engine.inner.store.scan().await?;
        let Some(scan) = scan else {
            engine.inner.front.check_memtables()?;
            engine.inner.store.release_torn().await?;
            engine.start_tasks();
            return Ok(engine);
        };
        let inner = Rc::get_mut(&mut engine.inner).expect("nobody has it yet");
        inner.manifest = Some(Manifest::new(scan.manifest_extents()));
        engine.inner.restore(scan).await?;
        // The heap memory of the journal's pages has been freed; its amount is not known.
        engine.inner.store.handle.note_freed(u64::MAX);
        engine.start_tasks();
        Ok(engine)
    }
}

impl<M: Medium> Inner<M> {
    async fn restore(self: &Rc<Self>, mut scan: Scan) -> Result<(), OpenError> {
        let store = &self.store;
        store.id.set(scan.id);
        let Replayed { version, tables, extents, plan } = self.replay(&scan)?;
        let had = plan.clone();
        let mut has_outgrown_its_plan = self.restore_plan(self.plan_by_memory(plan, &version));
        self.front.check_memtables()?;
        let flushed = self.flushed.get();
        let from = store.first_group_to_replay(flushed);
        let log = scan.take_log_from(from)?;
        store.restore_extents(extents);
        // All reads are done before anything is written: if a read fails, nothing has changed.
        let version = match tables {
            Some(_) => version,
            None => match self.with_pinned_levels(version.clone()).await {
                // A store that opens with less memory must not fail to open because it has more.
                Err(_) if self.plan.borrow().pinned > had.pinned => {
                    has_outgrown_its_plan = self.restore_plan(had);
                    self.with_pinned_levels(version).await?
                }
                version => version?,
            },
        };
        store.settle_extents(&scan, &log).await?;
        if let Some(tables) = tables {
            self.open_tables(&tables).await?;
        } else {
            version.assert_consistent();
            self.account(&version);
            if has_outgrown_its_plan {
                self.set_index_aside(&version);
            }
            *self.version.borrow_mut() = Rc::new(version);
        }
        let next = self.front.replay_log(from, log.groups, flushed.sequence)?;
        let (sync, extents) = (self.options.log_sync, log.extents.into());
        let manifest = self.manifest.as_ref().expect("a store that is reopened has one");
        let start = RunStart { run: scan.next_run, group: next };
        self.front.set_up_log(manifest, sync, start, extents);
        Ok(self.write_checkpoint(manifest).await?)
    }

    /// Replays checkpoint and edits.
    fn replay(&self, scan: &Scan) -> Result<Replayed, OpenError> {
        let bad = || OpenError::DamagedJournal("an edit of the manifest cannot be read");
        let (checkpoint, edits) = scan.manifest.split_first().ok_or(OpenError::NoManifest)?;
        let empty = Rc::clone(&self.version.borrow());
        let restored = tree_dump::restore(checkpoint, &empty, &self.home());
        let restored = restored.ok_or(OpenError::BadDump)?;
        self.front.sequence.set(restored.sequence);
        self.flushed.set(restored.flushed);
        *self.cursors.borrow_mut() = restored.cursors;
        let (plan, mut version, mut extents) = (restored.plan, restored.version, restored.extents);
        extents.begin_run(scan.noted_run);
        let mut tables = restored.tables;
        for bytes in edits {
            let edit = edit_codec::decode(bytes, &self.home()).ok_or_else(bad)?;
            version = version.replay(edit.levels).ok_or_else(bad)?;
            tables = match tables {
                Some(tables) => Some(tables.edited(&edit.tables).ok_or_else(bad)?),
                None => None,
            };
            extents.replay(&edit.changes, &self.store.format).ok_or_else(bad)?;
            if let Some(flushed) = edit.flushed {
                // No sequence number is used twice: a write with an old number would count as
                // flushed.
                let sequence = self.front.sequence.get().max(flushed.sequence);
                if !self.planted.has(Fault::SequenceGoesBack) {
                    self.front.sequence.set(sequence);
                }
                self.flushed.set(flushed);
            }
            if let Some(id) = edit.retired {
                extents.replay_retired(id).ok_or_else(bad)?;
            }
        }
        let shape = &self.store.shape;
        let of_tables = tables.iter().flat_map(Tree::tables);
        let of_tables = of_tables.flat_map(|table| table.page_numbers(shape));
        if !extents.count_index_pages(version.pages().chain(of_tables)) {
            return Err(OpenError::DamagedJournal("it counts other index pages than levels have"));
        }
        let extents = extents.settled();
        Ok(Replayed { version, tables, extents, plan })
    }

    /// Reads the pinned levels.
    async fn with_pinned_levels(&self, mut version: Version) -> Result<Version, OpenError> {
        let pinned = self.plan.borrow().pinned as usize;
        for n in 0..pinned.min(version.levels().len()) {
            let level = Rc::clone(&version.levels()[n]);
            if level.totals().groups > 0 {
                // a level with groups was not pinned when they were written, and is not pinned now
                continue;
            }
            let images = self.load(&level, 0..level.len()).await?;
            let cached = |(named, image): (NamedSegment, runtime::PageImage)| {
                let page = named.segment.location.pages().next();
                let location = Location::Cached(page.expect("it was read from there"), image);
                let segment = Segment::new(location, named.segment.entries, &self.pool);
                NamedSegment { segment, ..named }
            };
            let new = level.named(0..level.len()).into_iter().zip(images).map(cached).collect();
            version = version.edited(vec![LevelEdit { level: n, range: 0..level.len(), new }]);
        }
        Ok(version)
    }
}
