//! A process for each peer, with a directory and a memory limit.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;

use crate::jail::{Jail, drop_page_cache};
use crate::peers::NAMES;
use crate::report;
use crate::task::{Outcome, Task};
use crate::warm;

/// Less memory than this no store works with.
const LEAST_MEMORY: u64 = 64 << 20;

/// Which stores there are, and what is in them.
#[derive(Args, Clone)]
pub struct StoreArguments {
    /// Directory for the stores, on the drive that is measured; each peer gets one in it, which is removed in the end
    #[arg(long)]
    pub directory: PathBuf,
    /// Pairs
    #[arg(long, default_value_t = 3_000_000)]
    pub records: u64,
    /// Length of a value; keys have 32 bytes
    #[arg(long, default_value_t = 1024)]
    pub value_bytes: u64,
    /// Memory of each process in MiB, page cache included [default: a quarter of the data, 64 at least]
    #[arg(long)]
    pub memory_mib: Option<u64>,
    /// Memtable of each store that has memtables, in MiB [default: 64, and 32 for levelhead]
    #[arg(long)]
    pub memtable_mib: Option<u64>,
    /// Peers, with commas between them [default: all that the command is about]
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Read all that a store has stored before each of its workloads, as virtual drives have it that are cached by their host: what was
    /// stored last would be nearer than the rest. The page cache is emptied behind that
    #[arg(long)]
    pub warm: bool,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Stores with nothing in them.
pub struct Started {
    pub running: Vec<Running>,
    /// Under what conditions they work.
    pub conditions: String,
}

impl StoreArguments {
    /// Bytes of a pair's key and value.
    pub fn pair_bytes(&self) -> u64 {
        self.value_bytes + 32
    }

    /// The peers that take part, `usual` if none were named.
    pub fn names(&self, usual: &[&str]) -> anyhow::Result<Vec<String>> {
        if self.peers.is_empty() {
            return Ok(usual.iter().map(|name| (*name).to_owned()).collect());
        }
        if let Some(unknown) = self.peers.iter().find(|name| !NAMES.contains(&name.as_str())) {
            bail!("there is no peer {unknown}: there are {}", NAMES.join(", "));
        }
        Ok(self.peers.clone())
    }

    /// Starts them.
    pub fn start(&self, names: &[String]) -> anyhow::Result<Started> {
        std::fs::create_dir_all(&self.directory)?;
        let data = self.records * self.pair_bytes();
        let memory = self.memory_mib.map_or((data / 4).max(LEAST_MEMORY), |mib| mib << 20);
        let drops_cache = drop_page_cache();
        let started = names.iter().map(|name| Running::start(name, self, memory));
        let running = started.collect::<anyhow::Result<Vec<_>>>()?;
        let has_limit = running.iter().all(Running::has_limit);
        let conditions = report::conditions(self.records, data, memory, has_limit, drops_cache);
        Ok(Started { running, conditions })
    }
}

/// One peer at work.
pub struct Running {
    pub name: String,
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
    directory: PathBuf,
    jail: Option<Jail>,
}

impl Running {
    fn start(name: &str, arguments: &StoreArguments, memory: u64) -> anyhow::Result<Self> {
        let directory = arguments.directory.join(format!("peer-{name}"));
        if directory.exists() {
            bail!(
                "{} is there already: it is of a comparison that was ended; remove it",
                directory.display()
            );
        }
        let jail = Jail::new(name, memory);
        let memtable = arguments.memtable_mib.map(|mib| format!("--memtable-bytes={}", mib << 20));
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child", "--peer", name, "--directory"])
            .arg(&directory)
            .args(["--memory", &memory.to_string(), "--records", &arguments.records.to_string()])
            .args(["--value-bytes", &arguments.value_bytes.to_string()])
            .args(["--seed", &arguments.seed.to_string()])
            .args(memtable)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(jail) = &jail {
            jail.take_in(child.id()).context("cannot put a process into its memory group")?;
        }
        let tell = child.stdin.take().expect("it is a pipe");
        let hear = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Ok(Self { name: name.to_owned(), child, tell, hear, directory, jail })
    }

    fn has_limit(&self) -> bool {
        self.jail.is_some()
    }

    fn ask(&mut self, task: &Task) -> anyhow::Result<Outcome> {
        let told = writeln!(self.tell, "{}", serde_json::to_string(task)?);
        let mut line = String::new();
        if told.is_err() || self.hear.read_line(&mut line)? == 0 {
            bail!("{}", self.how_it_ended());
        }
        serde_json::from_str(&line).with_context(|| format!("{} said `{line}`", self.name))
    }

    fn how_it_ended(&mut self) -> String {
        if self.jail.as_ref().is_some_and(Jail::has_killed) {
            return "killed (out of memory)".to_owned();
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        format!("ended ({status}): what it said last is above")
    }

    /// Does a task, with an empty page cache, and with what it has stored as near to the drive's own cache as that of others, if
    /// `warms` says so. What it leaves to be done is its own, and is over before the next peer begins: the bytes that this writes
    /// are counted.
    pub fn work(&mut self, task: &Task, warms: bool) -> anyhow::Result<Outcome> {
        if warms {
            warm::read_all(&self.directory)?;
        }
        drop_page_cache();
        let mut outcome = self.ask(task)?;
        let settled = self.ask(&Task::Settle)?;
        outcome.settled_bytes = settled.written_bytes;
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
