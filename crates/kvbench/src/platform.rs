//! The platform of a design: a KV drive, or a host with a block drive.

use catalogue::{CatalogueError, Entry, Loaded, Override, Table, load_with};
use drives::nand::FlashProfile;
use drives::ssd::SsdProfile;
use engine::Durability;
use stacks::design::{Design, IndexOptions};
use stacks::host::{Arrangement, HostProfile, JournalPlace, Storage, StorageError, WindowPolicy};
use stacks::kvssd::DeviceProfile;
use stacks::limiter::LimiterOptions;

/// The platform that a design runs on.
#[derive(Clone, Debug, PartialEq)]
pub enum Platform {
    /// A KV drive; the design is its firmware.
    KvDrive(Box<DeviceProfile>),
    /// A block drive; the design is a store on its host.
    Host(Box<Storage>),
}

/// Choices about a host and its store. `None` is the default.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostChoice<'a> {
    /// The host, by name or by path.
    pub host: Option<&'a str>,
    /// Number of partitions of each set.
    pub partitions: Option<u32>,
    /// The layout of the store's data on the drive's sets.
    pub arrangement: Option<Arrangement>,
    /// The place of the store's journal.
    pub journal: Option<JournalPlace>,
    /// The policy of windows.
    pub windows: Option<WindowPolicy>,
    /// Size of `plm_cache`, in bytes.
    pub plm_cache_bytes: Option<u64>,
    /// Microseconds after which client reads are hedged.
    pub hedge_after_us: Option<u32>,
    /// Whether no background work disturbs the reads of clients: see
    /// [`SsdProfile::undisturbed_clients`].
    pub undisturbed_clients: bool,
}

/// Overridden keys of files.
#[derive(Clone, Copy, Default, Debug)]
pub struct PlatformOverrides<'a> {
    /// Keys of the device's file.
    pub device: &'a [Override],
    /// Keys of the host's file.
    pub host: &'a [Override],
}

/// A platform, and its files by kind with all their keys.
pub struct LoadedPlatform {
    /// The platform.
    pub platform: Platform,
    /// `device`, and `host` if there is one.
    pub files: Vec<(&'static str, Table)>,
}

impl LoadedPlatform {
    /// Returns the platform of a KV drive.
    pub(crate) fn of_kv_drive(drive: Loaded<DeviceProfile>) -> Self {
        let files = vec![("device", drive.table)];
        Self { platform: Platform::KvDrive(Box::new(drive.entry)), files }
    }

    /// Returns the platform of a host with a block drive. Ignores the host in `choice`.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be placed on the drive.
    pub(crate) fn of_host(
        drive: Loaded<SsdProfile>,
        host: Loaded<HostProfile>,
        choice: HostChoice<'_>,
    ) -> Result<Self, CatalogueError> {
        let files = vec![("device", drive.table), ("host", host.table)];
        let mut drive = drive.entry;
        drive.undisturbed_clients |= choice.undisturbed_clients;
        let journal = choice.journal.unwrap_or_default();
        let partitions = choice.partitions.unwrap_or(1);
        let sets = drive.sets.saturating_mul(partitions);
        let usual = Arrangement::of_sets(sets.saturating_sub(journal.sets()));
        let storage = Storage {
            drive,
            host: host.entry,
            partitions,
            arrangement: choice.arrangement.unwrap_or(usual),
            journal,
            windows: choice.windows.unwrap_or_default(),
            plm_cache_bytes: choice.plm_cache_bytes,
            hedge_after_us: choice.hedge_after_us,
        };
        let in_words = |error: StorageError| CatalogueError::new(error.to_string());
        storage.shape().map_err(in_words)?;
        storage.journal_shape().map_err(in_words)?;
        storage.check_windows().map_err(in_words)?;
        Ok(Self { platform: Platform::Host(Box::new(storage)), files })
    }
}

/// The default host of a block drive.
pub const DEFAULT_HOST: &str = "desktop-12-core";

/// Approximate number of extents that a host's store reserves for its log, manifest, flushes,
/// compactions and garbage collection.
const SPARE_EXTENTS: u64 = 32;

impl Platform {
    /// Loads the platform of a device by name or by path; the file of the device determines the
    /// kind of platform. `choice` is for block drives only.
    ///
    /// # Errors
    /// Returns the problem and the allowed values.
    pub fn load(device: &str, choice: HostChoice<'_>) -> Result<Self, CatalogueError> {
        let loaded = Self::load_with(device, choice, PlatformOverrides::default())?;
        Ok(loaded.platform)
    }

