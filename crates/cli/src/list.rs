//! `levelhead list`.

use std::fmt::Write;
use std::process::ExitCode;

use blockbench::Job;
use catalogue::CatalogueError;
use drives::ssd::SsdProfile;
use kvbench::configuration::Configuration;
use kvbench::platform::designs_for_hosts;
use stacks::design::Design;
use stacks::host::{Arrangement, HostProfile, JournalPlace, WindowPolicy};
use stacks::kvssd::DeviceProfile;
use workload::BUILTIN_NAMES;

use crate::output;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    output::print(&list())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the list of all built-in names with descriptions.
fn list() -> String {
    let mut text = "levelhead bench\n".to_owned();
    section(&mut text, "designs (--design), on KV drives", &Design::names(), |name| {
        Design::load(name).map(|design| design.description)
    });
    line(&mut text, &format!("of them on block drives too: {}", designs_for_hosts().join(", ")));
    section(&mut text, "KV drives (--device)", &DeviceProfile::names(), |name| {
        DeviceProfile::load(name).map(|device| device.description)
    });
    section(&mut text, "block drives (--device)", &SsdProfile::names(), |name| {
        SsdProfile::load(name).map(|profile| profile.description)
    });
    section(&mut text, "hosts of block drives (--host)", &HostProfile::names(), |name| {
        HostProfile::load(name).map(|host| host.description)
    });
    section(&mut text, "configurations (--configuration)", &Configuration::names(), |name| {
        Configuration::load(name).map(|configuration| configuration.description)
    });
    let layouts = Arrangement::ALL.map(|(_, name)| name).join(", ");
    line(&mut text, &format!("layouts of a host's store on a drive's sets (--layout): {layouts}"));
    let places = JournalPlace::ALL.map(|(_, name)| name).join(", ");
    line(&mut text, &format!("places of its log and manifest (--journal): {places}"));
    let policies = WindowPolicy::ALL.map(|(_, name)| name).join(", ");
    line(&mut text, &format!("ways to keep windows on them (--windows): {policies}"));
    line(&mut text, &format!("workloads (--workload): {}", BUILTIN_NAMES.join(", ")));
    line(&mut text, "levelhead device");
    line(&mut text, "block drives (--device): those above");
    section(&mut text, "jobs (--job)", &Job::names(), |name| {
        Job::load(name).map(|job| job.description)
    });
    text.push_str(
        "each of these but layouts, places and ways also takes the path of a file; `levelhead show NAME` prints one to copy",
    );
    text
}

fn section(
    text: &mut String,
    title: &str,
    names: &[&str],
    describe: impl Fn(&str) -> Result<String, CatalogueError>,
) {
    line(text, title);
    for name in names {
        if let Ok(description) = describe(name) {
            line(text, &format!("  {name:24} {description}"));
        }
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes any text");
}
