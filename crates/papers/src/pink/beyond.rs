//! `PinK` with the number of requests of the paper, each workload on a freshly loaded drive; and
//! comparisons that a closed loop of one size does not show: equal rates, slower firmware, objects
//! of the paper's size.
//!
//! Each simulation here is one workload on a loaded drive. A drive is loaded once, saved, and
//! opened again for each simulation.

use std::sync::{Arc, Mutex};

use serde_json::json;
use stacks::kvssd::DeviceProfile;
use workload::CoreWorkload;

use super::size::{READS, SYSTEMS, Size, WITHOUT_AIDS, WORKLOADS};
use super::system::{Cell, Change, System, cell, loaded_name, sized, stand_spec, ycsb};
use crate::failure::Failure;
use crate::jobs::Job;
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;
use crate::stand::{Stand, StandSpec};

/// Factors of the firmware's times, because no publication gives the times.
pub(crate) const COSTS: [u32; 3] = [1, 5, SLOWEST];
const SLOWEST: u32 = 10;
/// Indices of the systems that are compared at equal rates and with all requests.
const COMPARED: [usize; 3] = [0, 1, 2];
/// Value bytes of an object of 1,024 bytes, including key and header, so that a page of 8 KiB has
/// eight objects.
const VALUE_BESIDE_KEY: u64 = 976;
/// Maximum number of operations under way at a rate.
const MOST_UNDER_WAY: usize = 1024;

/// Rates at which workloads are compared, in operations per second. With all requests of A and F
/// and with garbage collection, the slowest system does about 9,500 in a closed loop on the small
/// drive. The report names the systems that fall behind a rate.
pub(crate) const RATES: [(&str, f64); 6] = [
    ("a", 5_000.0),
    ("b", 40_000.0),
    ("c", 40_000.0),
    ("d", 40_000.0),
    ("f", 5_000.0),
    ("e", 500.0),
];

/// Returns the rate of a workload, in operations per second.
pub(crate) fn rate_of(workload: &str) -> f64 {
    let found = RATES.iter().find(|(name, _)| *name == workload);
    found.expect("every workload has a rate").1
}

/// A workload on a loaded drive.
struct Opened<'a> {
    /// Name of the system, from which the name of the drive is made.
    name: &'a str,
    design: &'static str,
    spec: StandSpec,
    /// The drive with its own times and costs.
    device: DeviceProfile,
    workload: &'static str,
    run: CoreWorkload,
    /// Operations per second; `None` for a closed loop.
    rate: Option<f64>,
}

/// Simulations load and open drives one at a time, so that each drive is loaded only once.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<()>>);

/// Returns a job whose result is a system with one cell.
fn job<'a>(plan: &Plan<'a>, turns: &Turns, title: String, opened: Opened<'_>) -> Job<'a, System> {
    let Opened { name, design, spec, device, workload, run, rate } = opened;
    let settings = json!({
        "loaded": spec.settings(), "device": settings::of_file(&device), "workload": settings::plain(&run), "rate": rate,
    });
    let (keeper, name, turns) = (plan.keeper, name.to_owned(), turns.clone());
    kept(keeper, title, settings, move || {
        let turn = turns.0.lock().expect("a simulation that panics ends the program");
        let mut stand = Stand::loaded(keeper, &loaded_name(&name), &spec, &device)?;
        drop(turn);
        if let Some(rate) = rate {
            stand.set_rate(rate, MOST_UNDER_WAY);
        }
        let cells = vec![cell(workload, &stand.run(run)?, &spec)];
        Ok(System { design: design.to_owned(), name, load: None, cells, levels: None })
    })
}

/// Returns all simulations, in the order of [`Beyond::of`].
pub(super) fn jobs<'a>(plan: &Plan<'a>, size: &Size) -> Result<Vec<Job<'a, System>>, Failure> {
    let turns = &Turns::default();
    let mut jobs = full(plan, turns, size)?;
    jobs.extend(rated(plan, turns, size)?);
    jobs.extend(costly(plan, turns, size)?);
    jobs.extend(with_key(plan, turns, size)?);
    jobs.push(costly_without_aids(plan, turns, size)?);
    Ok(jobs)
}

/// Results of the simulations.
pub(super) struct Beyond {
    pub full: Vec<System>,
    pub rated: Vec<System>,
    pub costly: Vec<[System; 2]>,
    pub with_key: [System; 2],
    pub costly_plain: System,
}

impl Beyond {
    pub(super) fn of(done: &mut impl Iterator<Item = System>) -> Self {
        let mut gather = |cells: usize| {
            let mut first = done.next().expect("as many came as were asked for");
            let others = done.by_ref().take(cells - 1).flat_map(|system| system.cells);
            let others: Vec<Cell> = others.collect();
            first.cells.extend(others);
            first
        };
        let full = COMPARED.map(|_| gather(FULL.len())).into();
        let rated = COMPARED.map(|system| gather(rated_workloads(system).len())).into();
        let costly = COSTS.map(|_| PAIR.map(|_| gather(COSTLY.len()))).into();
        let with_key = PAIR.map(|_| gather(WITH_KEY.len()));
        Self { full, rated, costly, with_key, costly_plain: gather(1) }
    }
}

