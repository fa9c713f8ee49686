//! One job of fio as the keys of a stream.

use std::fmt::Display;

use serde_json::json;

use super::ini::{Given, Section, Wrong};
use super::units::KbBase;
use super::{units, words};
use crate::per_direction::PerDirection;
use crate::skew::Distribution;

/// The default of fio.
const BLOCK_BYTES: u64 = 4_096;
const SECOND_US: f64 = 1e6;

/// Options that are ignored, or that differ from fio.
#[derive(Default)]
pub(super) struct Passed {
    /// Line, option with value, and text of the note; each option once.
    options: Vec<(usize, String, String)>,
}

impl Passed {
    fn over(&mut self, given: &Given, why: &str) {
        self.say(given, format!(" is passed over: {why}"));
    }

    fn say(&mut self, given: &Given, words: String) {
        let shown = match &given.value {
            Some(value) => format!("{}={value}", given.name),
            None => given.name.clone(),
        };
        let is_same = |(_, other, said): &(usize, String, String)| {
            let name = other.split('=').next().unwrap_or_default();
            name == given.name && *said == words
        };
        if !self.options.iter().any(is_same) {
            self.options.push((given.line, shown, words));
        }
    }

    /// Returns the notes, in the order of the file.
    pub(super) fn notes(mut self, origin: &str) -> Vec<String> {
        self.options.sort();
        let note = |(line, shown, words): (usize, String, String)| {
            format!("{origin}:{line}: {shown}{words}")
        };
        self.options.into_iter().map(note).collect()
    }
}

/// Converts the options of a section to keys of a stream.
struct Reader<'a> {
    section: &'a Section,
    base: KbBase,
    lines: Vec<String>,
    /// The names of the options converted so far.
    read: Vec<&'static str>,
}

/// Returns the keys of the stream for a section, as lines of TOML.
pub(super) fn keys(section: &Section, passed: &mut Passed) -> Result<String, Wrong> {
    let mut reader =
        Reader { section, base: KbBase::default(), lines: Vec::new(), read: Vec::new() };
    reader.units()?;
    reader.what()?;
    reader.sizes()?;
    reader.places()?;
    reader.ends(passed)?;
    reader.loads(passed)?;
    reader.others(passed)?;
    Ok(reader.lines.join("\n"))
}

