//! The flash as its users see it: submit an operation, await its end. Steps between dies, buses
//! and cells happen here, driven by timers; nothing of a step is known to the submitter.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use runtime::{Carrier, Event, Handle, IoClass, Nanos, PageImage, Priority, Rng};

use crate::array::NandArray;
use crate::channel::{Channel, Transfer};
use crate::die::{Carries, Die, GiveWay, Needs, Next, Phase, Reading, Running, Sensed, Stage};
use crate::die::{Suspended, Waiting};
use crate::operation::{Operation, OperationId, OperationTable, Outcome, Request};
use crate::profile::{Durations, ErrorModel};
use crate::stats::FlashStats;
use crate::{BlockAddress, DieIndex, FlashProfile, Geometry, PageAddress, ReadError};

/// A drive's flash. Clones are handles to the same flash.
#[derive(Clone)]
pub struct Flash {
    inner: Rc<Inner>,
}

pub(crate) struct Inner {
    me: Weak<Inner>,
    handle: Handle,
    geometry: Geometry,
    durations: Durations,
    errors: Option<ErrorModel>,
    pub(crate) state: RefCell<State>,
}

pub(crate) struct State {
    pub array: NandArray,
    pub dies: Vec<Die>,
    pub operations: OperationTable,
    channels: Vec<Channel>,
    stats: FlashStats,
    error_rng: Rng,
    submitted: u64,
    is_write_stall: bool,
    pub is_off: bool,
}

/// Where a read runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lane {
    /// On the dies and channels that everything runs on.
    #[default]
    Shared,
    /// On dies and channels of its own over the same cells, see [`Flash::with_lane_apart`].
    Apart,
}

/// Timer tokens: a channel's number with this bit.
const CHANNEL_TOKEN: u64 = 1 << 63;
/// A die's number and a read's with this bit; without either a die's number and its generation.
const READ_TOKEN: u64 = 1 << 62;

impl Flash {
    /// Powers up `array`, which must have the geometry of `profile`.
    pub fn new(handle: Handle, profile: &FlashProfile, array: NandArray) -> Self {
        Self::with_lanes(handle, profile, array, 1)
    }

    /// The same with [`Lane::Apart`]: reads in it wait for each other only, as no flash can do it. A bound for what
    /// keeping reads and writes apart can bring.
    pub fn with_lane_apart(handle: Handle, profile: &FlashProfile, array: NandArray) -> Self {
        Self::with_lanes(handle, profile, array, 2)
    }

    fn with_lanes(handle: Handle, profile: &FlashProfile, array: NandArray, lanes: u32) -> Self {
        let geometry = profile.geometry.clone();
        let durations = Durations::new(profile);
        assert_eq!(&geometry, array.geometry(), "the array was made with another geometry");
        let state = State {
            array,
            dies: (0..lanes * geometry.dies()).map(|_| Die::new(durations.overlap)).collect(),
            channels: (0..lanes * geometry.channels)
                .map(|_| Channel::new(geometry.dies_per_channel))
                .collect(),
            operations: OperationTable::default(),
            stats: FlashStats::default(),
            error_rng: handle.rng("flash errors"),
            submitted: 0,
            is_write_stall: false,
            is_off: false,
        };
        let inner = Rc::new_cyclic(|me| Inner {
            me: me.clone(),
            handle,
            geometry,
            durations,
            errors: profile.errors.clone(),
            state: RefCell::new(state),
        });
        Self { inner }
    }