/// Indices of hash and `PinK`.
const PAIR: [usize; 2] = [0, 2];
const FULL: [&str; 2] = ["a", "f"];
const COSTLY: [&str; 3] = ["a", "b", "c"];
const WITH_KEY: [&str; 2] = ["a", "c"];

fn full<'a>(plan: &Plan<'a>, turns: &Turns, size: &Size) -> Result<Vec<Job<'a, System>>, Failure> {
    let each = COMPARED.iter().flat_map(|system| FULL.map(|workload| (SYSTEMS[*system], workload)));
    each.map(|((design, name), workload)| {
        let spec = stand_spec(plan.seed, size, design, Change::None, 1024)?;
        let (run, device) = (sized(workload, size, size.requests, 1024)?, spec.device.clone());
        let title = format!("{name}: {}, all requests", workload.to_uppercase());
        Ok(job(
            plan,
            turns,
            title,
            Opened { name, design, spec, device, workload, run, rate: None },
        ))
    })
    .collect()
}

/// Returns the workloads of a system. Hash has no range queries.
fn rated_workloads(system: usize) -> &'static [&'static str] {
    if SYSTEMS[system].0 == "hash" { &READS } else { &WORKLOADS }
}

fn rated<'a>(plan: &Plan<'a>, turns: &Turns, size: &Size) -> Result<Vec<Job<'a, System>>, Failure> {
    let of = |system| rated_workloads(system).iter().map(move |name| (SYSTEMS[system], *name));
    let each = COMPARED.into_iter().flat_map(of);
    each.map(|((design, name), workload)| {
        let spec = stand_spec(plan.seed, size, design, Change::None, 1024)?;
        let (run, device) = (ycsb(workload, size)?, spec.device.clone());
        let rate = rate_of(workload);
        let title = format!("{name}: {} at {rate} operations/s", workload.to_uppercase());
        let rate = Some(rate);
        Ok(job(plan, turns, title, Opened { name, design, spec, device, workload, run, rate }))
    })
    .collect()
}

/// Multiplies the firmware's times for commands and for all work of the index. The pipeline time of
/// a command stays the same.
fn slower(mut device: DeviceProfile, times: u32) -> DeviceProfile {
    let times = f64::from(times);
    device.controller.command_us *= times;
    device.controller.costs = device.controller.costs.scaled(times);
    device
}

fn costly<'a>(
    plan: &Plan<'a>,
    turns: &Turns,
    size: &Size,
) -> Result<Vec<Job<'a, System>>, Failure> {
    let mut jobs = Vec::new();
    for times in COSTS {
        for (design, name) in PAIR.map(|system| SYSTEMS[system]) {
            for workload in COSTLY {
                let spec = stand_spec(plan.seed, size, design, Change::None, 1024)?;
                let (run, device) = (ycsb(workload, size)?, slower(spec.device.clone(), times));
                let title = format!("{name}: {}, firmware times {times}", workload.to_uppercase());
                let opened = Opened { name, design, spec, device, workload, run, rate: None };
                jobs.push(job(plan, turns, title, opened));
            }
        }
    }
    Ok(jobs)
}

/// C without prefixes and range pointers, with the slowest firmware, because comparisons of whole
/// keys have the largest effect there.
fn costly_without_aids<'a>(
    plan: &Plan<'a>,
    turns: &Turns,
    size: &Size,
) -> Result<Job<'a, System>, Failure> {
    let spec = stand_spec(plan.seed, size, "pink", Change::NoSearchAids, 1024)?;
    let (run, device) = (ycsb("c", size)?, slower(spec.device.clone(), SLOWEST));
    let title = format!("{WITHOUT_AIDS}: C, firmware times {SLOWEST}");
    let (name, design) = (WITHOUT_AIDS, "pink");
    Ok(job(
        plan,
        turns,
        title,
        Opened { name, design, spec, device, workload: "c", run, rate: None },
    ))
}

fn with_key<'a>(
    plan: &Plan<'a>,
    turns: &Turns,
    size: &Size,
) -> Result<Vec<Job<'a, System>>, Failure> {
    let systems = PAIR.map(|system| SYSTEMS[system]);
    let each = systems.into_iter().flat_map(|system| WITH_KEY.map(|workload| (system, workload)));
    each.map(|((design, name), workload)| {
        let spec = stand_spec(plan.seed, size, design, Change::None, VALUE_BESIDE_KEY)?;
        let run = sized(workload, size, size.operations, VALUE_BESIDE_KEY)?;
        let name = &format!("{name}, objects of 1024 B");
        let (title, device) = (format!("{name}: {}", workload.to_uppercase()), spec.device.clone());
        Ok(job(
            plan,
            turns,
            title,
            Opened { name, design, spec, device, workload, run, rate: None },
        ))
    })
    .collect()
}
