//! Random reads in a closed loop, as a queueing model.
//!
//! ```text
//! client -> core -> die: command on the channel, sense, data on the channel
//!        -> memory -> link -> client
//! ```
//!
//! Each station serves first come, first served. A read holds its die from the command until its
//! data have crossed the channel. A channel that becomes free carries waiting commands before
//! waiting data. A die that has sent its data asks for its next command in the same instant, so
//! that command also goes first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::Dice;

/// The resources of the drive, and the time of each step in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Stations {
    pub cores: usize,
    pub core: f64,
    /// Time without contention: firmware stages that overlap, memory access, the host.
    pub delay: f64,
    pub channels: usize,
    pub dies_per_channel: usize,
    pub command: f64,
    /// By page type; all are equally likely.
    pub sense: Vec<f64>,
    pub data: f64,
    pub memory: f64,
    pub link: f64,
}

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub per_second: f64,
    pub mean: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// A client sends a read.
    Asked(usize),
    /// Its command was decoded.
    Decoded(usize),
    /// A die has sensed a page into its register.
    Sensed(usize),
    /// A channel has carried a command or data for a die.
    Carried { die: usize, is_data: bool },
    /// A client has its data.
    Answered(usize),
}

#[derive(PartialEq)]
struct Due {
    at: f64,
    /// Among equal times, the step scheduled first goes first.
    order: u64,
    step: Step,
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.order.cmp(&self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Default)]
struct Die {
    reading: Option<usize>,
    waiting: VecDeque<usize>,
}

#[derive(Default)]
struct Channel {
    is_busy: bool,
    commands: VecDeque<usize>,
    data: VecDeque<usize>,
}

struct Model {
    stations: Stations,
    dice: Dice,
    now: f64,
    scheduled: u64,
    due: BinaryHeap<Due>,
    cores_free: Vec<f64>,
    memory_free: f64,
    link_free: f64,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    asked: Vec<f64>,
}

/// Runs `clients` clients with one read each at a time. Reads that end before `warm_up` are not
/// counted; those of the following `span` are.
pub(crate) fn closed_loop(
    stations: &Stations,
    clients: usize,
    (warm_up, span): (f64, f64),
    seed: u64,
) -> Outcome {
    let mut model = Model::new(stations.clone(), clients, seed);
    (0..clients).for_each(|client| model.after(0.0, Step::Asked(client)));
    let (mut ended, mut sum) = (0_u64, 0.0);
    while let Some(Due { at, step, .. }) = model.due.pop() {
        if at >= warm_up + span {
            break;
        }
        model.now = at;
        if let Step::Answered(client) = step
            && at >= warm_up
        {
            ended += 1;
            sum += at - model.asked[client];
        }
        model.step(step);
    }
    Outcome { per_second: ended as f64 / span * 1e6, mean: sum / ended as f64 }
}

impl Model {
    fn new(stations: Stations, clients: usize, seed: u64) -> Self {
        let dies = stations.channels * stations.dies_per_channel;
        Self {
            dice: Dice::new(seed),
            now: 0.0,
            scheduled: 0,
            due: BinaryHeap::new(),
            cores_free: vec![0.0; stations.cores],
            memory_free: 0.0,
            link_free: 0.0,
            dies: (0..dies).map(|_| Die::default()).collect(),
            channels: (0..stations.channels).map(|_| Channel::default()).collect(),
            asked: vec![0.0; clients],
            stations,
        }
    }

    fn after(&mut self, time: f64, step: Step) {
        self.scheduled += 1;
        self.due.push(Due { at: self.now + time, order: self.scheduled, step });
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Asked(client) => {
                self.asked[client] = self.now;
                let first = self.cores_free.iter_mut().min_by(|a, b| a.total_cmp(b));
                let core = first.expect("there is a core");
                *core = self.now.max(*core) + self.stations.core;
                let wait = *core - self.now;
                self.after(wait + self.stations.delay, Step::Decoded(client));
            }
            Step::Decoded(client) => {
                let die = self.dice.below(self.dies.len());
                self.dies[die].waiting.push_back(client);
                self.begin(die);
            }
            Step::Sensed(die) => {
                let channel = self.channel(die);
                self.channels[channel].data.push_back(die);
                self.carry(channel);
            }
            Step::Carried { die, is_data } => self.carried(die, is_data),
            Step::Answered(client) => self.after(0.0, Step::Asked(client)),
        }
    }

    fn channel(&self, die: usize) -> usize {
        die / self.stations.dies_per_channel
    }

    /// Starts the next read of a die, if it is idle.
    fn begin(&mut self, die: usize) {
        let this = &mut self.dies[die];
        if this.reading.is_none()
            && let Some(client) = this.waiting.pop_front()
        {
            this.reading = Some(client);
            let channel = self.channel(die);
            self.channels[channel].commands.push_back(die);
            self.carry(channel);
        }
    }

    /// Starts the next transfer of a channel, if it is free.
    fn carry(&mut self, channel: usize) {
        let this = &mut self.channels[channel];
        if this.is_busy {
            return;
        }
        let next = if let Some(die) = this.commands.pop_front() {
            Some((die, false))
        } else {
            this.data.pop_front().map(|die| (die, true))
        };
        let Some((die, is_data)) = next else { return };
        this.is_busy = true;
        let time = if is_data { self.stations.data } else { self.stations.command };
        self.after(time, Step::Carried { die, is_data });
    }

    fn carried(&mut self, die: usize, is_data: bool) {
        if is_data {
            let client = self.dies[die].reading.take().expect("its data were carried");
            let in_memory = self.memory_free.max(self.now) + self.stations.memory;
            self.memory_free = in_memory;
            let at_host = self.link_free.max(in_memory) + self.stations.link;
            self.link_free = at_host;
            self.after(at_host - self.now, Step::Answered(client));
            self.begin(die);
        } else {
            let types = self.stations.sense.len();
            let sense = self.stations.sense[self.dice.below(types)];
            self.after(sense, Step::Sensed(die));
        }
        let channel = self.channel(die);
        self.channels[channel].is_busy = false;
        self.carry(channel);
    }
}
