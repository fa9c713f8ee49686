//! Reads, and rebuilds of pages from the other members.
//!
//! A page is read from its own member. If that member is lost, or cannot read the page, the page is
//! rebuilt: from the same page of all other chunks of the stripe, or from another mirror. If that
//! fails too, the error gives the cause: [`MediumError::Unreadable`] for the page, or
//! [`MediumError::Gone`] if more members are lost than the layout tolerates. An extent that is not
//! open reads as empty, also if an opening or a release cut short by a power failure left something
//! in it: that is only on the member it was left on, and could not be rebuilt.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, said_len};
use runtime::{First, IoClass, Nanos, PageImage, first};

use crate::extents::bit;
use crate::layout::{Layout, Spot};
use crate::planted::Fault;
use crate::volume::{Inner, Taker};
use crate::{header, parity};

pub(crate) type Outcome = Result<PageImage, MediumError>;

/// Reads in progress, each with its member.
type Reads<M, F> = Vec<(Taker<M>, F)>;

/// The source that pages of a chunk are read from.
pub(crate) enum Plan {
    /// No source: the extent is not open.
    Closed,
    /// From `plm_cache`.
    Cached(Vec<PageImage>),
    /// From this member.
    Member(usize),
    /// From the others, because no member serves it.
    Rebuilt,
    /// From the others, because this member is outside its window. If that fails, from this member.
    Instead(usize),
    /// From this member, and after this time also from the others.
    Hedged(usize, Nanos),
    /// Not decided yet: planned again at this turn.
    Later(Turn),
}

/// A read's class, and the time at which the read may begin if it has to wait.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub class: IoClass,
    pub due: Option<Nanos>,
}