    /// Like [`Self::load`], with overridden keys of the files.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_with(
        device: &str,
        choice: HostChoice<'_>,
        overrides: PlatformOverrides<'_>,
    ) -> Result<LoadedPlatform, CatalogueError> {
        if is_block_drive(device) {
            let drive = load_with::<SsdProfile>(device, overrides.device)?;
            let host = choice.host.unwrap_or(DEFAULT_HOST);
            let host = load_with::<HostProfile>(host, overrides.host)?;
            return LoadedPlatform::of_host(drive, host, choice);
        }
        let drive = load_with::<DeviceProfile>(device, overrides.device)
            .map_err(|error| CatalogueError::new(more_names(device, &error)))?;
        if choice != HostChoice::default() {
            return Err(CatalogueError::new(format!(
                "{device} is a KV drive, on which the design is the firmware: --host, --partitions, --layout, \
                 --journal, --windows, --plm-cache and --hedge-after are for block drives, which are {}",
                SsdProfile::names().join(", ")
            )));
        }
        Ok(LoadedPlatform::of_kv_drive(drive))
    }

    /// Returns the name of the drive.
    pub fn name(&self) -> &str {
        match self {
            Self::KvDrive(drive) => &drive.name,
            Self::Host(storage) => &storage.drive.name,
        }
    }

    /// Checks whether `design` can run on this platform.
    ///
    /// # Errors
    /// Returns the reason, and designs or drives that would be possible.
    pub fn check(&self, design: &Design) -> Result<(), String> {
        let name = &design.name;
        match self {
            Self::Host(_) if !runs_on_hosts(design) => Err(format!(
                "{name} keeps memtables in memory that survives a power cut, as drives with capacitors \
                 have it; a host has none: take a design with a log, durability = \"log\", such as {}",
                designs_for_hosts().join(", ")
            )),
            Self::KvDrive(_) if design.limiter != LimiterOptions::default() => Err(format!(
                "{name} limits background I/O, as a host does it; a KV drive is its own host: take a block \
                 drive, which are {}",
                SsdProfile::names().join(", ")
            )),
            Self::Host(_) | Self::KvDrive(_) => Ok(()),
        }
    }

    /// Returns the flash of the drive.
    pub(crate) fn flash(&self) -> &FlashProfile {
        match self {
            Self::KvDrive(drive) => &drive.flash,
            Self::Host(storage) => &storage.drive.flash,
        }
    }

    /// Returns the memory for the index, in bytes.
    pub(crate) fn index_memory_bytes(&self) -> u64 {
        match self {
            Self::KvDrive(drive) => drive.dram.index_bytes,
            Self::Host(storage) => storage.host.memory.index_bytes,
        }
    }

    /// Returns an upper bound of the space for pairs and index, in bytes.
    pub(crate) fn usable_bytes(&self, index: &IndexOptions) -> u64 {
        match self {
            Self::KvDrive(drive) => drive.usable_bytes(index),
            Self::Host(storage) => storage.shape().map_or(0, |shape| {
                let extents = u64::from(shape.extents).saturating_sub(SPARE_EXTENTS);
                extents * u64::from(shape.pages_per_extent) * u64::from(shape.page_bytes)
            }),
        }
    }

    /// Returns the size of a page of the store, as `usable_bytes` counts it, and the bytes
    /// of it that the store uses, including the spare area. Returns `None` if the store cannot be
    /// placed on the drive.
    pub fn page_and_payload(&self) -> Option<(u32, u32)> {
        match self {
            Self::KvDrive(drive) => {
                let geometry = &drive.flash.geometry;
                Some((geometry.page_bytes, geometry.page_bytes + geometry.spare_bytes))
            }
            Self::Host(storage) => {
                storage.shape().ok().map(|shape| (shape.page_bytes, shape.payload_bytes))
            }
        }
    }

