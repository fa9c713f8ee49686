//! A medium in memory that fails on request, and loses unsynced data at a power cut.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::ops::Range;
use std::rc::Rc;

use block::nvme::{PerSetLog, WindowSelect};
use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, Nanos, PageImage, Rng};
use volume::windows::Windowed;

/// The content of a place; `None` if it was never written or was released.
type Cell = Option<Vec<u8>>;

/// The kinds of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Read,
    Write,
    Sync,
    Open,
}

impl Command {
    pub(crate) const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::Open];
}

/// Failing commands of a kind: `times` commands, after the first `after` ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fails {
    pub command: Command,
    pub after: u64,
    pub times: u64,
}

/// The state that survives a power cut.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way to fail")]
pub(crate) struct Disk {
    pub shape: Shape,
    /// Whether any place can be written at any time. Otherwise extents are written in order.
    pub is_anywhere: bool,
    pub is_gone: bool,
    pub is_read_only: bool,
    /// Whether discards may be ignored, so that released data stays, as in a file.
    pub keeps_released: bool,
    /// Whether commands never complete, neither successfully nor with an error.
    pub is_silent: bool,
    /// The number of further commands after which it is gone.
    pub gone_after: Option<u64>,
    /// Places that cannot be read.
    pub unreadable: BTreeSet<u32>,
    /// The error code of the operating system that all reads fail with, if any.
    pub reads_end_with: Option<i32>,
    /// Commands that fail without any effect on the member's condition.
    pub fails: Vec<Fails>,
    /// Number of commands of each kind so far.
    pub given: [u64; 4],
    durable: BTreeMap<u32, Vec<u8>>,
    /// Writes that completed but are not durable, in order.
    pending: Vec<(u32, Cell)>,
    /// Writes in progress, by command number.
    under_way: BTreeMap<u64, Vec<(u32, Cell)>>,
    /// The next place to write in each extent, if writes are in order.
    next: Vec<u32>,
    commands: u64,
    /// Number of power cuts. A sync in progress detects a cut by it.
    cuts: u64,
    last_end: Nanos,
    rng: Rng,
}

impl Disk {
    pub(crate) fn new(shape: Shape, is_anywhere: bool, seed: u64) -> Self {
        Self {
            shape,
            is_anywhere,
            is_gone: false,
            is_read_only: false,
            keeps_released: false,
            is_silent: false,
            gone_after: None,
            unreadable: BTreeSet::new(),
            reads_end_with: None,
            fails: Vec::new(),
            given: [0; 4],
            durable: BTreeMap::new(),
            pending: Vec::new(),
            under_way: BTreeMap::new(),
            next: vec![0; shape.extents as usize],
            commands: 0,
            cuts: 0,
            last_end: Nanos::ZERO,
            rng: Rng::derive(seed, "disk"),
        }
    }

    fn next_end(&mut self, now: Nanos) -> Nanos {
        let span = Nanos(20_000 + self.rng.below(40_000));
        self.last_end = (now + span).max(self.last_end + Nanos(1));
        self.last_end
    }

    fn submit(&mut self) -> Result<(), MediumError> {
        self.commands += 1;
        if let Some(left) = &mut self.gone_after {
            *left = left.saturating_sub(1);
            self.is_gone |= *left == 0;
        }
        if self.is_gone { Err(MediumError::Gone) } else { Ok(()) }
    }

    fn submit_write(&mut self, command: Command) -> Result<(), MediumError> {
        self.submit()?;
        let fails = self.meets(command);
        if self.is_read_only {
            Err(MediumError::ReadOnly)
        } else if fails {
            Err(MediumError::Io(5))
        } else {
            Ok(())
        }
    }

    /// Counts a command, and returns whether it fails.
    fn meets(&mut self, command: Command) -> bool {
        self.given[command as usize] += 1;
        for fails in self.fails.iter_mut().filter(|fails| fails.command == command) {
            if fails.after > 0 {
                fails.after -= 1;
            } else if fails.times > 0 {
                fails.times -= 1;
                return true;
            }
        }
        false
    }

