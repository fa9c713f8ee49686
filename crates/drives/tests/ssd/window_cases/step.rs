//! One command of a case: its syntax and its result.

use std::fmt::Write as _;

use block::nvme::{
    Budget, EventAggregate, Events, GetLogPage, Log, LogSpan, Notice, PlmConfig, SetFeatures,
    SetId, Status, Thresholds, WindowSelect, WindowStatus,
};
use block::{Block, BlockDevice, DeviceError};
use drives::ssd::{AdminCommand, AdminCompletion, Ssd};
use goldenscript::Command;
use runtime::{Handle, Nanos, join_all};

use super::{Failure, words};
use crate::harness::ClientIo;

/// A parsed command to the drive.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Configure(SetId, PlmConfig),
    Window(SetId, WindowSelect),
    /// Command dwords 10 to 12.
    SetFeatures([u32; 3]),
    Log {
        set: SetId,
        is_raw: bool,
    },
    Status(SetId),
    Events,
    AsyncEvent,
    Read(SetId, Blocks),
    Write(SetId, Blocks),
    Discard(SetId, Blocks),
    Flush(SetId),
    Stats(SetId),
}

/// Blocks of client commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub first: u64,
    pub count: u32,
    /// Distance from one command to the next.
    pub step: u64,
    /// Commands of each client.
    pub times: u64,
    pub clients: u64,
}

impl Step {
    pub(super) fn parse(command: &Command) -> Result<Self, Failure> {
        let mut args = command.consume_args();
        let name = command.name.as_str();
        let positional: Vec<&str> = std::iter::from_fn(|| args.next_pos()).collect();
        let set = || -> Result<SetId, Failure> {
            let number = positional.first().ok_or("which set?")?.parse()?;
            Ok(SetId::new(number).ok_or("sets are numbered from 1")?)
        };
        let mut key = |name, default: u64| -> Result<u64, Failure> {
            Ok(args.take_key(name).map(str::parse).transpose()?.unwrap_or(default))
        };
        let step = match (name, positional.get(1).copied()) {
            ("events", _) => Self::Events,
            ("async-event", _) => Self::AsyncEvent,
            ("flush", _) => Self::Flush(set()?),
            ("stats", _) => Self::Stats(set()?),
            ("status", _) => Self::Status(set()?),
            ("disable", _) => Self::Configure(set()?, PlmConfig::default()),
            ("window", Some("dtwin")) => Self::Window(set()?, WindowSelect::Dtwin),
            ("window", Some("ndwin")) => Self::Window(set()?, WindowSelect::Ndwin),
            ("read" | "write" | "discard", Some(first)) => {
                let of: fn(SetId, Blocks) -> Self = match name {
                    "read" => Self::Read,
                    "write" => Self::Write,
                    _ => Self::Discard,
                };
                let blocks = key("blocks", 1)?;
                let step = key("step", if name == "read" { 0 } else { blocks })?;
                let (first, count) = (first.parse()?, blocks as u32);
                let (times, clients) = (key("times", 1)?, key("clients", 1)?);
                of(set()?, Blocks { first, count, step, times, clients })
            }
            ("enable", _) => {
                let (reads, writes) = (key("reads", 0)?, key("writes", 0)?);
                let left = Budget { reads, writes, time_ms: key("time", 0)? };
                let is_all = args.take_key("events") == Some("all");
                let events = if is_all { Events::ALL } else { Events::NONE };
                let thresholds = Thresholds { events, left };
                Self::Configure(set()?, PlmConfig { enabled: true, thresholds })
            }
            ("log", _) => Self::Log { set: set()?, is_raw: args.take_key("raw") == Some("true") },
            ("set-features", _) => {
                let feature = hexadecimal(positional.first().ok_or("which feature?")?)?;
                let mut dword = |name| args.take_key(name).map_or(Ok(0), hexadecimal);
                Self::SetFeatures([feature, dword("cdw11")?, dword("cdw12")?])
            }
            _ => return Err(format!("there is no command `{command}`").into()),
        };
        args.reject_next()?;
        Ok(step)
    }

