//! Saved drives: a drive that a bench has loaded and aged, in a file. A run on a drive from the
//! file is byte for byte the run that followed when the drive was saved.
//!
//! Background work ends before the run, because only an idle drive can be saved
//! (`docs/decisions/0047`). So this run differs from a run that follows ageing without a pause, and
//! its inputs record that (`drive_at_rest`). The file also has the session's knowledge of each key,
//! so that every read is verified as in other runs, and the results of load and ageing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::io::{BufReader, BufWriter, Read, Write};
use std::rc::Rc;

use runtime::{Carrier, Nanos, Runtime};
use serde::{Deserialize, Serialize};
use stacks::design::IndexOptions;
use stacks::kvssd::{DeviceProfile, KvDrive, SavedDrive};
use workload::{Session, Stop};

use crate::bench::{BenchOutcome, check, drive_options, outcome};
use crate::error::BenchError;
use crate::observer::{Observer, Watch};
use crate::phases::{Prepared, measure, prepare};
use crate::platform::Platform;
use crate::spec::BenchSpec;
use crate::summary::Past;
use crate::target::DriveTarget;

/// The origin of a saved drive: the parameters that select a run on it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The command that saved the drive.
    pub command: String,
    /// The design, by name or by path.
    pub design: String,
    /// The drive, by name or by path.
    pub device: String,
    /// Number of loaded pairs.
    pub records: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether the drive was aged to its steady state.
    pub ages: bool,
}

/// The part of the file before the drive.
#[derive(Serialize, Deserialize)]
struct Front {
    origin: Origin,
    /// The parameters of the load, by name.
    made_of: BTreeMap<String, String>,
    past: Past,
}

/// The file of a saved drive, of which the part before the drive has been read.
pub struct KeptDrive<R> {
    saved: SavedDrive<R>,
    front: Front,
}

impl<R: Read> KeptDrive<BufReader<R>> {
    /// Reads the part of a file before the drive.
    ///
    /// # Errors
    /// Returns a text if the file is not a saved drive of this version, or is damaged.
    pub fn begin(file: R) -> Result<Self, String> {
        let saved = SavedDrive::begin(BufReader::new(file)).map_err(|error| error.to_string())?;
        let front = serde_json::from_str(saved.key()).map_err(|_| {
            "it is a drive of `levelhead reproduce`, or of another version of this program"
                .to_owned()
        })?;
        Ok(Self { saved, front })
    }
}

impl<R> KeptDrive<R> {
    /// Returns the origin of the drive.
    pub fn origin(&self) -> &Origin {
        &self.front.origin
    }
}

/// Returns the parameters of a load that must be equal for a run on the saved drive, by name.
fn made_of(spec: &BenchSpec, device: &DeviceProfile) -> BTreeMap<String, String> {
    let workload = &spec.workload;
    let records = (workload.record_count, workload.insert_start, workload.insert_count);
    [
        ("design", format!("{:?}", spec.design.index())),
        ("device", format!("{device:?}")),
        ("keys and values", format!("{:?}", (&workload.keys, &workload.values))),
        ("records", format!("{records:?}")),
        ("seed", spec.seed.to_string()),
    ]
    .map(|(name, words)| (name.to_owned(), words))
    .into()
}

fn refuse(words: impl Into<String>) -> BenchError {
    BenchError::Kept(words.into())
}

/// Checks before any work whether the drive of a bench can be saved.
///
/// # Errors
/// Returns [`BenchError::Kept`] if not; so would [`run_and_keep`].
pub fn check_keeping(spec: &BenchSpec) -> Result<(), BenchError> {
    let name = &spec.design.name;
    let Platform::KvDrive(_) = &spec.platform else {
        return Err(refuse("what is kept are KV drives; a host's store on a block drive is not"));
    };
    let index = spec.design.index();
    if index.durability() == engine::Durability::Log {
        return Err(refuse(format!(
            "a drive with {name} cannot be kept: its log goes on by itself; take a design without one, such as pink"
        )));
    }
    if matches!(&index, IndexOptions::Lsm(options) if options.cache_bytes() > 0) {
        return Err(refuse(format!("a drive with {name} cannot be kept: it has caches")));
    }
    Ok(())
}

fn device_of(spec: &BenchSpec) -> Result<&DeviceProfile, BenchError> {
    check_keeping(spec)?;
    match &spec.platform {
        Platform::KvDrive(device) => Ok(device),
        Platform::Host(_) => unreachable!("it was refused"),
    }
}

