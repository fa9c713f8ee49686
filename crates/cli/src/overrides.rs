//! `--set KEY=VALUE`: assigns each key to its file or to the workload.

use anyhow::bail;
use catalogue::{Holds, Key, Override, did_you_mean};

/// The argument of `--set`: a key and its values. Several values make several runs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Setting {
    key: String,
    values: Vec<String>,
}

impl Setting {
    /// Parses a setting. Commas separate values, but a TOML list, table or string is one value.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (key, value) = crate::values::assignment(text)?;
        let is_one = value.trim_start().starts_with(['[', '{', '"', '\'']);
        let values =
            if is_one { vec![value] } else { value.split(',').map(str::to_owned).collect() };
        Ok(Self { key: key.trim().to_owned(), values })
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns a label for each value.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.values.iter().map(|value| format!("{}={value}", self.key)).collect()
    }

    /// Keeps only the value with this number.
    pub(crate) fn keep(&mut self, number: usize) {
        self.values = vec![self.values[number].clone()];
    }

    fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// A kind of file in use, and its keys.
pub(crate) struct Kind {
    /// The prefix of its keys: `design.gc_start`.
    pub(crate) name: &'static str,
    pub(crate) keys: Vec<Key>,
}

impl Kind {
    pub(crate) fn of<T: catalogue::Entry>(name: &'static str) -> Self {
        Self { name, keys: catalogue::keys::<T>() }
    }
}

