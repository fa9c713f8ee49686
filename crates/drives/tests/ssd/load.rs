//! Clients with one command in flight each, and their throughput.

use std::cell::RefCell;
use std::rc::Rc;

use block::Block;
use block::nvme::SetId;
use drives::ssd::Ssd;
use runtime::{Handle, Nanos, Rng};

use crate::harness::ClientIo;

/// Returns the set with this number.
pub(crate) fn set(id: u16) -> SetId {
    SetId::new(id).expect("sets are counted from 1")
}

/// The next command of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Read { set: SetId, first: u64, blocks: u32 },
    Write { set: SetId, first: u64, blocks: u32 },
}

/// Executes a command and returns its latency.
pub(crate) async fn run(handle: &Handle, ssd: &Ssd, command: Command) -> Nanos {
    let start = handle.now();
    match command {
        Command::Read { set, first, blocks } => {
            ssd.client_read(set, first, blocks).await.expect("it can be read");
        }
        Command::Write { set, first, blocks } => {
            let data = vec![Block::new(&[1]); blocks as usize];
            ssd.client_write(set, first, data).await.expect("it can be written");
        }
    }
    handle.now() - start
}

/// Commands that ended in the measured time.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    span: Nanos,
    pub latencies: Vec<Nanos>,
}

impl Measured {
    pub(crate) fn commands(&self) -> u64 {
        self.latencies.len() as u64
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.commands() as f64 / self.span.as_secs_f64()
    }

    /// Returns the ratio of the measured commands to `per_second`. Asserts that it does not exceed
    /// 1, apart from the commands that were `under_way` when the measurement began.
    pub(crate) fn share_of(&self, per_second: f64, under_way: usize) -> f64 {
        let most = per_second * self.span.as_secs_f64();
        let commands = self.commands() as f64;
        assert!(commands <= most + under_way as f64, "{commands} commands, where {most} fit");
        commands / most
    }

    pub(crate) fn mean(&self) -> Nanos {
        Nanos(self.latencies.iter().copied().sum::<Nanos>().0 / self.commands().max(1))
    }
}

/// Runs `clients` clients, each of which executes the commands of `next`, one after the other.
/// Commands that end within `warm_up` are not counted; those of the following `span` are.
pub(crate) async fn closed_loop(
    handle: &Handle,
    ssd: &Ssd,
    clients: usize,
    (warm_up, span): (Nanos, Nanos),
    next: impl Fn(usize, &mut Rng) -> Command + 'static,
) -> Measured {
    let from = handle.now() + warm_up;
    let to = Nanos(from.0.saturating_add(span.0));
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let next = Rc::new(next);
    let client = |number: usize| {
        let (handle, ssd, next) = (handle.clone(), ssd.clone(), Rc::clone(&next));
        let latencies = Rc::clone(&latencies);
        let mut rng = handle.rng(&format!("client {number}"));
        async move {
            while handle.now() < to {
                let took = run(&handle, &ssd, next(number, &mut rng)).await;
                if (from..to).contains(&handle.now()) {
                    latencies.borrow_mut().push(took);
                }
            }
        }
    };
    let running: Vec<_> =
        (0..clients).map(|number| handle.spawn("client", client(number))).collect();
    for client in running {
        client.await;
    }
    Measured { span, latencies: latencies.take() }
}