    /// Returns the content as it would be without a power cut: durable and pending writes.
    pub(crate) fn content(&self) -> BTreeMap<u32, Vec<u8>> {
        let mut content = self.durable.clone();
        for (place, cell) in &self.pending {
            match cell {
                Some(bytes) => content.insert(*place, bytes.clone()),
                None => content.remove(place),
            };
        }
        content
    }

    /// Returns the content of a place.
    pub(crate) fn at(&self, place: u32) -> Cell {
        let pending = self.pending.iter().rev().find(|(at, _)| *at == place);
        pending.map_or_else(|| self.durable.get(&place).cloned(), |(_, cell)| cell.clone())
    }

    fn make_durable(&mut self, place: u32, cell: Cell) {
        match cell {
            Some(bytes) => self.durable.insert(place, bytes),
            None => self.durable.remove(&place),
        };
    }

    /// Cuts power: each unsynced page is kept or lost. With ordered writes, only the newest pages
    /// are lost, and holes appear only among writes in progress.
    pub(crate) fn power_cut(&mut self, rng: &mut Rng) {
        let flying = std::mem::take(&mut self.under_way).into_values().flatten();
        let pending = std::mem::take(&mut self.pending);
        let keeps = rng.unit_f64();
        let kept = if self.is_anywhere || rng.chance(0.5) {
            pending.len()
        } else {
            // Whole units: only writes in progress are torn.
            let units = pending.len() as u64 / u64::from(self.shape.append_unit);
            (rng.below(units + 1) * u64::from(self.shape.append_unit)) as usize
        };
        let has_all = kept == pending.len() && (self.is_anywhere || !self.is_gone);
        for (place, cell) in pending.into_iter().take(kept) {
            if !self.is_anywhere || rng.chance(keeps) {
                self.make_durable(place, cell);
            }
        }
        for (place, cell) in flying.filter(|_| has_all) {
            if rng.chance(keeps) {
                self.make_durable(place, cell);
            }
        }
        self.restart();
    }

    /// Cuts power: acknowledged writes are kept, and of each unit in progress its last page.
    pub(crate) fn tear(&mut self) {
        for (place, cell) in std::mem::take(&mut self.pending) {
            self.make_durable(place, cell);
        }
        for cells in std::mem::take(&mut self.under_way).into_values() {
            let (place, cell) = cells.into_iter().next_back().expect("a unit has pages");
            self.make_durable(place, cell);
        }
        self.restart();
    }

    /// Cuts power: only synced data is kept.
    pub(crate) fn forget_unsynced(&mut self) {
        self.pending.clear();
        self.under_way.clear();
        self.restart();
    }

    /// Computes the next place to write in each extent from its content.
    fn restart(&mut self) {
        let per = self.shape.pages_per_extent;
        for (extent, next) in (0..).zip(&mut self.next) {
            let last = self.durable.range(extent * per..(extent + 1) * per).next_back();
            let unit = self.shape.append_unit;
            *next = last.map_or(0, |(place, _)| (place % per + 1).next_multiple_of(unit));
        }
        (self.gone_after, self.last_end) = (None, Nanos::ZERO);
        self.cuts += 1;
    }

    /// Whether a write at or after this place is in progress.
    pub(crate) fn writes_behind(&self, first: u32) -> bool {
        self.under_way.values().flatten().any(|(place, _)| *place >= first)
    }

    /// Makes the member answer again. Writes in progress when it went away are lost.
    pub(crate) fn come_back(&mut self) {
        (self.is_gone, self.is_read_only) = (false, false);
        self.under_way.clear();
    }

    /// Replaces the content of a place durably.
    pub(crate) fn put(&mut self, place: u32, bytes: Vec<u8>) {
        self.pending.retain(|(other, _)| *other != place);
        self.durable.insert(place, bytes);
    }

    /// Removes the content of these places durably.
    pub(crate) fn wipe(&mut self, places: Range<u32>) {
        self.pending.retain(|(place, _)| !places.contains(place));
        self.durable.retain(|place, _| !places.contains(place));
    }