/// Settings by the file or workload that they belong to.
#[derive(Default, Debug)]
pub(crate) struct Sorted {
    files: Vec<(&'static str, Override)>,
    /// Properties of the workload.
    pub(crate) properties: Vec<(String, String)>,
}

impl Sorted {
    /// Returns the settings of a kind of file.
    pub(crate) fn of(&self, kind: &str) -> Vec<Override> {
        let same = self.files.iter().filter(|(name, _)| *name == kind);
        same.map(|(_, one)| one.clone()).collect()
    }
}

/// Assigns each setting to a key of a file of one of `kinds`, or to one of `properties`.
///
/// # Errors
/// Returns an error if a key does not exist or is ambiguous.
pub(crate) fn sort(
    settings: &[Setting],
    kinds: &[Kind],
    properties: &[&'static str],
) -> anyhow::Result<Sorted> {
    let mut sorted = Sorted::default();
    for setting in settings {
        let places = places(setting, kinds, properties);
        match places[..] {
            [Place::Property] => {
                let key = setting.key.strip_prefix("workload.").unwrap_or(&setting.key);
                sorted.properties.push((key.to_owned(), setting.value().trim().to_owned()));
            }
            [Place::File(kind)] => {
                let key = within(&setting.key, kind.name);
                let found = Override::new(key, "").matches(&kind.keys);
                let text = found.first().map_or_else(
                    || setting.value().to_owned(),
                    |key| as_toml(key, setting.value()),
                );
                let given = format!("--set {key}={}", setting.value());
                sorted.files.push((kind.name, Override::by_flag(key, &text, given)));
            }
            [] => bail!("{}", unknown(setting, kinds, properties)),
            _ => {
                let names: Vec<String> = places
                    .iter()
                    .map(|place| match place {
                        Place::File(kind) => format!("{}.{}", kind.name, setting.key),
                        Place::Property => format!("workload.{}", setting.key),
                    })
                    .collect();
                bail!(
                    "--set {} may be each of {}: give the one that is meant",
                    setting.key,
                    names.join(", ")
                );
            }
        }
    }
    Ok(sorted)
}

/// Returns a value as TOML. It may be written as flags take it: `64MiB`, `1e6` and `4M` for an
/// integer, `70%` for a share, `10ms` for a time.
pub(crate) fn as_toml(key: &Key, text: &str) -> String {
    let trimmed = text.trim();
    let of_count =
        |most| report::units::parse_count_in(trimmed, 0..=most).ok().map(|count| count.to_string());
    let last = key.path.rsplit('.').next().unwrap_or(&key.path);
    let number = match key.holds {
        Holds::Whole if trimmed.parse::<i64>().is_ok() => None,
        Holds::Whole if last == "bytes" || last.ends_with("_bytes") => {
            report::units::parse_bytes(trimmed).ok().map(|bytes| bytes.to_string())
        }
        Holds::Whole => of_count(i64::MAX as u64),
        Holds::Number if trimmed.parse::<f64>().is_ok() => None,
        // `70%` of a key in percent is ambiguous: it could mean 70 or 0.7.
        Holds::Number if !last.ends_with("percent") && trimmed.ends_with('%') => trimmed
            .strip_suffix('%')
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .map(|percent| format!("{:?}", percent / 100.0)),
        Holds::Number => match nanos_of_unit(last) {
            Some(nanos) => report::units::parse_span_in(trimmed, 0..=u64::MAX)
                .ok()
                .map(|span| format!("{:?}", span as f64 / nanos)),
            None => of_count(u64::MAX),
        },
        _ => None,
    };
    number.unwrap_or_else(|| text.to_owned())
}

/// Returns the unit of times in a key's name, in nanoseconds.
fn nanos_of_unit(key: &str) -> Option<f64> {
    // The last three are fio's names.
    let units = [
        ("_s", 1e9),
        ("_ms", 1e6),
        ("_us", 1e3),
        ("_ns", 1.0),
        ("runtime", 1e9),
        ("startdelay", 1e9),
        ("thinktime", 1e3),
    ];
    units.into_iter().find(|(end, _)| key.ends_with(end)).map(|(_, nanos)| nanos)
}

enum Place<'a> {
    File(&'a Kind),
    Property,
}

fn places<'a>(setting: &Setting, kinds: &'a [Kind], properties: &[&'static str]) -> Vec<Place<'a>> {
    let matches = |kind: &&Kind| {
        let key = within(&setting.key, kind.name);
        !Override::new(key, "").matches(&kind.keys).is_empty()
    };
    let key = setting.key.strip_prefix("workload.").unwrap_or(&setting.key);
    let property = properties.contains(&key).then_some(Place::Property);
    kinds.iter().filter(matches).map(Place::File).chain(property).collect()
}

/// Returns the key without the kind of file in front of it.
fn within<'a>(key: &'a str, kind: &str) -> &'a str {
    key.strip_prefix(kind).and_then(|rest| rest.strip_prefix('.')).unwrap_or(key)
}

fn unknown(setting: &Setting, kinds: &[Kind], properties: &[&'static str]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let of_files = kinds.iter().flat_map(|kind| {
        let whole = kind.keys.iter().map(|key| format!("{}.{}", kind.name, key.path));
        whole.chain(kind.keys.iter().flat_map(|key| [key.path.clone(), last(&key.path)]))
    });
    let names: Vec<String> =
        of_files.chain(properties.iter().map(|name| (*name).to_owned())).collect();
    let hint = did_you_mean(&setting.key, names.iter().map(String::as_str));
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
    let workload = if properties.is_empty() { "" } else { ", and no property of workloads" };
    format!(
        "--set {}: there is no such key{hint} in the {}{workload}; docs/reference.md has all of them, and \
         `levelhead show NAME` prints a file",
        setting.key,
        kinds.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(texts: &[&str]) -> anyhow::Result<Sorted> {
        let settings: Vec<Setting> =
            texts.iter().map(|text| Setting::parse(text).unwrap()).collect();
        let kinds = [
            Kind::of::<stacks::design::Design>("design"),
            Kind::of::<stacks::kvssd::DeviceProfile>("device"),
            Kind::of::<blockbench::Job>("job"),
        ];
        sort(&settings, &kinds, &["recordcount", "target"])
    }

    #[test]
    fn a_key_finds_its_file() {
        let all =
            sorted(&["gc_start=0.1", "timing.read_us=[1.0, 2.0]", "recordcount=5", "iodepth=3"]);
        let all = all.unwrap();
        assert_eq!(all.of("design")[0].given(), "--set gc_start=0.1");
        assert_eq!(all.of("device").len(), 1);
        assert_eq!(all.of("job")[0].key, "iodepth");
        assert_eq!(all.properties, [("recordcount".to_owned(), "5".to_owned())]);
        let words = |text: &str| sorted(&[text]).unwrap_err().to_string();
        assert!(words("gc_strat=1").contains("(did you mean gc_start?)"));
        assert!(words("recordcuont=1").contains("(did you mean recordcount?)"));
        let name = words("description=x");
        assert!(name.contains("design.description, device.description, job.description"), "{name}");
        assert_eq!(sorted(&["job.description=x"]).unwrap().of("job").len(), 1);
    }

    #[test]
    fn values_are_written_as_flags_take_them() {
        let value = |text: &str, kind: &str| {
            let sorted = sorted(&[text]).unwrap_or_else(|error| panic!("{text}: {error}"));
            let all = sorted.of(kind);
            (all[0].value.to_string(), all[0].given().to_owned())
        };
        for (text, kind, number) in [
            ("memtable_bytes=1MiB", "design", "1048576"),
            ("memtable_bytes=1e6", "design", "1000000"),
            ("memtable_bytes=4096", "design", "4096"),
            ("pinned_levels=2", "design", "2"),
            ("gc_start=5%", "design", "0.05"),
            ("job.fill=50%", "job", "0.5"),
            ("iodepth=1k", "job", "1000"),
            ("stream.operations=1e6", "job", "1000000"),
            ("operations_per_second=20k", "job", "20000"),
            ("rate_iops=20k", "job", "\"20k\""),
            ("thinktime=10ms", "job", "10000.0"),
            ("operations_per_second=1e4", "job", "10000.0"),
            ("stream.duration_s=10s", "job", "10.0"),
            ("runtime=100ms", "job", "0.1"),
            ("stream.start_s=60s", "job", "60.0"),
            ("read_percent=70%", "job", "\"70%\""),
            ("bs=64k", "job", "\"64k\""),
            ("memtable_bytes=much", "design", "\"much\""),
        ] {
            assert_eq!(value(text, kind).0, number, "{text}");
        }
        assert_eq!(value("memtable_bytes=1MiB", "design").1, "--set memtable_bytes=1MiB");
        let keys = Kind::of::<drives::ssd::SsdProfile>("device").keys;
        let of_drive = |path: &str, text: &str| {
            as_toml(keys.iter().find(|key| key.path == path).expect("there is one"), text)
        };
        assert_eq!(of_drive("buffer.bytes", "16M"), "16777216");
        assert_eq!(of_drive("dram.bytes", "2GiB"), "2147483648");
        assert_eq!(of_drive("flash.timing.erase_us", "4ms"), "4000.0");
    }

    #[test]
    fn several_values_are_several_runs_but_a_list_is_one() {
        assert_eq!(Setting::parse("a=1,2").unwrap().labels(), ["a=1", "a=2"]);
        assert_eq!(Setting::parse("a=[1, 2]").unwrap().labels(), ["a=[1, 2]"]);
        assert!(Setting::parse("a").is_err() && Setting::parse("=1").is_err());
    }
}
