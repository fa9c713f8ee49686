//! Files that the command line names: built-in ones, and paths.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use blockbench::fio::LoadedJob;
use blockbench::{Job, fio};
use catalogue::{CatalogueError, Entry, Loaded, Override, load_with};
use drives::ssd::SsdProfile;
use kvbench::configuration::Configuration;
use kvbench::platform::{HostChoice, LoadedPlatform, Platform, PlatformOverrides, is_block_drive};
use stacks::design::Design;
use stacks::host::HostProfile;
use stacks::kvssd::DeviceProfile;
use workload::{BUILTIN_NAMES, Properties};

use crate::overrides::Kind;

pub(crate) fn design(name: &str, overrides: &[Override]) -> anyhow::Result<Loaded<Design>> {
    named(name, overrides)
}

pub(crate) fn configuration(
    name: &str,
    overrides: &[Override],
) -> anyhow::Result<Loaded<Configuration>> {
    named(name, overrides)
}

/// Returns the kinds of files that a device uses.
pub(crate) fn kinds_of_device(device: &str) -> Vec<Kind> {
    if is_block_drive(device) {
        vec![Kind::of::<SsdProfile>("device"), Kind::of::<HostProfile>("host")]
    } else {
        vec![Kind::of::<DeviceProfile>("device")]
    }
}

/// Loads the platform that the design runs on.
pub(crate) fn platform(
    device: &str,
    choice: HostChoice<'_>,
    overrides: PlatformOverrides<'_>,
) -> anyhow::Result<LoadedPlatform> {
    let loaded = Platform::load_with(device, choice, overrides);
    let is_known = [DeviceProfile::names(), SsdProfile::names()].concat().contains(&device);
    if is_known { Ok(loaded?) } else { hinted(device, loaded) }
}

pub(crate) fn kv_drive(
    name: &str,
    overrides: &[Override],
) -> anyhow::Result<Loaded<DeviceProfile>> {
    named(name, overrides)
}

pub(crate) fn profile(name: &str, overrides: &[Override]) -> anyhow::Result<Loaded<SsdProfile>> {
    named(name, overrides).map_err(|error| {
        if is_file_of_kv_drive(name) {
            return anyhow!("{name} is a key-value drive: `levelhead bench --device {name}`");
        }
        error
    })
}

/// Whether a path is a KV drive's file: of all drive files, only these have costs of commands.
fn is_file_of_kv_drive(path: &str) -> bool {
    let text = catalogue::read_text(Path::new(path)).unwrap_or_default();
    let table = text.parse::<catalogue::Table>().unwrap_or_default();
    table.get("controller").is_some_and(|controller| controller.get("costs").is_some())
}

/// Loads a job. A file may be an fio job file.
pub(crate) fn job(name: &str, overrides: &[Override]) -> anyhow::Result<LoadedJob> {
    let loaded = fio::load_with(name, overrides);
    if Job::names().contains(&name) { Ok(loaded?) } else { hinted(name, loaded) }
}

/// Returns the built-in files: kind, name, text.
pub(crate) fn built_in() -> Vec<(&'static str, &'static str, &'static str)> {
    fn of<T: Entry>(
        kind: &'static str,
    ) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        T::BUILT_IN.iter().map(move |(name, text)| (kind, *name, *text))
    }
    let workloads = BUILTIN_NAMES
        .into_iter()
        .filter_map(|name| Some(("workload", name, workload::builtin_text(name)?)));
    of::<Design>("design")
        .chain(of::<DeviceProfile>("device"))
        .chain(of::<SsdProfile>("device"))
        .chain(of::<HostProfile>("host"))
        .chain(of::<Configuration>("configuration"))
        .chain(workloads)
        .chain(of::<Job>("job"))
        .collect()
}

/// Loads a file by name or path. The error for a name of another kind tells where the name is
/// valid.
fn named<T: Entry>(name: &str, overrides: &[Override]) -> anyhow::Result<Loaded<T>> {
    let loaded = load_with(name, overrides);
    let is_known = T::BUILT_IN.iter().any(|(known, _)| *known == name);
    if is_known { Ok(loaded?) } else { hinted(name, loaded) }
}

/// Adds to an error the argument for which the name is valid.
fn hinted<T>(name: &str, loaded: Result<T, CatalogueError>) -> anyhow::Result<T> {
    loaded.map_err(|error| match place_of(name).filter(|_| !Path::new(name).exists()) {
        Some(place) => anyhow!("{error} ({name} is for {place})"),
        None => error.into(),
    })
}

/// Returns the argument for which a built-in name is valid.
fn place_of(name: &str) -> Option<&'static str> {
    [
        (Design::names().contains(&name), "levelhead bench --design"),
        (Configuration::names().contains(&name), "levelhead bench --configuration"),
        (DeviceProfile::names().contains(&name), "levelhead bench --device"),
        (workload::builtin(name).is_some(), "levelhead bench --workload"),
        (
            SsdProfile::names().contains(&name),
            "levelhead device --device or levelhead bench --device",
        ),
        (HostProfile::names().contains(&name), "levelhead bench --host"),
        (Job::names().contains(&name), "levelhead device --job"),
    ]
    .into_iter()
    .find_map(|(is_name, place)| is_name.then_some(place))
}

/// Returns the properties of a built-in workload, or of the YCSB property file at this path.
pub(crate) fn workload(name: &str) -> anyhow::Result<Properties> {
    if let Some(properties) = workload::builtin(name) {
        return Ok(properties);
    }
    let path = Path::new(name);
    if path.exists() {
        let text = catalogue::read_text(path).with_context(|| format!("cannot read {name}"))?;
        return Ok(Properties::parse(name, &text)?);
    }
    let hint = place_of(name).map_or(String::new(), |place| format!(" ({name} is for {place})"));
    bail!(
        "there is no workload `{name}`{}: give one of {}, or the path of a YCSB property file{hint}",
        catalogue::did_you_mean(name, BUILTIN_NAMES),
        BUILTIN_NAMES.join(", ")
    )
}