    /// The geometry of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.inner.geometry
    }

    /// Reads one page. Takes the die for tR, then the channel for one page.
    ///
    /// The operation is submitted by the call itself; awaiting the result may come later. The same
    /// holds for [`Self::program`] and [`Self::erase`].
    ///
    /// # Errors
    /// [`ReadError`]: the page is erased, or its bit errors exceed the code.
    pub fn read(&self, page: PageAddress, class: IoClass) -> PageReading {
        self.read_part(page, self.inner.geometry.page_bytes, class)
    }

    /// Reads `bytes` of one page, with their share of the code: the die senses the whole page, the
    /// channel carries that part. The image is the whole page's; which part is looked at is the
    /// caller's affair.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_part(&self, page: PageAddress, bytes: u32, class: IoClass) -> PageReading {
        self.read_in(Lane::Shared, page, bytes, class)
    }

    /// The same in a lane, which must be there.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_in(
        &self,
        lane: Lane,
        page: PageAddress,
        bytes: u32,
        class: IoClass,
    ) -> PageReading {
        debug_assert!(bytes <= self.inner.geometry.page_bytes);
        PageReading(self.submit_in(lane, Request::Read(page, bytes), class))
    }

    /// A client waits for `page` now, which is being read as a prefetch in [`Lane::Shared`]: from here on that read is
    /// on demand. Nothing happens if no such read is under way.
    pub fn promote(&self, page: PageAddress) {
        let (block, _) = self.inner.geometry.locate(page);
        let die = self.inner.geometry.die_of(block);
        self.inner.promote(&mut self.inner.state.borrow_mut(), die, page);
    }

    /// Whether clients' writes wait for background work. As long as they do, that has half of the time
    /// of a die that both want, instead of a turn when its deadline has passed.
    pub fn set_write_stall(&self, is_on: bool) {
        self.inner.state.borrow_mut().is_write_stall = is_on;
    }

    /// Programs one program unit starting at `first`. When the result is there, it is durable.
    ///
    /// The pages of a block must be submitted in order and at one priority; see `NandArray`.
    pub fn program(
        &self,
        first: PageAddress,
        images: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<> {
        let submitted = self.submit(Request::Program(first, images), class);
        async {
            let outcome = submitted.await;
            assert!(outcome.is_ok(), "programs do not fail in this model");
        }
    }

    /// Erases one block.
    pub fn erase(&self, block: BlockAddress, class: IoClass) -> impl Future<Output = ()> + use<> {
        let submitted = self.submit(Request::Erase(block), class);
        async {
            let outcome = submitted.await;
            assert!(outcome.is_ok(), "erases do not fail in this model");
        }
    }

    fn submit(&self, request: Request, class: IoClass) -> InFlight {
        self.submit_in(Lane::Shared, request, class)
    }

    fn submit_in(&self, lane: Lane, request: Request, class: IoClass) -> InFlight {
        let id = self.inner.submit(lane, request, class);
        InFlight { inner: Rc::clone(&self.inner), id, is_taken: false }
    }

    /// Operations submitted so far; what crash points are counted in.
    pub fn submitted(&self) -> u64 {
        self.inner.state.borrow().submitted
    }

    /// Counters so far.
    pub fn stats(&self) -> FlashStats {
        let (state, now) = (self.inner.state.borrow(), self.inner.handle.now());
        let mut stats = state.stats.clone();
        // A die's time is counted when it comes to rest; some have not for long.
        for since in state.dies.iter().filter_map(|die| die.busy_since) {
            stats.die_busy += now - since;
        }
        stats
    }

    /// Whether no operation is under way.
    pub fn is_at_rest(&self) -> bool {
        let state = self.inner.state.borrow();
        let are_idle = state.dies.iter().all(Die::is_at_rest);
        are_idle && state.channels.iter().all(Channel::is_at_rest)
    }

    /// Carries what flash at rest remembers besides its cells ([`NandArray::carry_block`]).
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        let state = &mut *self.inner.state.borrow_mut();
        state.dies.iter_mut().try_for_each(|die| die.carry(by))?;
        state.channels.iter_mut().try_for_each(|channel| channel.carry(by))?;
        state.stats.carry(by)?;
        state.error_rng.carry(by)?;
        by.u64(&mut state.submitted)?;
        by.bool(&mut state.is_write_stall)
    }

    /// Looks at the cells without taking time: for format, recovery scans and tests.
    pub fn with_array<T>(&self, look: impl FnOnce(&mut NandArray) -> T) -> T {
        look(&mut self.inner.state.borrow_mut().array)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// What a read brings, to come. Dropping it does not stop the hardware.
#[must_use = "the read goes on without it, but nobody learns what it brought"]
pub struct PageReading(InFlight);

impl Future for PageReading {
    type Output = Result<PageImage, ReadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map_ok(|page| page.expect("a read that did not fail brings a page"))
    }
}

/// An operation's outcome to come. Dropping it does not stop the hardware.
struct InFlight {
    inner: Rc<Inner>,
    id: OperationId,
    is_taken: bool,
}

impl Future for InFlight {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Self { inner, id, is_taken } = &mut *self;
        let operations = &mut inner.state.borrow_mut().operations;
        let operation = operations.get(*id);
        if let Some(outcome) = operation.outcome.take() {
            *is_taken = true;
            operations.remove(*id);
            return Poll::Ready(outcome);
        }
        match &mut operation.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let operations = &mut self.inner.state.borrow_mut().operations;
        let operation = operations.get(self.id);
        if operation.outcome.is_some() {
            operations.remove(self.id);
        } else {
            operation.is_abandoned = true;
        }
    }
}