    /// Returns the maximum length of a value, in bytes.
    pub(crate) fn max_value_bytes(&self) -> u32 {
        match self {
            Self::KvDrive(drive) => drive.max_value_bytes(),
            Self::Host(storage) => {
                storage.shape().map_or(0, |shape| engine::max_value_bytes(&shape))
            }
        }
    }
}

/// Whether a design can run on a host.
fn runs_on_hosts(design: &Design) -> bool {
    design.index().durability() == Durability::Log
}

/// Returns the built-in designs that can run on a host.
pub fn designs_for_hosts() -> Vec<&'static str> {
    let runs = |name: &&str| Design::load(name).is_ok_and(|design| runs_on_hosts(&design));
    Design::names().into_iter().filter(runs).collect()
}

/// Whether the device of this name or file is a block drive: the file of a block drive has the key
/// `user_bytes`.
pub fn is_block_drive(name_or_path: &str) -> bool {
    SsdProfile::names().contains(&name_or_path)
        || !DeviceProfile::names().contains(&name_or_path)
            && catalogue::has_key(name_or_path, "user_bytes")
}

/// Returns the error of a KV drive that could not be loaded. If no drive has this name, the error
/// names the block drives too.
fn more_names(device: &str, error: &CatalogueError) -> String {
    if std::path::Path::new(device).exists() || DeviceProfile::names().contains(&device) {
        return error.to_string();
    }
    let kind = <SsdProfile as Entry>::KIND;
    format!("{error}; or one of the {kind}s {}", SsdProfile::names().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: HostChoice<'_> = HostChoice {
        host: None,
        partitions: None,
        arrangement: None,
        journal: None,
        windows: None,
        plm_cache_bytes: None,
        hedge_after_us: None,
        undisturbed_clients: false,
    };
    const OWN_SET: HostChoice<'_> = HostChoice { journal: Some(JournalPlace::OwnSet), ..USUAL };

    #[test]
    fn a_device_s_name_says_what_kind_it_is() {
        let kv = Platform::load("pink-zcu102", USUAL).expect("built in");
        assert!(matches!(kv, Platform::KvDrive(_)));
        let Ok(Platform::Host(one)) = Platform::load("baseline-15gb", USUAL) else {
            panic!("a block drive")
        };
        assert_eq!((one.arrangement, &*one.host.name), (Arrangement::Plain, DEFAULT_HOST));
        let Ok(Platform::Host(four)) = Platform::load("vigil-15gb", USUAL) else {
            panic!("a block drive")
        };
        assert_eq!(four.arrangement, Arrangement::Striped);
    }

    #[test]
    fn pairs_that_make_no_sense_are_refused_with_the_reason() {
        let words =
            |device, choice| Platform::load(device, choice).expect_err("no such thing").to_string();
        let unknown = words("plink", USUAL);
        assert!(unknown.contains("pink-zcu102") && unknown.contains("baseline-15gb"), "{unknown}");
        let kv = words("pink-zcu102", HostChoice { host: Some(DEFAULT_HOST), ..USUAL });
        assert!(kv.contains("is a KV drive"), "{kv}");
        let laid_out = |arrangement| HostChoice { arrangement: Some(arrangement), ..USUAL };
        let parity = words("baseline-15gb", laid_out(Arrangement::Parity));
        assert!(parity.contains("3 to 64 members, and there are 1"), "{parity}");
        let plain = words("vigil-15gb", laid_out(Arrangement::Plain));
        assert!(plain.contains("cut into 4 sets"), "{plain}");
        let host = Platform::load("baseline-15gb", USUAL).expect("built in");
        let pink = Design::load("pink").expect("built in");
        let words = host.check(&pink).expect_err("it has no log");
        assert!(words.contains("pink-log") && words.contains("rocksdb"), "{words}");
        let log = Design::load("pink-log").expect("built in");
        assert_eq!(host.check(&log), Ok(()));
    }

    #[test]
    fn windows_ask_for_a_drive_that_has_them_and_for_redundancy() {
        let with = |device, arrangement, journal, windows| {
            let choice = HostChoice {
                arrangement: Some(arrangement),
                journal: Some(journal),
                windows: Some(windows),
                ..USUAL
            };
            Platform::load(device, choice).map(drop).map_err(|error| error.to_string())
        };
        let (parity, own, beside) =
            (Arrangement::Parity, JournalPlace::OwnSet, JournalPlace::Beside);
        assert_eq!(with("vigil-15gb", parity, own, WindowPolicy::Dynamic), Ok(()));
        assert_eq!(with("vigil-15gb", Arrangement::Striped, beside, WindowPolicy::Simple), Ok(()));
        let words = |device, arrangement, journal, windows| {
            with(device, arrangement, journal, windows).expect_err("it makes no sense")
        };
        let log = words("vigil-15gb", parity, beside, WindowPolicy::Dynamic);
        assert!(log.contains("journal own-set"), "{log}");
        let striped = words("vigil-15gb", Arrangement::Striped, own, WindowPolicy::Constant);
        assert!(striped.contains("parity or mirrored"), "{striped}");
        let none = words("baseline-15gb", Arrangement::Plain, beside, WindowPolicy::Simple);
        assert!(none.contains("windows rails"), "{none}");
    }

    #[test]
    fn a_drive_of_one_set_takes_a_volume_over_its_partitions() {
        let cut = |device, partitions, arrangement, windows| {
            let choice = HostChoice {
                partitions: Some(partitions),
                arrangement: Some(arrangement),
                windows,
                ..USUAL
            };
            Platform::load(device, choice).map_err(|error| error.to_string())
        };
        let Ok(Platform::Host(three)) = cut("baseline-15gb", 3, Arrangement::Parity, None) else {
            panic!("a block drive")
        };
        assert_eq!(three.data_sets(), Ok(3));
        let Ok(Platform::Host(one)) = Platform::load("baseline-15gb", USUAL) else {
            panic!("a block drive")
        };
        let bytes = |storage: &Storage| {
            let shape = storage.shape().expect("it was checked");
            u64::from(shape.extents)
                * u64::from(shape.pages_per_extent)
                * u64::from(shape.page_bytes)
        };
        // A third is parity, and one page of each member's extent is its header.
        let share = bytes(&three) as f64 / bytes(&one) as f64;
        assert!((0.64..0.667).contains(&share), "{share} of what the drive holds plain");
        let words = |device, partitions, arrangement, windows| {
            cut(device, partitions, arrangement, windows).expect_err("it makes no sense")
        };
        for none in [0, 65, u32::MAX] {
            let words = words("baseline-15gb", none, Arrangement::Striped, None);
            assert!(words.contains("1 to 64 partitions"), "{words}");
        }
        let windows = words("vigil-15gb", 2, Arrangement::Parity, Some(WindowPolicy::Simple));
        assert!(windows.contains("whole set"), "{windows}");
    }

    #[test]
    fn a_journal_may_have_the_last_set() {
        let Ok(Platform::Host(storage)) = Platform::load("vigil-15gb", OWN_SET) else {
            panic!("a block drive")
        };
        assert_eq!((storage.data_sets(), storage.arrangement), (Ok(3), Arrangement::Striped));
        let words =
            |device, choice| Platform::load(device, choice).expect_err("no such thing").to_string();
        let one = words("baseline-15gb", OWN_SET);
        assert!(one.contains("leaves the data none"), "{one}");
        let kv = words("pink-zcu102", OWN_SET);
        assert!(kv.contains("are for block drives"), "{kv}");
        let plain = HostChoice { arrangement: Some(Arrangement::Plain), ..OWN_SET };
        let plain = words("vigil-15gb", plain);
        assert!(plain.contains("for one beside the journal's"), "{plain}");
        let host = Platform::Host(storage);
        let hash = Design::load("hash").expect("built in");
        let words = host.check(&hash).expect_err("it has no log");
        assert!(words.contains("take a design with a log"), "{words}");
        let tree = Design::load("rocksdb").expect("built in");
        assert_eq!(host.check(&tree), Ok(()));
    }
}