/// Like [`crate::run`], but background work ends before the run, and the drive is then saved to
/// `file`. `whole` is called once the file is complete, before the run begins.
///
/// Requires: [`BenchSpec::at_rest`].
///
/// # Errors
/// As [`crate::run`], and [`BenchError::Kept`].
pub fn run_and_keep(
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
    origin: &Origin,
    file: &mut dyn Write,
    whole: &mut dyn FnMut() -> io::Result<()>,
) -> Result<BenchOutcome, BenchError> {
    check(spec)?;
    let device = device_of(spec)?;
    let rt = Runtime::new(spec.seed);
    let watch = Watch { observer: Rc::clone(observer), stop: stop.clone() };
    let drive = KvDrive::format(&rt.handle(), device, drive_options(spec))?;
    let target = DriveTarget(drive.clone());
    let (spec_in, handle, subject, watch_in) =
        (spec.clone(), rt.handle(), target.clone(), watch.clone());
    assert!(spec.at_rest, "the inputs say what is done");
    let mut prepared =
        rt.block_on(async move { prepare(&spec_in, &handle, &subject, &watch_in).await })?;
    rt.run_until(Nanos::MAX);
    let front = Front {
        origin: origin.clone(),
        made_of: made_of(spec, device),
        past: prepared.past.clone(),
    };
    let key = serde_json::to_string(&front).map_err(|error| refuse(error.to_string()))?;
    let mut known = Vec::new();
    let carried = prepared.session.carry(&mut Carrier::out(&mut known));
    carried.ok_or_else(|| refuse("the drive cannot be kept: it has too many pairs"))?;
    let saved = drive.save(&rt, device, &key, &known, &mut BufWriter::new(file));
    saved.map_err(|error| refuse(error.to_string()))?;
    whole().map_err(|error| refuse(format!("the drive could not be kept: {error}")))?;
    run(&rt, spec, &target, prepared, watch)
}

/// Executes the run of a bench on a saved drive.
///
/// Requires: [`BenchSpec::at_rest`].
///
/// # Errors
/// As [`crate::run`], and [`BenchError::Kept`] if the drive was loaded with other parameters than
/// those of `spec`, or if the file is damaged.
pub fn run_on_kept<R: Read>(
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
    kept: KeptDrive<R>,
) -> Result<BenchOutcome, BenchError> {
    check(spec)?;
    let device = device_of(spec)?;
    assert!(spec.at_rest, "the inputs say what was done");
    let KeptDrive { saved, front } = kept;
    let wanted = made_of(spec, device);
    let differs = |name: &&String| front.made_of.get(*name) != wanted.get(*name);
    let others: Vec<&str> = wanted.keys().filter(differs).map(String::as_str).collect();
    if !others.is_empty() {
        let command = &front.origin.command;
        return Err(refuse(format!(
            "the drive was made with something else for {}: by `{command}`",
            others.join(", ")
        )));
    }
    let known = saved.attached().to_vec();
    let (rt, drive) = saved.open(device, drive_options(spec)).map_err(|e| refuse(e.to_string()))?;
    let target = DriveTarget(drive);
    let mut session = Session::new(rt.handle(), target.clone(), spec.workload.clone(), spec.seed)?;
    session.stop_on(stop.clone());
    if let Some(spec) = &spec.trace {
        session.tell_families_apart(spec.trace.survey.family_bytes());
    }
    let by = &mut Carrier::back(&known);
    let carried = session.carry(by).filter(|()| by.is_at_end());
    carried.ok_or_else(|| refuse("the file of the kept drive is damaged: load it again"))?;
    let watch = Watch { observer: Rc::clone(observer), stop: stop.clone() };
    let prepared = Prepared { session, past: front.past, after_load: None };
    run(&rt, spec, &target, prepared, watch)
}

fn run(
    rt: &Runtime,
    spec: &BenchSpec,
    target: &DriveTarget,
    prepared: Prepared<DriveTarget>,
    watch: Watch,
) -> Result<BenchOutcome, BenchError> {
    let (spec_in, handle, subject) = (spec.clone(), rt.handle(), target.clone());
    let phases =
        rt.block_on(async move { measure(&spec_in, &handle, &subject, prepared, &watch).await })?;
    Ok(outcome(spec, target, phases))
}
