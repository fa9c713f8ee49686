//! Has the peers work in turns, and collects what they say.
//!
//! In every round each workload is done by one peer after the other, the bound first, each with an empty page cache; a peer that is not
//! at work has nothing left to do in the background. So what the machine does meanwhile meets all alike.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::peers;
use crate::report;
use crate::stores::{Running, Started, StoreArguments};
use crate::task::{Outcome, Run, Task, Writer};

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    stores: StoreArguments,
    /// Seconds of each workload in each round
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// Rounds
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Only workloads whose name has this in it
    #[arg(long, default_value = "")]
    only: String,
    /// File for everything as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// All outcomes: by workload, then by peer, one for each round.
pub type Outcomes = Vec<(String, BTreeMap<String, Vec<Outcome>>)>;

/// The workloads in their order: reads first, then those that write.
fn workloads(seconds: f64) -> Vec<(&'static str, Task)> {
    let run = |workload: &str, distribution: &str, threads, writer| {
        let (workload, distribution) = (workload.to_owned(), distribution.to_owned());
        Task::Run(Run { workload, distribution, threads, seconds, writer })
    };
    vec![
        ("get uniform, 1 thread", run("c", "uniform", 1, None)),
        ("get uniform, 2 threads", run("c", "uniform", 2, None)),
        ("ycsb-c zipf, 1 thread", run("c", "zipfian", 1, None)),
        ("ycsb-c zipf, 2 threads", run("c", "zipfian", 2, None)),
        ("ycsb-a zipf, 2 threads", run("a", "zipfian", 2, None)),
        ("ycsb-e zipf, 1 thread", run("e", "zipfian", 1, None)),
        ("get beside 5000 puts/s", run("c", "uniform", 1, Some(Writer::Paced(5000.0)))),
        ("get beside a flat-out writer", run("c", "uniform", 1, Some(Writer::FlatOut))),
        ("durable puts, each", Task::Durable { batch: 1, seconds }),
        ("durable puts, in 64s", Task::Durable { batch: 64, seconds }),
    ]
}

/// Compares the peers.
pub fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let names = arguments.stores.names(&peers::usual())?;
    let Started { mut running, conditions } = arguments.stores.start(&names)?;
    eprintln!("{conditions}");
    let mut outcomes = load(&mut running)?;
    let tasks = workloads(arguments.seconds);
    for round in 1..=arguments.rounds {
        for (name, task) in tasks.iter().filter(|(name, _)| name.contains(&arguments.only)) {
            eprintln!("round {round}: {name}");
            running.retain_mut(|peer| match peer.work(task, arguments.stores.warm) {
                Ok(outcome) => {
                    add(&mut outcomes, name, &peer.name, outcome);
                    true
                }
                // Killed for want of memory, say: what the others do is still of use.
                Err(error) => {
                    eprintln!("{error:#}; it is left out from here on");
                    false
                }
            });
        }
    }
    drop(running);
    println!("{conditions}\n{}", report::tables(&outcomes, &names));
    if let Some(file) = &arguments.json {
        let json = report::json(&outcomes, &conditions);
        std::fs::write(file, format!("{}\n", serde_json::to_string_pretty(&json)?))?;
    }
    let wrong = report::mismatches(&outcomes);
    if wrong > 0 {
        bail!("{wrong} answers were wrong data");
    }
    Ok(())
}

/// Loads them, one after the other, each until it has settled.
fn load(running: &mut [Running]) -> anyhow::Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    for peer in running {
        eprintln!("load: {}", peer.name);
        let outcome = peer.work(&Task::Load, false)?;
        if let Some(error) = &outcome.error {
            bail!("{} cannot be loaded: {error}", peer.name);
        }
        add(&mut outcomes, "load", &peer.name, outcome);
    }
    Ok(outcomes)
}

fn add(outcomes: &mut Outcomes, workload: &str, peer: &str, outcome: Outcome) {
    let at = outcomes.iter().position(|(name, _)| name == workload).unwrap_or_else(|| {
        outcomes.push((workload.to_owned(), BTreeMap::new()));
        outcomes.len() - 1
    });
    outcomes[at].1.entry(peer.to_owned()).or_default().push(outcome);
}