    /// Returns the beginning of the command's output line.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Configure(set, config) if config.enabled => format!("enable set {set}"),
            Self::Configure(set, _) => format!("disable set {set}"),
            Self::Window(set, WindowSelect::Dtwin) => format!("set {set} to DTWIN"),
            Self::Window(set, WindowSelect::Ndwin) => format!("set {set} to NDWIN"),
            Self::SetFeatures([dword10, dword11, dword12]) => {
                format!("Set Features {dword10:08X}h {dword11:08X}h {dword12:08X}h")
            }
            Self::Log { set, .. } => format!("log page 0Ah of set {set}"),
            Self::Status(set) => format!("set {set}"),
            Self::Events => "log page 0Bh".to_owned(),
            Self::AsyncEvent => "asynchronous event".to_owned(),
            Self::Read(set, blocks) => format!("{} of set {set} read", words::of_blocks(blocks)),
            Self::Write(set, blocks) => {
                format!("{} of set {set} written", words::of_blocks(blocks))
            }
            Self::Discard(set, blocks) => {
                format!("{} of set {set} discarded", words::of_blocks(blocks))
            }
            Self::Flush(set) => format!("set {set} flushed"),
            Self::Stats(set) => format!("counters of set {set}"),
        }
    }

    /// Executes the command. Returns the text of the line with the time, and further lines.
    pub(super) async fn run(
        &self,
        handle: &Handle,
        drive: &Ssd,
    ) -> Result<(String, String), DeviceError> {
        let (mut what, mut more) = (self.name(), String::new());
        match self {
            Self::Configure(set, config) => drive.configure_plm(*set, *config).await?,
            Self::Window(set, window) => drive.select_window(*set, *window).await?,
            Self::SetFeatures(dwords) => _ = admin(drive, SetFeatures::OPCODE, dwords).await?,
            Self::Log { set, is_raw } => {
                let log = drive.plm_log(*set, false).await?;
                more = if *is_raw { words::bytes(*set, &log) } else { words::fields(&log) };
            }
            Self::Status(set) => {
                let log = drive.plm_log(*set, true).await?;
                write!(what, " in {}", words::status(log.status)).expect("memory");
                if log.status == WindowStatus::Dtwin {
                    write!(what, ", {} ms left", log.left.time_ms).expect("memory");
                }
                write!(what, ", events: {}", words::events(log.events)).expect("memory");
            }
            Self::Events => {
                let length_bytes = EventAggregate::bytes_for(4);
                let span = LogSpan::new(0, length_bytes).expect("whole dwords");
                let get = GetLogPage { log: Log::EventAggregate, retain: false, span };
                let page = admin(drive, GetLogPage::OPCODE, &get.dwords()).await?.data;
                let sets = EventAggregate::decode(&page).expect("four entries at most").sets;
                write!(what, ": sets with events: {}", words::listed(sets)).expect("memory");
            }
            Self::AsyncEvent => {
                let dword0 = admin(drive, Notice::OPCODE, &[]).await?.dword0;
                write!(what, ": {dword0:08X}h").expect("memory");
            }
            Self::Read(set, blocks) | Self::Write(set, blocks) | Self::Discard(set, blocks) => {
                let before = drive.report(*set)?;
                let clients = (0..blocks.clients).map(|client| self.client(handle, drive, client));
                let mut latencies = Vec::new();
                for client in join_all(clients).await {
                    latencies.extend(client?);
                }
                what.push_str(&words::found_in(&before, &drive.report(*set)?));
                what.push_str(&words::latencies(&latencies));
            }
            Self::Flush(set) => drive.flush(*set).await?,
            Self::Stats(set) => more = words::counters(&drive.report(*set)?),
        }
        Ok((what, more))
    }

    /// Runs the commands of one client, one after the other. Returns their latencies.
    async fn client(
        &self,
        handle: &Handle,
        drive: &Ssd,
        client: u64,
    ) -> Result<Vec<Nanos>, DeviceError> {
        let (Self::Read(set, of) | Self::Write(set, of) | Self::Discard(set, of)) = self else {
            unreachable!("no other command is for a client")
        };
        let mut latencies = Vec::new();
        for i in client * of.times..(client + 1) * of.times {
            let (begun, first) = (handle.now(), of.first + i * of.step);
            match self {
                Self::Read(..) => _ = drive.client_read(*set, first, of.count).await?,
                Self::Write(..) => {
                    let data = vec![Block::new(&[1]); of.count as usize];
                    drive.client_write(*set, first, data).await?;
                }
                _ => drive.discard(*set, first, u64::from(of.count)).await?,
            }
            latencies.push(handle.now() - begun);
        }
        Ok(latencies)
    }
}

fn hexadecimal(text: &str) -> Result<u32, Failure> {
    Ok(u32::from_str_radix(text.trim_end_matches('h'), 16)?)
}

/// Executes an admin command given in dwords. Its data, if any, are zeros.
async fn admin(drive: &Ssd, opcode: u8, first: &[u32]) -> Result<AdminCompletion, DeviceError> {
    let mut dwords = [0; 6];
    dwords[..first.len()].copy_from_slice(first);
    let data = vec![0; Thresholds::BYTES];
    let completion = drive.admin(&AdminCommand { opcode, namespace: 0, dwords, data }).await;
    match completion.status {
        Status::Success => Ok(completion),
        refused => Err(DeviceError::Refused(refused)),
    }
}