impl Event for Inner {
    fn fire(&self, token: u64) {
        let state = &mut *self.state.borrow_mut();
        if state.is_off {
            return;
        }
        if token & CHANNEL_TOKEN != 0 {
            self.transfer_ended(state, (token & !CHANNEL_TOKEN) as u32);
        } else if token & READ_TOKEN != 0 {
            let die = DieIndex(((token & !READ_TOKEN) >> 32) as u32);
            self.sensed(state, die, OperationId(token as u32));
        } else {
            let (die, generation) = (DieIndex((token >> 32) as u32), token as u32);
            if state.dies[die.0 as usize].generation == generation {
                self.array_step_ended(state, die);
            }
        }
    }
}

impl Inner {
    /// Dies of [`Lane::Apart`] come behind the others, and so do its channels.
    fn die_in(&self, lane: Lane, block: BlockAddress) -> DieIndex {
        let die = self.geometry.die_of(block);
        match lane {
            Lane::Shared => die,
            Lane::Apart => DieIndex(die.0 + self.geometry.dies()),
        }
    }

    fn channel_of(&self, die: DieIndex) -> u32 {
        let channel = self.geometry.channel_of(die);
        let is_apart = die.0 >= self.geometry.dies();
        if is_apart { channel + self.geometry.channels } else { channel }
    }

    fn submit(&self, lane: Lane, request: Request, class: IoClass) -> OperationId {
        let state = &mut *self.state.borrow_mut();
        state.submitted += 1;
        if let Request::Read(page, _) = &request {
            state.array.prefetch_place(*page);
        }
        let (block, needs) = self.needs(&request);
        let die = self.die_in(lane, block);
        let now = self.handle.now();
        let target = &mut state.dies[die.0 as usize];
        let operation = Operation {
            request,
            class,
            priority: class.priority(),
            submitted: now,
            blocked_by: target.blocker(needs),
            waker: None,
            outcome: None,
            is_abandoned: false,
        };
        let id = state.operations.insert(operation);
        target.waiting.push(class.priority(), Waiting { id, needs });
        self.let_read_end(state, die);
        self.attend(state, die);
        id
    }

    /// The block that an operation is for, and what it takes of its die.
    fn needs(&self, request: &Request) -> (BlockAddress, Needs) {
        match request {
            Request::Read(page, _) => {
                let (block, index) = self.geometry.locate(*page);
                let sensor = self.geometry.plane(index) % self.durations.overlap.sensors;
                (block, Needs::Sensor(sensor))
            }
            Request::Program(page, _) => (self.geometry.locate(*page).0, Needs::All),
            Request::Erase(block) => (*block, Needs::All),
        }
    }

    fn promote(&self, state: &mut State, die: DieIndex, page: PageAddress) {
        let State { dies, operations, .. } = state;
        let this = &mut dies[die.0 as usize];
        let promoted = this.waiting.promote(|w| operations.get(w.id).is_read_of(page));
        let waiting = promoted.map(|w| w.id);
        let mut under_way = this.readings.iter().map(|reading| reading.id);
        let reading = under_way.find(|id| operations.get(*id).is_read_of(page));
        let Some(id) = waiting.or(reading) else { return };
        operations.get(id).priority = Priority::Demand;
        if reading == Some(id) {
            state.channels[self.channel_of(die) as usize].promote(id);
        }
        self.let_read_end(state, die);
        self.attend(state, die);
    }

    /// A prefetch that waits for the bus occupies its die: if somebody on demand wants the die, it
    /// is not passed over there, or both would wait for as long as others keep the bus busy.
    fn let_read_end(&self, state: &mut State, die: DieIndex) {
        let this = &state.dies[die.0 as usize];
        let is_sending = |reading: &Reading| matches!(reading.stage, Stage::DataOut(_));
        if this.demand_read_waits() && this.readings.iter().any(is_sending) {
            state.channels[self.channel_of(die) as usize].promote_die(die);
        }
    }

