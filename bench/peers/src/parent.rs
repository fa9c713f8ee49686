//! Starts a process for each peer, has them work in turns, and collects what they say.
//!
//! In every round each workload is done by one peer after the other, the bound first, each with an empty page cache; a peer that is not
//! at work has nothing left to do in the background. So what the machine does meanwhile meets all alike.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;

use crate::jail::{Jail, drop_page_cache};
use crate::peers::NAMES;
use crate::report;
use crate::task::{Outcome, Run, Task, Writer};
use crate::warm;

/// What stores are made with, and which.
#[derive(Args)]
pub struct Stores {
    /// Directory for the stores, on the drive that is measured; each peer gets one in it, which is removed in the end
    #[arg(long)]
    pub directory: PathBuf,
    /// Pairs
    #[arg(long, default_value_t = 3_000_000)]
    pub records: u64,
    /// Length of a value; keys have 32 bytes
    #[arg(long, default_value_t = 1024)]
    pub value_bytes: u64,
    /// Memory of each process in MiB, page cache included [default: a quarter of the data]
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Memtable of each store that has such, in MiB [default: 32 of this store, 64 of others]
    #[arg(long)]
    memtable_mib: Option<u64>,
    /// Peers, with commas between them [default: all]
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Read all that a store has stored before each of its workloads, as virtual drives have it that are cached by their host: what was
    /// stored last would be nearer than the rest. The page cache is emptied behind that
    #[arg(long)]
    pub warm: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File for everything as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl Stores {
    /// Those that are asked for, or all of `usual`.
    pub fn names(&self, usual: &[&str]) -> anyhow::Result<Vec<String>> {
        if let Some(unknown) = self.peers.iter().find(|name| !NAMES.contains(&name.as_str())) {
            bail!("there is no peer {unknown}: there are {}", NAMES.join(", "));
        }
        let usual = || usual.iter().map(|name| (*name).to_owned()).collect();
        Ok(if self.peers.is_empty() { usual() } else { self.peers.clone() })
    }

    /// Bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.records * (self.value_bytes + 32)
    }

    /// The memory of each process, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mib.map_or(self.data_bytes() / 4, |mib| mib << 20)
    }

    /// Bytes of a memtable, if one is wished for.
    pub fn memtable_bytes(&self) -> Option<u64> {
        self.memtable_mib.map(|mib| mib << 20)
    }

    /// Starts a process for each of `names`; and under what conditions they are.
    pub fn start(&self, names: &[String]) -> anyhow::Result<(Vec<Running>, String)> {
        std::fs::create_dir_all(&self.directory)?;
        let drops_cache = drop_page_cache();
        let running: Vec<Running> =
            names.iter().map(|name| Running::start(name, self)).collect::<Result<_, _>>()?;
        let has_limit = running.iter().all(Running::has_limit);
        let (data, memory) = (self.data_bytes(), self.memory_bytes());
        let conditions = report::conditions(self.records, data, memory, has_limit, drops_cache);
        eprintln!("{conditions}");
        Ok((running, conditions))
    }
}

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    stores: Stores,
    /// Seconds of each workload in each round; each writes ten memtables and more if peers' background work is to be seen
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Rounds
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Only workloads whose name has this in it
    #[arg(long, default_value = "")]
    only: String,
}

/// All outcomes: by workload, then by peer, one for each round.
pub type Outcomes = Vec<(String, BTreeMap<String, Vec<Outcome>>)>;

/// One peer at work.
pub struct Running {
    pub name: String,
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
    directory: PathBuf,
    _jail: Option<Jail>,
}

impl Running {
    fn start(name: &str, arguments: &Stores) -> anyhow::Result<Self> {
        let memory = arguments.memory_bytes();
        let directory = arguments.directory.join(format!("peer-{name}"));
        if directory.exists() {
            bail!(
                "{} is there already: it is of a comparison that was ended; remove it",
                directory.display()
            );
        }
        let jail = Jail::new(name, memory);
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child", "--peer", name, "--directory"])
            .arg(&directory)
            .args(["--memory", &memory.to_string(), "--records", &arguments.records.to_string()])
            .args(["--value-bytes", &arguments.value_bytes.to_string()])
            .args(["--seed", &arguments.seed.to_string()])
            .args(arguments.memtable_bytes().map(|bytes| format!("--memtable={bytes}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(jail) = &jail {
            jail.take_in(child.id()).context("cannot put a process into its memory group")?;
        }
        let tell = child.stdin.take().expect("it is a pipe");
        let hear = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Ok(Self { name: name.to_owned(), child, tell, hear, directory, _jail: jail })
    }

    fn has_limit(&self) -> bool {
        self._jail.is_some()
    }

    fn ask(&mut self, task: &Task) -> anyhow::Result<Outcome> {
        let lost = || format!("{} has ended: what it said last is above", self.name);
        writeln!(self.tell, "{}", serde_json::to_string(task)?).with_context(lost)?;
        let mut line = String::new();
        self.hear.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(lost)
    }
}

impl Running {
    /// Does a workload, with an empty page cache, and with what it has stored as near to the drive's own cache as that of others, if
    /// `warms` says so. What it leaves to be done is its own, and is over before the next peer begins.
    pub fn work(&mut self, task: &Task, warms: bool) -> anyhow::Result<Outcome> {
        if warms {
            warm::read_all(&self.directory)?;
        }
        drop_page_cache();
        let mut outcome = self.ask(task)?;
        let settled = self.ask(&Task::Settle)?;
        outcome.written_bytes += settled.written_bytes;
        Ok(outcome)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It closes its store, says nothing, and ends.
        let _ = self.ask(&Task::Quit);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The workloads in their order: reads first, then those that write.
fn workloads(seconds: f64) -> Vec<(&'static str, Task)> {
    let run = |workload: &str, distribution: &str, threads, writer| {
        let (workload, distribution) = (workload.to_owned(), distribution.to_owned());
        Task::Run(Run { workload, distribution, threads, seconds, reads: None, writer })
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
    let names = arguments.stores.names(NAMES)?;
    let (mut running, conditions) = arguments.stores.start(&names)?;
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
    if let Some(file) = &arguments.stores.json {
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
pub fn load(running: &mut [Running]) -> anyhow::Result<Outcomes> {
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
