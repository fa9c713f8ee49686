//! Properties that are known but not supported: each gets a warning, unless its value equals the
//! actual behaviour.

use super::reader::Reader;

struct Ignored {
    name: &'static str,
    /// Values that equal the actual behaviour.
    harmless: &'static [&'static str],
    why: &'static str,
}

const fn ignored(
    name: &'static str,
    harmless: &'static [&'static str],
    why: &'static str,
) -> Ignored {
    Ignored { name, harmless, why }
}

const NO_RETRY: &str = "nothing is tried again, the first failure ends the run";
const WHOLE_VALUES: &str = "reads and updates are of whole values";

const NO_THETA: &str = "lengths are drawn from 0 on";
const NO_SINE: &str = "the rate is constant: set target";

const IGNORED: &[Ignored] = &[
    ignored("core_workload_insertion_retry_interval", &[], NO_RETRY),
    ignored("core_workload_insertion_retry_limit", &["0"], NO_RETRY),
    ignored("dataintegrity", &[], "every value that is read is checked, always"),
    ignored("db", &[], "the store is the design on the device"),
    ignored("dotransactions", &["true"], "a load and a run follow each other"),
    ignored("exporter", &[], "results are a table, JSON, CSV and pictures"),
    ignored("exportfile", &[], "results go to a directory of your choice (--out)"),
    ignored("fieldlengthhistogram", &["hist.txt"], "lengths are not read from files"),
    ignored("fieldnameprefix", &["field"], "fields have no names"),
    ignored("iter_theta", &["0", "0.0"], NO_THETA),
    ignored("label", &[""], "there are no status lines"),
    ignored("latencytrackederrors", &[""], NO_RETRY),
    ignored("maxexecutiontime", &["0"], "a run ends with its last operation: set operationcount"),
    ignored("measurementtype", &["hdrhistogram", "histogram"], "full histograms are kept, always"),
    ignored("mix_get_ratio", &[], "set readproportion"),
    ignored("mix_put_ratio", &[], "set updateproportion"),
    ignored("mix_seek_ratio", &[], "set scanproportion"),
    ignored("readallfields", &["true"], WHOLE_VALUES),
    ignored("readallfieldsbyname", &["false"], WHOLE_VALUES),
    ignored("reportlatencyforeacherror", &["false"], NO_RETRY),
    ignored("sine_a", &[], NO_SINE),
    ignored("sine_b", &[], NO_SINE),
    ignored("sine_c", &[], NO_SINE),
    ignored("sine_d", &[], NO_SINE),
    ignored("sine_mix_rate", &["false"], NO_SINE),
    ignored("sine_mix_rate_interval_milliseconds", &[], NO_SINE),
    ignored("sine_mix_rate_noise", &[], NO_SINE),
    ignored("status", &["", "false"], "progress shows by itself"),
    ignored("status.interval", &[], "progress shows by itself"),
    ignored("table", &["usertable"], "there is one table"),
    ignored("value_theta", &["0", "0.0"], NO_THETA),
    ignored("writeallfields", &["true"], WHOLE_VALUES),
];

pub(super) fn warnings(reader: &Reader<'_>) -> impl Iterator<Item = String> {
    IGNORED.iter().filter_map(|Ignored { name, harmless, why }| {
        let value = reader.text(name)?;
        if harmless.contains(&value) {
            return None;
        }
        Some(format!("{}: {name}={value} has no effect: {why}", reader.origin(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Properties;

    #[test]
    fn what_cannot_be_honoured_is_told_unless_it_is_done_anyway() {
        for Ignored { name, harmless, .. } in IGNORED {
            let told = |value: &str| {
                let properties = Properties::parse("w", &format!("{name}={value}")).unwrap();
                warnings(&Reader::new(&properties)).collect::<Vec<_>>()
            };
            let words = told("something else");
            let start = format!("w:1: {name}=something else has no effect: ");
            assert!(words.len() == 1 && words[0].starts_with(&start), "{words:?}");
            assert!(harmless.iter().all(|value| told(value).is_empty()), "{name}");
        }
    }
}