    /// Starts whatever the die can start now.
    fn attend(&self, state: &mut State, die: DieIndex) {
        if state.is_off {
            return; // submitted after a power cut: it waits for ever
        }
        let now = self.handle.now();
        let suspend = self.durations.suspend.as_ref();
        let this = &mut state.dies[die.0 as usize];
        match this.phase {
            Phase::Idle => self.attend_idle(state, die),
            Phase::Running(_) => match this.give_way(now, suspend) {
                GiveWay::No => {}
                GiveWay::Now => self.suspend(state, die),
                GiveWay::At(instant) => {
                    if let Phase::Running(running) = &mut this.phase {
                        running.is_rechecked = true;
                    }
                    let token = die_token(die, this.generation);
                    self.arm(instant, token);
                }
            },
            Phase::OnBus(_) | Phase::Suspending(_) => {}
        }
    }

    /// Starts what there is room for beside the reads that are under way.
    fn attend_idle(&self, state: &mut State, die: DieIndex) {
        let (now, deadline) = (self.handle.now(), self.durations.background_deadline);
        let suspend = self.durations.suspend.as_ref();
        loop {
            let this = &mut state.dies[die.0 as usize];
            if !matches!(this.phase, Phase::Idle) || !this.has_room() {
                return;
            }
            match this.choose_next(now, deadline, suspend, state.is_write_stall) {
                Next::Start(id) => self.start(state, die, id),
                Next::Resume(suspended) => return self.resume(state, die, suspended),
                Next::Nothing if this.readings.is_empty() => return self.rest(state, die),
                Next::Nothing => return,
            }
        }
    }

    fn start(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let now = self.handle.now();
        state.dies[die.0 as usize].busy_since.get_or_insert(now);
        let operation = state.operations.get(id);
        match &operation.request {
            Request::Read(..) => {
                if operation.class == IoClass::ClientRead {
                    state.stats.count_wait(operation.blocked_by, now - operation.submitted);
                }
                let (_, needs) = self.needs(&operation.request);
                let Needs::Sensor(sensor) = needs else { unreachable!("it is a read") };
                let reading = Reading { id, sensor, stage: Stage::Command };
                state.dies[die.0 as usize].readings.push(reading);
                match self.durations.command_on_channel {
                    Some(span) => self.command(state, die, id, span),
                    None => self.sense(state, die, id),
                }
            }
            Request::Program(first, images) => {
                state.array.assert_programmable(*first, images.len());
                let data = self.durations.transfer_page * images.len() as u64;
                let command = self.durations.command_on_channel.unwrap_or(Nanos::ZERO);
                self.enter(state, die, Phase::OnBus(Carries::DataIn), None);
                self.ask_for_bus(state, die, id, command + data);
            }
            Request::Erase(_) => match self.durations.command_on_channel {
                Some(span) => {
                    self.enter(state, die, Phase::OnBus(Carries::EraseCommand), None);
                    self.command(state, die, id, span);
                }
                None => self.run_erase(state, die, id),
            },
        }
    }

    /// Has the channel carry a command for `span`.
    fn command(&self, state: &mut State, die: DieIndex, id: OperationId, span: Nanos) {
        let channel = self.channel_of(die);
        if state.channels[channel as usize].request_command(Transfer { die, id, span }) {
            self.occupy(state, channel, span);
        }
    }

    fn sense(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let (block, index) = self.geometry.locate(read_page(state.operations.get(id)));
        let page_type = self.geometry.page_type(index);
        let is_disturbed = self
            .durations
            .disturb_limit
            .is_some_and(|limit| state.array.read_count(block) >= limit);
        let (retries, is_readable) = self.draw_retries(state);
        let is_readable = is_readable && !is_disturbed;
        let sense = self.durations.read[page_type as usize];
        let this = &mut state.dies[die.0 as usize];
        let sensor = this.reading(id).sensor;
        let moving = self.durations.overlap.cache.filter(|_| this.is_sending(sensor));
        let span = self.durations.command + sense + self.durations.retry * retries;
        this.reading(id).stage = Stage::Sensing(Sensed { is_readable });
        let token = READ_TOKEN | die_token(die, id.0);
        self.arm(self.handle.now() + span + moving.unwrap_or(Nanos::ZERO), token);
    }

    fn run_erase(&self, state: &mut State, die: DieIndex, id: OperationId) {
        self.run(state, die, id, self.durations.command + self.durations.erase, true);
    }

    /// Extra senses this read will need, and whether it succeeds in the end.
    fn draw_retries(&self, state: &mut State) -> (u64, bool) {
        let Some(errors) = &self.errors else {
            return (0, true);
        };
        let mut retries = 0;
        while state.error_rng.chance(errors.retry_probability) {
            if retries == errors.max_retries {
                return (u64::from(retries), false);
            }
            retries += 1;
            state.stats.read_retries += 1;
        }
        (u64::from(retries), true)
    }