impl<'a> Reader<'a> {
    /// Returns the option with any of these names.
    fn find(&mut self, names: &[&'static str]) -> Option<&'a Given> {
        self.read.extend(names);
        let given = self.section.options.iter().rev();
        given.into_iter().find(|given| names.contains(&given.name.as_str()))
    }

    /// Returns the value of an option that requires one.
    fn value(given: &Given) -> Result<&str, Wrong> {
        let value = given.value.as_deref().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| wrong(given, "it needs a value"))?;
        if value.contains('$') {
            return Err(wrong(given, "variables are not expanded: write the value"));
        }
        Ok(value)
    }

    fn some<T>(
        &mut self,
        names: &[&'static str],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<(&'a Given, T)>, Wrong> {
        let Some(given) = self.find(names) else { return Ok(None) };
        let value = read(Self::value(given)?).map_err(|words| wrong(given, &words))?;
        Ok(Some((given, value)))
    }

    /// Returns a number other than 0. In fio 0 means that the option is not set.
    fn number(&mut self, names: &[&'static str]) -> Result<Option<u64>, Wrong> {
        let base = self.base;
        let found = self.some(names, |text| units::number(text, base))?;
        Ok(found.map(|(_, number)| number).filter(|number| *number > 0))
    }

    /// Returns a time other than 0, in microseconds.
    fn time(&mut self, names: &[&'static str], plain_us: f64) -> Result<Option<f64>, Wrong> {
        let found = self.some(names, |text| units::time_us(text, plain_us))?;
        Ok(found.map(|(_, us)| us).filter(|us| *us > 0.0))
    }

    /// Whether a flag is set: given, and not as 0.
    fn is_set(&mut self, names: &[&'static str]) -> bool {
        self.find(names).is_some_and(|given| given.value.as_deref() != Some("0"))
    }

    fn key(&mut self, key: &str, value: impl Display) {
        self.lines.push(format!("{key} = {value}"));
    }

    fn units(&mut self) -> Result<(), Wrong> {
        let base = self.some(&["kb_base"], |text| match text {
            "1024" => Ok(KbBase::Compatible),
            "1000" => Ok(KbBase::Standard),
            _ => Err("allowed are 1024 and 1000".to_owned()),
        })?;
        self.base = base.map_or(KbBase::default(), |(_, base)| base);
        Ok(())
    }

    fn what(&mut self) -> Result<(), Wrong> {
        let rw = self.some(&["rw", "readwrite"], |text| match text {
            text if text.contains(':') => {
                Err("a number behind what it does is not read: leave it out".to_owned())
            }
            "readwrite" => Ok("rw".to_owned()),
            text => Ok(text.to_owned()),
        })?;
        let rw = rw.map_or("read".to_owned(), |(_, rw)| rw);
        self.key("rw", json!(rw));
        let is_random = rw.starts_with("rand");
        if self.is_set(&["norandommap"]) && is_random {
            self.key("norandommap", true);
        }
        let distribution = self.some(&["random_distribution"], |text| {
            Distribution::parse(text).map(|distribution| distribution.to_string())
        })?;
        if let Some((_, distribution)) = distribution.filter(|_| is_random) {
            self.key("random_distribution", json!(distribution));
        }
        let percent =
            |text: &str| text.parse::<f64>().map_err(|_| "it is no percentage".to_owned());
        let reads = self.some(&["rwmixread"], percent)?;
        let writes = self.some(&["rwmixwrite"], percent)?;
        // The later one in the file counts.
        let reads = match (reads, writes) {
            (Some((of_reads, reads)), Some((of_writes, writes))) => {
                Some(if of_reads.line > of_writes.line { reads } else { 100.0 - writes })
            }
            (reads, writes) => reads.map(|r| r.1).or(writes.map(|(_, writes)| 100.0 - writes)),
        };
        if let Some(reads) = reads.filter(|_| matches!(rw.as_str(), "rw" | "randrw")) {
            self.key("read_percent", format!("{reads:?}"));
        }
        Ok(())
    }

    fn sizes(&mut self) -> Result<(), Wrong> {
        let base = self.base;
        let block = |text: &str| {
            let bytes = units::number(text, base)?;
            if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) {
                return Err(format!(
                    "`{text}` is {bytes} bytes, and the drive has blocks of 4096: give multiples"
                ));
            }
            Ok(bytes)
        };
        let one = |text: &str| PerDirection::parse(text, &BLOCK_BYTES, block);
        if let Some((_, sizes)) = self.some(&["bs", "blocksize"], one)? {
            self.key("block_bytes", json!(sizes.to_string()));
        }
        let split = |text: &str| {
            let part = |part: &str| match part.split_once('/') {
                Some((size, percent)) => Ok(format!("{}/{percent}", block(size)?)),
                None => block(part).map(|size| size.to_string()),
            };
            let direction = |text: &str| {
                let parts: Result<Vec<_>, String> = text.split(':').map(part).collect();
                parts.map(|parts| parts.join(":"))
            };
            let all: Result<Vec<_>, String> = text.split(',').map(direction).collect();
            all.map(|all| all.join(","))
        };
        if let Some((_, split)) = self.some(&["bssplit"], split)? {
            self.key("bssplit", json!(split));
        }
        let range = |text: &str| {
            let direction = |text: &str| {
                let bounds = text.split_once('-').or_else(|| text.split_once(':'));
                let (least, most) = bounds.ok_or("it is no range: 4k-64k is one")?;
                Ok(format!("{}-{}", block(least)?, block(most)?))
            };
            let all: Result<Vec<_>, String> = text.split(',').map(direction).collect();
            all.map(|all| all.join(","))
        };
        if let Some((_, range)) = self.some(&["bsrange", "blocksize_range"], range)? {
            self.key("bsrange", json!(range));
        }
        let align =
            self.some(&["blockalign", "ba"], |text| PerDirection::parse(text, &0, block))?;
        let sizes = self.some(&["bs", "blocksize"], one)?;
        let size = sizes.map_or(BLOCK_BYTES.into(), |(_, sizes)| sizes);
        match align {
            Some((given, align)) if align != size => {
                Err(wrong(given, "operations begin at multiples of bs: leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Converts the part of the drive.
    fn places(&mut self) -> Result<(), Wrong> {
        let base = self.base;
        let extent = |text: &str| match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim().parse::<f64>();
                percent.map(|_| json!(text).to_string()).map_err(|_| "it is no share".to_owned())
            }
            None => match units::number(text, base)? / BLOCK_BYTES * BLOCK_BYTES {
                0 => Err(format!("`{text}` is less than a block of the drive, 4096 bytes")),
                bytes => Ok(bytes.to_string()),
            },
        };
        let size = self.some(&["filesize"], extent)?.or(self.some(&["size"], extent)?);
        if let Some((_, size)) = size {
            self.key("size", size);
        }
        let from = |text: &str| if text == "0" { Ok("0".to_owned()) } else { extent(text) };
        if let Some((_, offset)) = self.some(&["offset"], from)? {
            self.key("offset", offset);
        }
        if let Some(further) = self.number(&["offset_increment"])? {
            self.key("offset_increment", further);
        }
        Ok(())
    }

    /// Converts the start and the end.
    fn ends(&mut self, passed: &mut Passed) -> Result<(), Wrong> {
        if self.is_set(&["stonewall", "wait_for_previous"]) {
            self.key("stonewall", true);
        }
        if let Some((_, name)) = self.some(&["wait_for"], |text| Ok(text.to_owned()))? {
            self.key("after", json!(name));
        }
        if let Some(us) = self.time(&["startdelay"], SECOND_US)? {
            self.key("start_s", format!("{:?}", us / 1e6));
        }
        let runtime = self.time(&["runtime", "timeout"], SECOND_US)?;
        if let Some(us) = runtime {
            self.key("duration_s", format!("{:?}", us / 1e6));
        }
        if let Some(operations) = self.number(&["number_ios"])? {
            self.key("operations", operations);
        }
        let is_endless = self.is_set(&["time_based"]);
        if let (Some(given), true, None) = (self.find(&["time_based"]), is_endless, runtime) {
            passed.over(given, "it has no runtime to go by");
        }
        let mut bytes = self.number(&["io_size", "io_limit"])?;
        // Next to `filesize`, `size` is the amount of I/O.
        if bytes.is_none() && self.find(&["filesize"]).is_some() {
            bytes = self.number(&["size"])?;
        }
        let loops = self.number(&["loops"])?;
        if is_endless && runtime.is_some() {
            return Ok(());
        }
        if let (Some(given), Some(2..)) = (self.find(&["loops"]), loops) {
            let words = ": random operations have a new order each time; fio repeats the first";
            passed.say(given, words.to_owned());
        }
        match bytes {
            Some(bytes) => {
                self.key("bytes", bytes);
                if let Some(loops) = loops {
                    self.key("loops", loops);
                }
            }
            None => self.key("loops", loops.unwrap_or(1)),
        }
        Ok(())
    }

    /// Converts the queue depth and the rates.
    fn loads(&mut self, passed: &mut Passed) -> Result<(), Wrong> {
        let (depth, given) = (self.number(&["iodepth"])?, self.find(&["iodepth"]));
        let engine = self.find(&["ioengine"]);
        let named = engine.and_then(|engine| engine.value.as_deref()).unwrap_or("psync");
        let several = words::does_several(named).ok_or_else(|| {
            let words = "it reads and writes no drive: give libaio, or leave it out";
            engine.map_or(Wrong::new(self.section.line, words), |given| wrong(given, words))
        })?;
        if let Some(engine) = engine {
            passed.over(engine, "operations go to the simulated drive");
        }
        if let (Some(given), Some(2..), false) = (given, depth, several) {
            let why = format!("the engine {named} does one operation at a time, as with fio");
            passed.over(given, &why);
        }
        self.key("depth", depth.filter(|_| several).unwrap_or(1));
        if let Some(jobs) = self.number(&["numjobs"])? {
            self.key("numjobs", jobs);
        }
        let base = self.base;
        let rates = |text: &str| PerDirection::parse(text, &0, |text| units::number(text, base));
        if let Some((_, rates)) = self.some(&["rate"], rates)?.filter(|(_, r)| *r != 0.into()) {
            let PerDirection { read, write, trim } = rates;
            self.key("rate", json!(format!("{read}b,{write}b,{trim}b")));
        }
        if let Some((_, rates)) = self.some(&["rate_iops"], rates)?.filter(|(_, r)| *r != 0.into())
        {
            self.key("rate_iops", json!(rates.to_string()));
        }
        if let Some((_, process)) = self.some(&["rate_process"], |text| Ok(text.to_owned()))? {
            self.key("arrivals", json!(process));
        }
        if let Some(us) = self.time(&["thinktime"], 1.0)? {
            self.key("thinktime_us", format!("{us:?}"));
            if let Some(blocks) = self.number(&["thinktime_blocks"])? {
                self.key("thinktime_blocks", blocks);
            }
        }
        // fio has two options for the one flush here.
        let every = [self.number(&["fsync"])?, self.number(&["fdatasync"])?];
        if let Some(every) = every.into_iter().flatten().filter(|every| *every > 0).min() {
            self.key("flush_every", every);
        }
        Ok(())
    }

    /// Notes all other options that may be ignored; returns an error for the first that may not.
    fn others(&mut self, passed: &mut Passed) -> Result<(), Wrong> {
        self.read.push("thinktime_blocks");
        for given in &self.section.options {
            let name = given.name.as_str();
            let is_off = matches!(given.value.as_deref(), Some("0" | "none" | "null" | "off"));
            if self.read.contains(&name) {
                continue;
            }
            if let Some(why) = words::passed_over(name) {
                passed.over(given, why);
            } else if let Some(instead) = words::not_read(name) {
                if !is_off {
                    return Err(wrong(given, &format!("{name} is not read: {instead}")));
                }
            } else {
                let names = words::names().chain(self.read.iter().copied());
                let near = catalogue::did_you_mean(name, names);
                let words = format!("{name} is no option that is read here{near}: leave it out");
                return Err(wrong(given, &words));
            }
        }
        Ok(())
    }
}

fn wrong(given: &Given, words: &str) -> Wrong {
    let shown = match &given.value {
        Some(value) => format!("{}={value}", given.name),
        None => given.name.clone(),
    };
    Wrong::new(given.line, format!("{shown}: {words}"))
}