impl Turn {
    /// Returns the turn of a read that has not waited yet.
    fn first(class: IoClass) -> Self {
        Self { class, due: None }
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// A read that was submitted, by the kind of its source.
enum Way<K, R, O> {
    /// The result is known already.
    Known(K),
    /// A read of one member.
    Read(R),
    Other(Boxed<O>),
}

/// Awaits the pages in order.
fn all_of(pages: Vec<Boxed<Outcome>>) -> Boxed<Vec<Outcome>> {
    Box::pin(async move {
        let mut images = Vec::with_capacity(pages.len());
        for page in pages {
            images.push(page.await);
        }
        images
    })
}

impl<M: Medium> Inner<M> {
    fn is_open(&self, extent: ExtentId) -> bool {
        self.extents.borrow().get(extent).is_live
    }

    fn place(&self, spot: Spot) -> PageNo {
        self.stripes.place(spot.extent, spot.row, spot.offset)
    }

    /// Returns the members that have a page, in the order in which they are tried.
    pub(crate) fn sources(&self, spot: Spot) -> impl Iterator<Item = usize> {
        let serves = move |member: &usize| self.serves(*member, spot.extent, spot.row);
        self.homes(spot).filter(serves)
    }

    /// Returns the members that a page is placed on, whether they have it or not.
    fn homes(&self, spot: Spot) -> impl Iterator<Item = usize> + use<M> {
        let (home, members) = (self.stripes.home(spot), self.stripes.members());
        let copies = if self.stripes.layout() == Layout::Mirrored { members } else { 1 };
        (0..copies).map(move |step| (home + step) % members)
    }

    /// Returns the first member to read a page from, if any has it.
    fn source(&self, spot: Spot) -> Option<usize> {
        self.sources(spot).next()
    }

    /// Decides the source of pages of a chunk.
    fn plan(&self, spot: Spot, pages: u32, turn: Turn) -> Plan {
        if !self.is_open(spot.extent) {
            let home = self.stripes.home(spot);
            return if self.options.last_resort { Plan::Member(home) } else { Plan::Closed };
        }
        let windows = self.windows.borrow();
        match (windows.as_deref(), self.source(spot)) {
            (Some(windows), source) => self.plan_in_windows(windows, source, spot, pages, turn),
            (None, Some(source)) => match self.hedge_after(turn.class) {
                Some(after) if pages == 1 => Plan::Hedged(source, after),
                Some(_) | None => Plan::Member(source),
            },
            (None, None) => Plan::Rebuilt,
        }
    }

    /// Returns the time after which a read is hedged; `None` if it is not.
    fn hedge_after(&self, class: IoClass) -> Option<Nanos> {
        let has_others = !matches!(self.stripes.layout(), Layout::Striped { .. });
        self.options.hedge_after.filter(|_| has_others && class.is_for_clients())
    }

    pub(crate) fn read_page(
        self: &Rc<Self>,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Outcome> + use<M> {
        self.count(|stats| stats.reads += 1);
        self.read_in_turn(page, Turn::first(class))
    }

    pub(crate) fn read_in_turn(
        self: &Rc<Self>,
        page: PageNo,
        turn: Turn,
    ) -> impl Future<Output = Outcome> + use<M> {
        let (inner, spot, class) = (Rc::clone(self), self.stripes.spot(page), turn.class);
        let place = self.place(spot);
        // All ways submit their reads in this call, not at the first poll.
        let way = match self.plan(spot, 1, turn) {
            Plan::Closed => Way::Known(PageImage::new(&[])),
            Plan::Cached(mut pages) => Way::Known(pages.swap_remove(0)),
            Plan::Member(home) => {
                Way::Read(self.taker(home).submit(|medium| medium.read(place, class)))
            }
            Plan::Rebuilt => Way::Other(self.rebuild(spot, class)),
            Plan::Instead(home) => Way::Other(self.rebuild_or_read(home, page, class)),
            Plan::Hedged(home, after) => Way::Other(self.read_hedged(home, page, class, after)),
            Plan::Later(turn) => Way::Other(Box::pin(Rc::clone(self).read_later(page, turn))),
        };
        async move {
            match way {
                Way::Known(page) => Ok(page),
                Way::Read((taker, read)) => {
                    let read = read.await;
                    inner.read_or_rebuilt(&taker, read, page, class).await
                }
                Way::Other(other) => other.await,
            }
        }
    }

    /// Reads a page from `home`, submitted by this call. If that takes longer than `after`, also
    /// rebuilds it from the others, and returns the first result. This is a hedged request (Dean
    /// and Barroso, The Tail at Scale, 2013).
    fn read_hedged(
        self: &Rc<Self>,
        home: usize,
        page: PageNo,
        class: IoClass,
        after: Nanos,
    ) -> Boxed<Outcome> {
        let (inner, place) = (Rc::clone(self), self.place(self.stripes.spot(page)));
        let (taker, read) = self.taker(home).submit(|medium| medium.read(place, class));
        Box::pin(async move {
            let (mut read, mut late) = (Box::pin(read), inner.handle.sleep(after));
            let read = match first(&mut read, &mut late).await {
                First::Left(read) => read,
                First::Right(()) => {
                    inner.count(|stats| stats.hedged_reads += 1);
                    let mut rebuilt = inner.rebuild_for(home, inner.stripes.spot(page), class);
                    match first(&mut read, &mut rebuilt).await {
                        First::Left(read) => read,
                        First::Right(Ok(image)) => {
                            inner.count(|stats| stats.hedges_won += 1);
                            return Ok(image);
                        }
                        First::Right(Err(_)) => read.await,
                    }
                }
            };
            inner.read_or_rebuilt(&taker, read, page, class).await
        })
    }

    /// Returns the page that a member read, or rebuilds it if the read failed.
    async fn read_or_rebuilt(
        self: &Rc<Self>,
        taker: &Taker<M>,
        read: Outcome,
        page: PageNo,
        class: IoClass,
    ) -> Outcome {
        match read {
            Ok(image) if !header::is_lost(image.bytes()) => return Ok(image),
            Err(MediumError::Gone) => self.fail(taker, MediumError::Gone),
            _ => {}
        }
        self.rebuild_for(taker.index, self.stripes.spot(page), class).await
    }

    /// Rebuilds a page without reading its home. All reads are submitted by this call.
    pub(crate) fn rebuild(self: &Rc<Self>, spot: Spot, class: IoClass) -> Boxed<Outcome> {
        self.rebuild_for(self.stripes.home(spot), spot, class)
    }

    /// Rebuilds from the others the page that `member` should have at the place of `spot`.
    pub(crate) fn rebuild_for(
        self: &Rc<Self>,
        member: usize,
        spot: Spot,
        class: IoClass,
    ) -> Boxed<Outcome> {
        let page = self.page_of(spot);
        match self.stripes.layout() {
            Layout::Striped { .. } => {
                let is_there = self.serves(member, spot.extent, spot.row);
                let error =
                    if is_there { MediumError::Unreadable(page) } else { MediumError::Gone };
                Box::pin(std::future::ready(Err(error)))
            }
            Layout::Mirrored => Box::pin(Rc::clone(self).other_mirror(member, spot, class)),
            Layout::Parity { .. } => {
                let Some(reads) = self.read_others(member, spot, class) else {
                    return Box::pin(std::future::ready(Err(MediumError::Gone)));
                };
                Box::pin(Rc::clone(self).joined(reads, page))
            }
        }
    }

    /// Returns the number of the page at a position.
    pub(crate) fn page_of(&self, spot: Spot) -> PageNo {
        let in_stripe = spot.column * self.stripes.chunk_pages() + spot.offset;
        let index = spot.row * self.stripes.stripe_pages() + in_stripe;
        self.stripes.shape().page(spot.extent, index)
    }

    /// Reads the same page of all chunks of a stripe but one; `None` if another chunk is missing.
    fn read_others(
        &self,
        member: usize,
        spot: Spot,
        class: IoClass,
    ) -> Option<Reads<M, impl Future<Output = Outcome> + use<M>>> {
        let mut others = self.all() & !bit(member);
        if self.planted.has(Fault::ParityNotRotated) && spot.row > 0 {
            // The planted fault leaves the parity out, unless it is on the same member as in the
            // first stripe.
            let parity = self.stripes.parity_member(spot.extent, spot.row).expect("it has one");
            let first = self.stripes.parity_member(spot.extent, 0).expect("it has one");
            others = if parity == first { others } else { others & !bit(parity) };
        }
        let others = (0..self.stripes.members()).filter(|other| others & bit(*other) != 0);
        let others: Vec<usize> = others.collect();
        let all_serve =
            others.iter().all(|other| self.serves_rebuilds(*other, spot.extent, spot.row));
        let place = self.place(spot);
        let read = |other| self.taker(other).submit(|medium| medium.read(place, class));
        let may_be = all_serve || self.options.last_resort;
        may_be.then(|| others.into_iter().map(read).collect())
    }

    /// Returns the exclusive or of the pages that were read.
    async fn joined(
        self: Rc<Self>,
        reads: Reads<M, impl Future<Output = Outcome>>,
        number: PageNo,
    ) -> Outcome {
        let (mut sum, mut error) = (Vec::new(), None);
        let pages = reads.len() as u32;
        for (taker, read) in reads {
            match read.await {
                Ok(image) if !header::is_lost(image.bytes()) => {
                    parity::add(&mut sum, image.bytes());
                }
                Err(MediumError::Gone) => {
                    self.fail(&taker, MediumError::Gone);
                    error = Some(MediumError::Gone);
                }
                Ok(_) | Err(MediumError::Unreadable(_)) => {
                    error = error.or(Some(MediumError::Unreadable(number)));
                }
                Err(other) => error = error.or(Some(other)),
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        self.spend_on_parity(pages).await;
        self.count(|stats| stats.rebuilt_reads += 1);
        // Trailing zeros of the page are missing if all others are shorter. Its own header has its
        // length.
        let said = said_len(&sum).min(self.stripes.shape().payload_bytes as usize);
        sum.resize(said.max(sum.len()), 0);
        Ok(PageImage::new(&sum))
    }

    /// Reads a mirrored page from the members other than `member`, one after the other.
    async fn other_mirror(self: Rc<Self>, member: usize, spot: Spot, class: IoClass) -> Outcome {
        let members = self.stripes.members();
        let mut error = MediumError::Gone;
        for other in (1..members).map(|step| (member + step) % members) {
            if !self.serves(other, spot.extent, spot.row) {
                continue;
            }
            match self.read_on(other, spot, class).await {
                Ok(image) => {
                    self.count(|stats| stats.rebuilt_reads += 1);
                    return Ok(image);
                }
                // An I/O error may be transient, so it takes precedence over the errors of other
                // mirrors.
                Err(_) if matches!(error, MediumError::Io(_)) => {}
                Err(MediumError::Gone) => {}
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    /// Returns the alternatives to the page that a read returned. With windows or hedged reads the
    /// returned page may have been rebuilt, so the stored page is one of the alternatives.
    pub(crate) fn read_versions(
        self: &Rc<Self>,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        let spot = self.stripes.spot(page);
        let mut reads = Vec::new();
        if self.options.last_resort {
            reads.extend(self.homes(spot).map(|member| self.read_on(member, spot, class)));
            reads.push(self.rebuild(spot, class));
        } else if self.is_open(spot.extent) {
            let doubted = self.doubted(spot);
            let may_be_rebuilt = self.windows().is_some() || self.options.hedge_after.is_some();
            let stored = self.sources(spot).filter(|member| may_be_rebuilt || *member != doubted);
            reads.extend(stored.map(|member| self.read_on(member, spot, class)));
            if self.stripes.layout() != Layout::Mirrored {
                reads.push(self.rebuild_for(doubted, spot, class));
            }
        }
        async move {
            let mut versions = Vec::with_capacity(reads.len());
            for read in reads {
                versions.extend(read.await.ok());
            }
            versions
        }
    }

    /// Reads a page from a member that has it, without rebuilding.
    pub(crate) fn read_on(
        self: &Rc<Self>,
        member: usize,
        spot: Spot,
        class: IoClass,
    ) -> Boxed<Outcome> {
        let place = self.place(spot);
        let (inner, number) = (Rc::clone(self), self.page_of(spot));
        let (taker, read) = self.taker(member).submit(|medium| medium.read(place, class));
        Box::pin(async move {
            match read.await {
                Ok(image) if !header::is_lost(image.bytes()) => Ok(image),
                Err(MediumError::Gone) => {
                    inner.fail(&taker, MediumError::Gone);
                    Err(MediumError::Gone)
                }
                Err(MediumError::Io(code)) => Err(MediumError::Io(code)),
                Ok(_) | Err(_) => Err(MediumError::Unreadable(number)),
            }
        })
    }

    /// Returns the member whose copy of the page is doubted: the member that a read uses now. The
    /// earlier read may have used a home that has since been lost or replaced; then the only
    /// alternative is the redundancy.
    fn doubted(&self, spot: Spot) -> usize {
        let home = self.stripes.home(spot);
        let mut members = 0..self.stripes.members();
        let has_others = |source: &usize| {
            members.any(|member| member != *source && self.serves(member, spot.extent, spot.row))
        };
        self.source(spot).filter(has_others).unwrap_or(home)
    }

    /// Reads consecutive pages, with one command to a member for each chunk (or piece of it).
    pub(crate) fn read_pages(
        self: &Rc<Self>,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Outcome>> + use<M> {
        let (chunk, end) = (self.stripes.chunk_pages(), first.0 + pages);
        let most = self.windows().map_or(u32::MAX, |windows| windows.most_at_once(class));
        let (mut runs, mut at) = (Vec::new(), first.0);
        while at < end {
            let spot = self.stripes.spot(PageNo(at));
            let length = (chunk - spot.offset).min(end - at).min(most);
            self.count(|stats| stats.reads += u64::from(length));
            runs.push(Box::pin(self.read_in_chunk(PageNo(at), length, Turn::first(class))));
            at += length;
        }
        async move {
            let mut images = Vec::with_capacity(pages as usize);
            for run in runs {
                images.extend(run.await);
            }
            images
        }
    }

    /// Reads pages of one chunk.
    pub(crate) fn read_in_chunk(
        self: &Rc<Self>,
        first: PageNo,
        pages: u32,
        turn: Turn,
    ) -> impl Future<Output = Vec<Outcome>> + use<M> {
        let (inner, spot, class) = (Rc::clone(self), self.stripes.spot(first), turn.class);
        let numbers = (first.0..first.0 + pages).map(PageNo);
        let place = self.place(spot);
        let rebuild = |page| self.rebuild(self.stripes.spot(page), class);
        let instead =
            |home| numbers.clone().map(move |page| self.rebuild_or_read(home, page, class));
        let way = match self.plan(spot, pages, turn) {
            Plan::Closed => Way::Known(vec![PageImage::new(&[]); pages as usize]),
            Plan::Cached(images) => Way::Known(images),
            Plan::Member(home) => {
                Way::Read(self.taker(home).submit(|medium| medium.read_run(place, pages, class)))
            }
            Plan::Rebuilt => Way::Other(all_of(numbers.clone().map(rebuild).collect())),
            Plan::Instead(home) => Way::Other(all_of(instead(home).collect())),
            Plan::Hedged(home, after) => {
                Way::Other(all_of(vec![self.read_hedged(home, first, class, after)]))
            }
            Plan::Later(turn) => {
                Way::Other(Box::pin(Rc::clone(self).read_chunk_later(first, pages, turn)))
            }
        };
        async move {
            match way {
                Way::Known(images) => images.into_iter().map(Ok).collect(),
                Way::Read((taker, run)) => {
                    let mut images = Vec::with_capacity(pages as usize);
                    for (page, read) in numbers.zip(run.await) {
                        images.push(inner.read_or_rebuilt(&taker, read, page, class).await);
                    }
                    images
                }
                Way::Other(other) => other.await,
            }
        }
    }

    /// Raises the priority of a read that may be in progress, on its home or as part of a rebuild.
    pub(crate) fn promote_page(&self, page: PageNo) {
        let spot = self.stripes.spot(page);
        let members = match self.source(spot) {
            Some(home) => vec![self.taker(home)],
            None => self.takers(),
        };
        for taker in members {
            taker.medium.promote(self.place(spot));
        }
    }
}