    /// Flips a bit of a place. Returns false if the place has no bytes.
    pub(crate) fn flip(&mut self, place: u32) -> bool {
        let Some(mut bytes) = self.at(place).filter(|bytes| !bytes.is_empty()) else {
            return false;
        };
        let at = self.rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << self.rng.below(8);
        // The page stays as durable as it was before.
        match self.pending.iter_mut().rev().find(|(other, _)| *other == place) {
            Some((_, cell)) => *cell = Some(bytes),
            None => self.make_durable(place, Some(bytes)),
        }
        true
    }
}

/// Never returns while the member is silent.
async fn answers(disk: &RefCell<Disk>) {
    if disk.borrow().is_silent {
        std::future::pending::<()>().await;
    }
}

/// The medium. Clones share the same disk.
#[derive(Clone)]
pub(crate) struct MemoryMedium {
    handle: Handle,
    pub disk: Rc<RefCell<Disk>>,
}

impl MemoryMedium {
    pub(crate) fn new(handle: &Handle, disk: &Rc<RefCell<Disk>>) -> Self {
        Self { handle: handle.clone(), disk: Rc::clone(disk) }
    }

    fn delay(&self, least: u64) -> runtime::Sleep {
        let rng = &mut self.disk.borrow_mut().rng;
        let span = least + rng.below(4 * least);
        // Some commands take much longer, so that others overtake them.
        let span = if rng.chance(0.1) { 8 * span } else { span };
        self.handle.sleep(Nanos(span))
    }

    /// Writes `cells` after a delay.
    fn write(
        &self,
        cells: Vec<(u32, Cell)>,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let submitted = self.disk.borrow_mut().submit_write(Command::Write);
        let sleep = self.delay(20_000);
        // With ordered writes, a member that is lost must not have holes in its acknowledged data.
        let order = self.disk.borrow_mut().next_end(self.handle.now());
        let sleep = if self.is_written_anywhere() { sleep } else { self.handle.sleep_until(order) };
        let number = self.disk.borrow().commands;
        // A member that is silent has no writes in progress.
        if submitted.is_ok() && !self.disk.borrow().is_silent {
            self.disk.borrow_mut().under_way.insert(number, cells);
        }
        let disk = Rc::clone(&self.disk);
        // The write continues even if its caller stops waiting.
        self.handle.spawn("write", async move {
            sleep.await;
            answers(&disk).await;
            let mut disk = disk.borrow_mut();
            submitted?;
            let Some(cells) = disk.under_way.remove(&number).filter(|_| !disk.is_gone) else {
                return Err(MediumError::Gone);
            };
            for (place, cell) in cells {
                disk.unreadable.remove(&place);
                disk.pending.push((place, cell));
            }
            Ok(())
        })
    }
}

impl Medium for MemoryMedium {
    fn shape(&self) -> Shape {
        self.disk.borrow().shape
    }

    fn open(&self, _: ExtentId, _: u64, _: Stream) -> Result<(), MediumError> {
        let mut disk = self.disk.borrow_mut();
        if disk.is_gone {
            Err(MediumError::Gone)
        } else if disk.is_read_only {
            Err(MediumError::ReadOnly)
        } else if disk.meets(Command::Open) {
            Err(MediumError::Io(5))
        } else {
            Ok(())
        }
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        {
            let mut disk = self.disk.borrow_mut();
            let Shape { pages_per_extent, append_unit, .. } = disk.shape;
            assert_eq!(pages.len() as u32, append_unit, "an append is a unit");
            let (extent, place) =
                ((first.0 / pages_per_extent) as usize, first.0 % pages_per_extent);
            let is_next = disk.next[extent] == place;
            let takes = !disk.is_gone && !disk.is_read_only;
            assert!(disk.is_anywhere || is_next || !takes, "extent {extent}: {place} is not next");
            disk.next[extent] = place + append_unit;
        }
        let cells =
            (first.0..).zip(pages).map(|(place, page)| (place, Some(page.bytes().to_vec())));
        self.write(cells.collect())
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let submitted = self.disk.borrow_mut().submit_write(Command::Sync);
        let covered = self.disk.borrow().pending.len();
        let (sleep, disk) = (self.delay(30_000), Rc::clone(&self.disk));
        let (cells, cuts) = {
            let disk = self.disk.borrow();
            (disk.pending[..covered].to_vec(), disk.cuts)
        };
        async move {
            sleep.await;
            answers(&disk).await;
            let mut disk = disk.borrow_mut();
            submitted?;
            if disk.is_gone || disk.cuts != cuts {
                return Err(MediumError::Gone);
            }
            for (place, cell) in cells {
                if let Some(at) = disk.pending.iter().position(|p| p.0 == place && p.1 == cell) {
                    disk.pending.remove(at);
                    disk.make_durable(place, cell);
                }
            }
            Ok(())
        }
    }