    fn run(&self, state: &mut State, die: DieIndex, id: OperationId, span: Nanos, is_erase: bool) {
        let since = self.handle.now();
        let running =
            Running { id, is_erase, since, ends: since + span, suspends: 0, is_rechecked: false };
        self.enter(state, die, Phase::Running(running), Some(span));
        self.attend(state, die);
    }

    fn suspend(&self, state: &mut State, die: DieIndex) {
        let Phase::Running(running) = state.dies[die.0 as usize].phase else {
            unreachable!("only a running operation is suspended")
        };
        let durations = self.durations.suspend.as_ref().expect("checked by give_way");
        let now = self.handle.now();
        let span = durations.suspending(running.is_erase).expect("checked by give_way");
        if running.is_erase {
            state.stats.erase_suspends += 1;
        } else {
            state.stats.program_suspends += 1;
        }
        let suspended = Suspended {
            id: running.id,
            is_erase: running.is_erase,
            since: now,
            remaining: running.ends - now,
            suspends: running.suspends + 1,
        };
        self.enter(state, die, Phase::Suspending(suspended), Some(span));
    }

    fn resume(&self, state: &mut State, die: DieIndex, suspended: Suspended) {
        let durations = self.durations.suspend.as_ref().expect("something was suspended");
        let since = self.handle.now() + durations.resume;
        let running = Running {
            id: suspended.id,
            is_erase: suspended.is_erase,
            since,
            ends: since + suspended.remaining,
            suspends: suspended.suspends,
            is_rechecked: false,
        };
        let span = durations.resume + suspended.remaining;
        self.enter(state, die, Phase::Running(running), Some(span));
        self.attend(state, die);
    }

    fn rest(&self, state: &mut State, die: DieIndex) {
        if let Some(since) = state.dies[die.0 as usize].busy_since.take() {
            state.stats.die_busy += self.handle.now() - since;
        }
    }

    /// Puts the die in `phase`, with a timer for its end if that is known. Older timers are void.
    fn enter(&self, state: &mut State, die: DieIndex, phase: Phase, span: Option<Nanos>) {
        let this = &mut state.dies[die.0 as usize];
        this.phase = phase;
        this.generation = this.generation.wrapping_add(1);
        if let Some(span) = span {
            self.arm(self.handle.now() + span, die_token(die, this.generation));
        }
    }

    fn arm(&self, at: Nanos, token: u64) {
        let me = self.me.upgrade().expect("the flash is alive while it is used");
        self.handle.fire_at(at, me, token);
    }

    fn ask_for_bus(&self, state: &mut State, die: DieIndex, id: OperationId, span: Nanos) {
        let channel = self.channel_of(die);
        let priority = state.operations.get(id).priority;
        if state.channels[channel as usize].request(Transfer { die, id, span }, priority) {
            self.occupy(state, channel, span);
        }
        self.let_read_end(state, die);
    }

    fn occupy(&self, state: &mut State, channel: u32, span: Nanos) {
        self.arm(self.handle.now() + span, CHANNEL_TOKEN | u64::from(channel));
        state.stats.channel_busy += span;
    }

    fn transfer_ended(&self, state: &mut State, channel: u32) {
        let Transfer { die, id, .. } = state.channels[channel as usize].ended();
        // The die that is free now has its next command carried before others' data, if it has one.
        let has_commands = self.durations.command_on_channel.is_some();
        if !has_commands {
            self.carry_next(state, channel);
        }
        self.carried(state, die, id);
        if has_commands {
            self.carry_next(state, channel);
        }
    }

    fn carry_next(&self, state: &mut State, channel: u32) {
        if let Some(span) = state.channels[channel as usize].go_on() {
            self.occupy(state, channel, span);
        }
    }

    /// The die goes on with what the channel has carried for it.
    fn carried(&self, state: &mut State, die: DieIndex, id: OperationId) {
        match &state.operations.get(id).request {
            Request::Read(..) => match state.dies[die.0 as usize].reading(id).stage {
                Stage::Command => self.sense(state, die, id),
                Stage::DataOut(sensed) => self.sent(state, die, id, sensed),
                Stage::Sensing(_) | Stage::Waiting(_) => {
                    unreachable!("a transfer belongs to a read that is on the bus")
                }
            },
            Request::Erase(_) => self.run_erase(state, die, id),
            Request::Program(first, _) => {
                let (_, index) = self.geometry.locate(*first);
                let program = self.durations.program_of(self.geometry.page_type(index));
                self.run(state, die, id, self.durations.command + program, false);
            }
        }
    }

