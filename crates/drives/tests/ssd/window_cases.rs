//! Golden tests of windows, in `tests/cases/*.case`: host commands, and the time at which each
//! completed. `UPDATE_GOLDENFILES=1` rewrites the expected output after a change; review it before
//! committing.
//!
//! ```text
//! device PROFILE [filled=in-order|random] [FIELD=VALUE ...]
//!                                  a new drive; fields of its profile can be changed
//! enable SET [events=all] [reads=N] [writes=N] [time=MS]
//!                                  Set Features 13h: enables windows and warnings
//! disable SET                      Set Features 13h: disables windows
//! window SET dtwin|ndwin           Set Features 14h
//! set-features FID cdw11=N cdw12=N Set Features with raw dwords
//! log SET [raw=true]               Get Log Page 0Ah: fields, or the nonzero bytes
//! status SET                       from log page 0Ah: the window, its rest, and its events,
//!                                  which are retained
//! events                           Get Log Page 0Bh
//! async-event                      Asynchronous Event Request: waits for a notice, which must be
//!                                  enabled by bit 12 of feature 0Bh
//! read | write | discard SET FIRST [blocks=N] [times=N] [step=N] [clients=N]
//!                                  `times` commands of each client, one after the other, `step`
//!                                  blocks apart; by default writes are consecutive, and reads
//!                                  repeat the same blocks
//! flush SET
//! stats SET                        nonzero counters of the firmware
//! sleep TIME                       such as 20us, 5ms, 1.5s
//! until TIME                       since the creation of the drive
//! wait                             for every command in the background
//! ```
//!
//! With `[background]` after a command the next one begins at once.

mod step;
mod words;

use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write as _;
use std::rc::Rc;

use drives::ssd::{PlmRules, Precondition, Ssd, SsdProfile};
use goldenscript::{Command, Context};
use runtime::{JoinHandle, Nanos, Runtime};

use self::step::Step;

type Failure = Box<dyn Error>;

/// The host and its drive.
struct Host {
    rt: Runtime,
    drive: Option<Ssd>,
    /// Lines not printed yet, in chronological order.
    lines: Rc<RefCell<String>>,
    background: Vec<JoinHandle<()>>,
}

impl goldenscript::Runner for Host {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Result<String, Failure> {
        match command.name.as_str() {
            "device" => self.device(command)?,
            "sleep" => {
                let until = self.rt.handle().now() + time(&only(command)?)?;
                self.sleep_until(until);
            }
            "until" => self.sleep_until(time(&only(command)?)?),
            "wait" => {
                let running = std::mem::take(&mut self.background);
                self.rt.block_on(async move {
                    for command in running {
                        command.await;
                    }
                });
            }
            _ => self.start(Step::parse(command)?, context)?,
        }
        Ok(self.lines.take())
    }
}

impl Host {
    fn new() -> Self {
        Self { rt: Runtime::new(1), drive: None, lines: Rc::default(), background: Vec::new() }
    }

    fn device(&mut self, command: &Command) -> Result<(), Failure> {
        let mut args = command.consume_args();
        let mut profile = SsdProfile::load(args.next_pos().ok_or("which profile?")?)?;
        let precondition = match args.take_key("filled") {
            None => Precondition::Empty,
            Some("in-order") => Precondition::Sequential(1.0),
            Some("random") => Precondition::Random(1.0),
            Some(other) => return Err(format!("filled={other}: in-order or random").into()),
        };
        while let Some((field, value)) = args.next_key() {
            change(&mut profile, field, value)?;
        }
        args.reject_next()?;
        self.rt = Runtime::new(1);
        self.background.clear();
        self.drive = Some(Ssd::new(&self.rt.handle(), &profile, precondition));
        Ok(())
    }

    fn sleep_until(&self, until: Nanos) {
        let handle = self.rt.handle();
        self.rt.block_on(async move { handle.sleep_until(until).await });
    }

