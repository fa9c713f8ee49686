//! Settings of a simulation: everything that the result depends on, in a form that does not change
//! with the program.
//!
//! Keys are those of files and properties that users write, not the names of Rust fields. Default
//! values are left out, so that a new option with a default does not change the settings.

use kvbench::BenchSpec;
use kvbench::platform::Platform;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use workload::{Arrivals, ClientOptions, CoreWorkload, Pace};

/// Returns the settings of a value that was loaded from a file, such as a design, a drive or a
/// host, without its description.
///
/// Cost: deserializes the value once for each key.
pub(super) fn of_file<T: Serialize + DeserializeOwned + PartialEq>(loaded: &T) -> Value {
    let mut settings = plain(loaded);
    let is_same = |settings: &Value| T::deserialize(settings).is_ok_and(|read| read == *loaded);
    assert!(is_same(&settings), "what is written is read back: {settings}");
    leave_out_defaults(&mut settings, "", &is_same);
    if let Some(keys) = settings.as_object_mut() {
        keys.remove("description");
    }
    settings
}

/// Removes each key below `path` whose removal does not change the value.
fn leave_out_defaults(settings: &mut Value, path: &str, is_same: &impl Fn(&Value) -> bool) {
    let keys = |settings: &Value| settings.pointer(path).and_then(Value::as_object).cloned();
    for (key, value) in keys(settings).unwrap_or_default() {
        let table = settings.pointer_mut(path).and_then(Value::as_object_mut);
        let table = table.expect("its keys were listed");
        table.remove(&key);
        if is_same(settings) {
            continue;
        }
        let table = settings.pointer_mut(path).and_then(Value::as_object_mut);
        table.expect("as above").insert(key.clone(), value);
        leave_out_defaults(settings, &format!("{path}/{key}"), is_same);
    }
}

/// Returns the settings of a value that has no file: each field that is not `None`.
pub(super) fn plain(of: &impl Serialize) -> Value {
    let mut settings = serde_json::to_value(of).expect("settings are numbers, words and tables");
    leave_out_nulls(&mut settings);
    settings
}

fn leave_out_nulls(settings: &mut Value) {
    match settings {
        Value::Object(keys) => {
            keys.retain(|_, value| !value.is_null());
            keys.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

/// Returns the settings of workloads that run one after the other, with their names in results.
pub(super) fn of_runs(runs: &[(&str, CoreWorkload)]) -> Value {
    runs.iter().map(|(name, run)| json!({ "name": name, "workload": plain(run) })).collect()
}

/// Returns the settings of a bench. Requires: the bench replays no trace; no reproduction does.
pub(super) fn of_bench(spec: &BenchSpec) -> Value {
    // Destructured without `..`, here and below, so that a new field does not compile until it is
    // added to the settings or left out on purpose.
    let BenchSpec {
        configuration,
        design,
        platform,
        workload_name,
        workload,
        clients,
        trace,
        seed,
        precondition,
        ages,
        at_rest,
        sample_every,
    } = spec;
    assert!(trace.is_none(), "a trace is none of the settings");
    let mut settings = json!({
        "configuration": configuration, "design": of_file(design), "platform": of_platform(platform),
        "name": workload_name, "workload": plain(workload), "clients": of_clients(clients), "seed": seed,
        "precondition": precondition.name(),
        "ages": ages.then_some(true), "at_rest": at_rest.then_some(true),
        "sample_every_ns": sample_every.map(|every| every.0),
    });
    leave_out_nulls(&mut settings);
    settings
}

fn of_platform(platform: &Platform) -> Value {
    let storage = match platform {
        Platform::KvDrive(device) => return of_file(&**device),
        Platform::Host(storage) => storage,
    };
    let stacks::host::Storage {
        drive,
        host,
        partitions,
        arrangement,
        journal,
        windows,
        plm_cache_bytes,
        hedge_after_us,
    } = &**storage;
    json!({
        "device": of_file(drive), "host": of_file(host), "partitions": partitions, "arrangement": arrangement,
        "journal": journal, "windows": windows, "plm_cache_bytes": plm_cache_bytes,
        "hedge_after_us": hedge_after_us,
    })
}

fn of_clients(clients: &ClientOptions) -> Value {
    let ClientOptions { pace, window, max_windows } = clients;
    let mut settings = match pace {
        Pace::Closed { outstanding } => json!({ "outstanding": outstanding }),
        Pace::Open { rate, arrivals, outstanding } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => "poisson",
                Arrivals::Fixed => "fixed",
            };
            json!({ "outstanding": outstanding, "rate": rate, "arrivals": arrivals })
        }
        Pace::Recorded { stretch, outstanding } => {
            json!({ "outstanding": outstanding, "stretch": stretch })
        }
    };
    settings["window_ns"] = window.0.into();
    settings["max_windows"] = (*max_windows).into();
    settings
}

#[cfg(test)]
mod tests {
    use drives::ssd::SsdProfile;
    use stacks::design::Design;
    use stacks::host::HostProfile;
    use stacks::kvssd::DeviceProfile;

    use super::*;

    #[test]
    fn built_in_files_are_read_back_from_their_settings() {
        fn check<T: catalogue::Entry + Serialize + PartialEq + std::fmt::Debug>() {
            for (name, _) in T::BUILT_IN {
                let loaded = catalogue::load::<T>(name).expect("it is built in");
                let mut settings = of_file(&loaded);
                settings["description"] = plain(&loaded)["description"].clone();
                let read = T::deserialize(&settings).expect("no key is missing");
                assert_eq!(read, loaded, "{name}");
            }
        }
        check::<Design>();
        check::<DeviceProfile>();
        check::<SsdProfile>();
        check::<HostProfile>();
    }

    #[test]
    fn an_option_is_in_the_settings_where_it_is_not_the_default() {
        let pink = Design::load("pink").expect("it is built in");
        let settings = of_file(&pink);
        let engine = settings["engine"].as_object().expect("a table");
        assert_eq!(engine["levels"], 4, "a key without a default");
        assert!(
            !engine.contains_key("leaves_room") && !engine.contains_key("tables"),
            "{engine:?}"
        );
        assert!(settings.get("description").is_none() && settings.get("limiter").is_none());

        let changed = pink.with(|engine| {
            engine.leaves_room = true;
            engine.tables.l0_stop_trigger += 1;
        });
        let settings = of_file(&changed);
        assert_eq!(settings["engine"]["leaves_room"], true);
        let tables = settings["engine"]["tables"].as_object().expect("a table");
        assert_eq!(tables.keys().collect::<Vec<_>>(), ["l0_stop_trigger"], "others are defaults");
    }

    #[test]
    fn workloads_have_the_names_of_ycsb_s_properties() {
        let mut properties = workload::builtin("a").expect("it is built in");
        properties.set("recordcount", "1000");
        let workload = CoreWorkload::from_properties(&properties).expect("they are allowed");
        let settings = plain(&workload);
        assert_eq!(settings["recordcount"], 1000);
        assert_eq!(settings["requestdistribution"], "zipfian");
        assert!(settings.get("target").is_none(), "it is not set");
    }
}