    /// The page of a read has crossed the channel.
    fn sent(&self, state: &mut State, die: DieIndex, id: OperationId, sensed: Sensed) {
        let this = &mut state.dies[die.0 as usize];
        let sensor = this.reading(id).sensor;
        this.readings.retain(|reading| reading.id != id);
        let next = this.readings.iter_mut().find_map(|reading| match reading.stage {
            Stage::Waiting(sensed) if reading.sensor == sensor => Some((reading.id, sensed)),
            _ => None,
        });
        if let Some((next, sensed)) = next {
            self.send(state, die, next, sensed);
        }
        let outcome = bring(state, id, sensed);
        let class = state.operations.get(id).class;
        state.stats.of_mut(class).pages_read += 1;
        state.operations.finish(id, outcome, &self.handle);
        self.attend(state, die);
    }

    /// A page has been sensed.
    fn sensed(&self, state: &mut State, die: DieIndex, id: OperationId) {
        state.array.prefetch_image(read_page(state.operations.get(id)));
        let this = &mut state.dies[die.0 as usize];
        let Reading { sensor, stage: Stage::Sensing(sensed), .. } = *this.reading(id) else {
            unreachable!("a sense ends once")
        };
        if this.is_sending(sensor) {
            this.reading(id).stage = Stage::Waiting(sensed);
        } else {
            self.send(state, die, id, sensed);
        }
    }

    /// A page asks for the channel. With cache read its sensor is free for the next.
    fn send(&self, state: &mut State, die: DieIndex, id: OperationId, sensed: Sensed) {
        state.dies[die.0 as usize].reading(id).stage = Stage::DataOut(sensed);
        let Request::Read(_, bytes) = state.operations.get(id).request else {
            unreachable!("only reads sense")
        };
        self.ask_for_bus(state, die, id, self.durations.transfer_of(bytes));
        if self.durations.overlap.cache.is_some() {
            self.attend(state, die);
        }
    }

    fn array_step_ended(&self, state: &mut State, die: DieIndex) {
        let now = self.handle.now();
        let this = &mut state.dies[die.0 as usize];
        match &this.phase {
            Phase::Running(running) if now < running.ends => self.attend(state, die),
            Phase::Running(running) => {
                let id = running.id;
                this.phase = Phase::Idle;
                complete(state, id, &self.handle);
                self.attend(state, die);
            }
            Phase::Suspending(suspended) => {
                this.suspended = Some(*suspended);
                this.phase = Phase::Idle;
                self.attend(state, die);
            }
            Phase::Idle | Phase::OnBus(_) => unreachable!("no timer is armed in this phase"),
        }
    }
}

fn die_token(die: DieIndex, generation: u32) -> u64 {
    u64::from(die.0) << 32 | u64::from(generation)
}

fn read_page(operation: &Operation) -> PageAddress {
    let Request::Read(page, _) = operation.request else { unreachable!("only reads sense") };
    page
}

/// What a read brings at the end of its transfer. The die was held since it sensed the page, so
/// the cells still are what they were then.
fn bring(state: &mut State, id: OperationId, sensed: Sensed) -> Outcome {
    let image = state.array.read(read_page(state.operations.get(id)))?;
    if sensed.is_readable { Ok(Some(image)) } else { Err(ReadError::Uncorrectable) }
}

/// A program or erase has reached its end: the cells change now, and the submitter learns of it.
fn complete(state: &mut State, id: OperationId, handle: &Handle) {
    apply(state, id);
    state.operations.finish(id, Ok(None), handle);
}

/// What a program or erase does to the cells.
pub(crate) fn apply(state: &mut State, id: OperationId) {
    let operation = state.operations.get(id);
    let counts = state.stats.of_mut(operation.class);
    match &mut operation.request {
        Request::Program(first, images) => {
            counts.pages_programmed += images.len() as u64;
            state.array.program(*first, std::mem::take(images));
        }
        Request::Erase(block) => {
            counts.blocks_erased += 1;
            state.array.erase(*block);
        }
        Request::Read(..) => unreachable!("a read does not run in the array"),
    }
}
