//! Configurations: a design, a drive, and the placement of the design's data on the drive.
//!
//! The configurations of Vigil-KV's evaluation are built in (`configurations/`), so that one name
//! determines everything that a comparison keeps equal.

use catalogue::{CatalogueError, Entry, bounds, unprintable};
use serde::Deserialize;
use stacks::design::Design;
use stacks::host::{Arrangement, JournalPlace, WindowPolicy};

use crate::platform::HostChoice;

/// A named configuration: a store on a host, and its drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Name in results.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// The design, by name or by path.
    pub design: String,
    /// Number of memtables, if other than the design's: RocksDB's `max_write_buffer_number`.
    pub memtables: Option<usize>,
    /// The drive, by name or by path.
    pub device: String,
    /// The host, by name or by path.
    pub host: Option<String>,
    /// Number of partitions of each of the drive's sets.
    pub partitions: Option<u32>,
    /// The layout of the data on the drive's sets.
    pub layout: Option<Arrangement>,
    /// The place of the journal.
    pub journal: Option<JournalPlace>,
    /// The policy of windows.
    pub windows: Option<WindowPolicy>,
    /// Size of `plm_cache`, in bytes.
    pub plm_cache_bytes: Option<u64>,
    /// Microseconds after which a client's read that has not completed is issued a second time,
    /// from the other sets.
    pub hedge_after_us: Option<u32>,
    /// Whether no background work disturbs the reads of clients. This is the bound; no real drive
    /// has it.
    #[serde(default)]
    pub undisturbed_clients: bool,
}

impl Configuration {
    /// Loads a built-in configuration by name, or a TOML file by path.
    ///
    /// # Errors
    /// Returns the problem and the allowed values.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Returns the names of the built-in configurations, in the order of the paper's comparison.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the design with the configuration's number of memtables.
    ///
    /// # Errors
    /// Returns the problem of the design.
    pub fn design(&self) -> Result<Design, CatalogueError> {
        Ok(self.equip(Design::load(&self.design)?))
    }

    /// Returns `design` with the configuration's number of memtables.
    #[must_use]
    pub fn equip(&self, design: Design) -> Design {
        match self.memtables {
            Some(memtables) => design.with(|engine| engine.frozen_memtables = memtables - 1),
            None => design,
        }
    }

    /// Returns the choices about the host and its store.
    pub fn choice(&self) -> HostChoice<'_> {
        HostChoice {
            host: self.host.as_deref(),
            partitions: self.partitions,
            arrangement: self.layout,
            journal: self.journal,
            windows: self.windows,
            plm_cache_bytes: self.plm_cache_bytes,
            hedge_after_us: self.hedge_after_us,
            undisturbed_clients: self.undisturbed_clients,
        }
    }
}

impl Entry for Configuration {
    const KIND: &'static str = "configuration";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("base", include_str!("../configurations/base.toml")),
        ("base-parity", include_str!("../configurations/base-parity.toml")),
        ("silk", include_str!("../configurations/silk.toml")),
        ("silk-parity", include_str!("../configurations/silk-parity.toml")),
        ("plm", include_str!("../configurations/plm.toml")),
        ("i-plm", include_str!("../configurations/i-plm.toml")),
        ("r-vigil", include_str!("../configurations/r-vigil.toml")),
        ("o-vigil", include_str!("../configurations/o-vigil.toml")),
        ("rails", include_str!("../configurations/rails.toml")),
        ("hedged", include_str!("../configurations/hedged.toml")),
        ("ideal", include_str!("../configurations/ideal.toml")),
        ("levelhead", include_str!("../configurations/levelhead.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        let texts = [("name", &self.name), ("description", &self.description)];
        let texts = texts.into_iter().filter_map(|(key, text)| unprintable(key, text));
        let memtables = self.memtables.and_then(|n| bounds::range("memtables", n, 2..=MOST));
        texts.chain(memtables).collect()
    }
}

/// Maximum number of memtables: the frozen memtables that a design may have, and the mutable one.
const MOST: usize = *engine::FROZEN_MEMTABLES.end() + 1;

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::StrDeserializer;

    use super::*;
    use crate::platform::Platform;

    fn built_in(name: &str) -> (Configuration, Design, Platform) {
        let configuration = Configuration::load(name).expect("it is built in");
        let design = configuration.design().expect("a design");
        let platform = Platform::load(&configuration.device, configuration.choice());
        (configuration, design, platform.expect("a platform"))
    }

    #[test]
    fn built_in_configurations_can_be_run_and_say_what_is_compared() {
        for name in Configuration::names() {
            let (configuration, design, platform) = built_in(name);
            assert_eq!(configuration.name, name);
            assert_eq!(platform.check(&design), Ok(()), "{name}");
            if name == "levelhead" {
                continue;
            }
            // All others have the same tree, except for SILK's own options, and as many memtables.
            let index = design.index();
            let (mut other, rocksdb) = (index.clone(), Design::load("rocksdb").expect("built in"));
            let tree = other.lsm_mut().expect("an LSM-tree");
            assert_eq!(tree.frozen_memtables, 5, "{name}");
            tree.frozen_memtables = 1;
            assert_eq!(name.starts_with("silk"), other != rocksdb.index(), "{name}");
        }
    }

    #[test]
    fn a_step_of_the_paper_changes_one_thing() {
        let choice = |name| Configuration::load(name).expect("it is built in");
        let (plm, isolated, r, o) =
            (choice("plm"), choice("i-plm"), choice("r-vigil"), choice("o-vigil"));
        let same = |a: &Configuration, b: &Configuration| {
            (&a.device, &a.design, a.layout, a.partitions)
                == (&b.device, &b.design, b.layout, b.partitions)
        };
        assert!(same(&plm, &isolated) && same(&isolated, &r) && same(&r, &o));
        assert_eq!((plm.journal, plm.windows), (Some(JournalPlace::Beside), isolated.windows));
        assert_eq!((isolated.journal, r.journal), (Some(JournalPlace::OwnSet), o.journal));
        assert_eq!(
            (r.windows, o.windows),
            (Some(WindowPolicy::Constant), Some(WindowPolicy::Dynamic))
        );
    }

    #[test]
    fn words_of_a_file_are_those_of_flags() {
        fn read<T: serde::de::DeserializeOwned>(name: &'static str) -> T {
            let word: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
            T::deserialize(word).expect("a word of the list")
        }
        assert!(Arrangement::ALL.into_iter().all(|(one, name)| read::<Arrangement>(name) == one));
        assert!(JournalPlace::ALL.into_iter().all(|(one, name)| read::<JournalPlace>(name) == one));
        assert!(WindowPolicy::ALL.into_iter().all(|(one, name)| read::<WindowPolicy>(name) == one));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let text = include_str!("../configurations/base.toml");
        let words = |from, to| {
            let text = text.replace(from, to);
            catalogue::parse::<Configuration>("x.toml", &text).expect_err("a fault").to_string()
        };
        let many = words("memtables = 6", "memtables = 0");
        assert!(many.contains("memtables is 0, must be 2 to"), "{many}");
        let typo = words("device =", "devise =");
        assert!(typo.contains("devise") && typo.contains("line"), "{typo}");
    }
}