    fn read(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        let submitted = self.disk.borrow_mut().submit();
        let fails = self.disk.borrow_mut().meets(Command::Read);
        let (sleep, disk) = (self.delay(5_000), Rc::clone(&self.disk));
        async move {
            sleep.await;
            answers(&disk).await;
            submitted?;
            let disk = disk.borrow();
            if let Some(code) = disk.reads_end_with.filter(|_| !disk.is_gone) {
                return Err(MediumError::Io(code));
            }
            match disk.at(page.0) {
                _ if disk.is_gone => Err(MediumError::Gone),
                _ if fails || disk.unreadable.contains(&page.0) => {
                    Err(MediumError::Unreadable(page))
                }
                Some(bytes) => Ok(PageImage::new(&bytes)),
                None if disk.is_anywhere => Ok(PageImage::new(&[])),
                None => Err(MediumError::Unreadable(page)),
            }
        }
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        let reads = (first.0..first.0 + pages).map(|page| self.read(PageNo(page), class));
        runtime::join_all(reads.collect::<Vec<_>>())
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, extent: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        let submitted = self.disk.borrow_mut().submit();
        let (sleep, disk) = (self.delay(1_000), Rc::clone(&self.disk));
        async move {
            sleep.await;
            answers(&disk).await;
            submitted?;
            let disk = disk.borrow();
            Ok(if disk.is_anywhere { 0 } else { disk.next[extent.0 as usize] })
        }
    }

    fn is_written_anywhere(&self) -> bool {
        self.disk.borrow().is_anywhere
    }

    fn unreadable_is_lost(&self, _: ExtentId) -> bool {
        self.disk.borrow().is_anywhere
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let mut disk = self.disk.borrow_mut();
        let per = disk.shape.pages_per_extent;
        let places = extent.0 * per..(extent.0 + 1) * per;
        disk.next[extent.0 as usize] = 0;
        let is_flash = !disk.is_anywhere && !disk.is_gone && !disk.is_read_only;
        if is_flash {
            // Flash runs commands on a block in order, so earlier writes in progress are erased,
            // too.
            for cells in disk.under_way.values_mut() {
                cells.retain(|(place, _)| !places.contains(place));
            }
            disk.pending.retain(|(place, _)| !places.contains(place));
            disk.durable.retain(|place, _| !places.contains(place));
            disk.unreadable.retain(|place| !places.contains(place));
        }
        // A discard may be ignored.
        let kept = disk.keeps_released.then(|| vec![(places.start, disk.at(places.start))]);
        drop(disk);
        let discarded = || places.map(|place| (place, None)).collect();
        let cells = if is_flash { Vec::new() } else { kept.unwrap_or_else(discarded) };
        self.write(cells)
    }

    fn wear(&self, _: ExtentId, _: Stream) -> u32 {
        0
    }
}

/// The medium has no windows: only a host can keep windows on it.
impl Windowed for MemoryMedium {
    fn configure_windows(&self, _: bool) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Err(MediumError::Gone))
    }

    fn select_window(
        &self,
        _: WindowSelect,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Err(MediumError::Gone))
    }

    fn window_log(&self) -> impl Future<Output = Result<PerSetLog, MediumError>> + use<> {
        ready(Err(MediumError::Gone))
    }
}