    fn start(&mut self, step: Step, context: &Context) -> Result<(), Failure> {
        let drive = self.drive.clone().ok_or("there is no device yet")?;
        let (handle, lines) = (self.rt.handle(), Rc::clone(&self.lines));
        let command = async move {
            let begun = handle.now();
            let (mut what, more) = match step.run(&handle, &drive).await {
                Ok(done) => done,
                Err(error) => (format!("{}: {error}", step.name()), String::new()),
            };
            let took = handle.now() - begun;
            if took > Nanos::ZERO {
                write!(what, ", after {took}").expect("memory");
            }
            let at = handle.now().as_secs_f64();
            writeln!(lines.borrow_mut(), "at {at:.6} s: {what}\n{more}").expect("memory");
            trim(&mut lines.borrow_mut());
        };
        if context.tags.contains("background") {
            self.background.push(self.rt.handle().spawn("background", command));
        } else {
            self.rt.block_on(command);
        }
        Ok(())
    }
}

/// Removes empty lines at the end.
fn trim(lines: &mut String) {
    lines.truncate(lines.trim_end().len());
    lines.push('\n');
}

fn only(command: &Command) -> Result<String, Failure> {
    let mut args = command.consume_args();
    let value = args.next_pos().ok_or("an argument is missing")?.to_owned();
    args.reject_next()?;
    Ok(value)
}

fn time(text: &str) -> Result<Nanos, Failure> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number, us) = units
        .iter()
        .find_map(|(unit, us)| text.strip_suffix(unit).map(|number| (number, us)))
        .ok_or_else(|| format!("`{text}` has no unit: us, ms or s"))?;
    Ok(Nanos::from_micros_f64(number.parse::<f64>()? * us))
}

/// Sets a field of the profile, by its name in the profile file.
fn change(profile: &mut SsdProfile, field: &str, value: &str) -> Result<(), Failure> {
    if field == "has_capacitors" {
        profile.buffer.has_capacitors = value.parse()?;
        return Ok(());
    }
    if field == "rules" {
        let windows = profile.plm.as_mut().ok_or("the drive has no windows")?;
        windows.rules = match value {
            "vigil" => PlmRules::Vigil,
            "standard" => PlmRules::Standard,
            other => return Err(format!("rules={other}: vigil or standard").into()),
        };
        return Ok(());
    }
    let mut unused = 0;
    let mut windows = profile.plm.as_mut();
    let place = match field {
        "buffer_bytes" => &mut profile.buffer.bytes,
        "reclaim_reads" => &mut profile.background.reclaim_reads,
        "critical_reads" => &mut profile.background.critical_reads,
        "limit_reads" => {
            let disturb = profile.flash.read_disturb.as_mut();
            disturb.map_or(&mut unused, |disturb| &mut disturb.limit_reads)
        }
        _ => {
            let windows = windows.as_mut().ok_or("the drive has no windows")?;
            match field {
                "dtwin_time_max_ms" => &mut windows.dtwin_time_max_ms,
                "ndwin_time_min_low_ms" => &mut windows.ndwin_time_min_low_ms,
                "ndwin_time_min_high_ms" => &mut windows.ndwin_time_min_high_ms,
                "dtwin_reads_typical" => &mut windows.dtwin_reads_typical,
                "dtwin_writes_typical" => &mut windows.dtwin_writes_typical,
                _ => return Err(format!("no field `{field}` can be changed").into()),
            }
        }
    };
    *place = value.parse()?;
    Ok(())
}

#[test]
fn the_cases_hold() {
    let cases = std::fs::read_dir("tests/cases").expect("the cases are there");
    let mut cases: Vec<_> = cases.map(|case| case.expect("it can be listed").path()).collect();
    cases.sort();
    assert!(cases.len() >= 8, "{cases:?}");
    for case in cases {
        println!("{}", case.display());
        goldenscript::run(&mut Host::new(), &case).expect("it can be read and run");
    }
}
