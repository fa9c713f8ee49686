//! Designs: combinations of an index and its options, among them published systems.
//!
//! ```text
//!  design ... a name, a description, and the options of an index; built-in ones in `designs/`
//!  index .... an LSM-tree or a hash table on any medium, with their common methods
//! ```
//! A KV drive has an index in its firmware, a host's store has one on block drives; an index does
//! not depend on which.

mod index;

use catalogue::{CatalogueError, Entry, unprintable};
use engine::{HashOptions, Options};
use serde::{Deserialize, Serialize};

use crate::limiter::LimiterOptions;

pub(crate) use index::either;
pub use index::{Index, IndexOptions, IndexSetup};

/// A named design.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The design's name in results.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// Options of an LSM-tree, if that is its index.
    engine: Option<Options>,
    /// Options of a hash table, if that is its index.
    hash: Option<HashOptions>,
    /// The limits on its background I/O on a host, if any.
    #[serde(default)]
    pub limiter: LimiterOptions,
}

impl Design {
    /// Loads a built-in design by name, or a design from a TOML file by path.
    ///
    /// # Errors
    /// Returns an error with the problem and the allowed values, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Returns the options of its index.
    pub fn index(&self) -> IndexOptions {
        let lsm = self.engine.clone().map(IndexOptions::Lsm);
        lsm.or(self.hash.clone().map(IndexOptions::Hash)).expect("a design is checked to have one")
    }

    /// Returns the design with changed options of its LSM-tree; a design with a hash table is
    /// unchanged.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        self.engine.as_mut().map(change);
        self
    }

    /// Returns the names of the built-in designs.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for Design {
    const KIND: &'static str = "design";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("pink", include_str!("../designs/pink.toml")),
        ("hash", include_str!("../designs/hash.toml")),
        ("pink-compact", include_str!("../designs/pink-compact.toml")),
        ("pink-hw", include_str!("../designs/pink-hw.toml")),
        ("pink-log", include_str!("../designs/pink-log.toml")),
        ("levelhead", include_str!("../designs/levelhead.toml")),
        ("rocksdb", include_str!("../designs/rocksdb.toml")),
        ("silk", include_str!("../designs/silk.toml")),
        ("lightstore", include_str!("../designs/lightstore.toml")),
        ("iterkvssd", include_str!("../designs/iterkvssd.toml")),
        ("iterkvssd-i", include_str!("../designs/iterkvssd-i.toml")),
        ("iterkvssd-b", include_str!("../designs/iterkvssd-b.toml")),
        ("iterkvssd-tables", include_str!("../designs/iterkvssd-tables.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        let texts = [("name", &self.name), ("description", &self.description)];
        let texts = texts.into_iter().filter_map(|(key, text)| unprintable(key, text));
        let of_index = match (&self.engine, &self.hash) {
            (Some(engine), None) => engine.problems(),
            (None, Some(hash)) => hash.problems(),
            (both, _) => {
                let has = if both.is_some() { "both" } else { "neither" };
                vec![format!("a design has an [engine] or a [hash] section, this one has {has}")]
            }
        };
        texts.chain(of_index).chain(self.limiter.problems()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_designs_are_the_engine_s_presets() {
        let index = |name| Design::load(name).expect("it is built in").index();
        assert_eq!(index("pink"), Options::pink().into());
        assert_eq!(index("pink-hw"), Options::pink_hw().into());
        assert_eq!(index("lightstore"), Options::lightstore().into());
        assert_eq!(index("rocksdb"), Options::rocksdb().into());
        assert_eq!(index("silk"), Options::silk().into());
        assert_eq!(index("levelhead"), Options::levelhead().into());
        assert_eq!(index("hash"), HashOptions::published().into());
    }

    #[test]
    fn silk_limits_as_published_and_nothing_else_limits() {
        for name in Design::names() {
            let limiter = Design::load(name).expect("it is built in").limiter;
            let Some(silk) = &limiter.silk else {
                assert_eq!(limiter, LimiterOptions::default(), "{name}");
                continue;
            };
            let (bandwidth, source) = (silk.bandwidth_bytes_per_second, &silk.bandwidth_source);
            assert_eq!((name, &limiter), ("silk", &LimiterOptions::silk(bandwidth, source)));
        }
        let text = include_str!("../designs/silk.toml").replace("[limiter.silk]", "[limiter.slik]");
        let typo = catalogue::parse::<Design>("x.toml", &text).expect_err("a typo").to_string();
        assert!(typo.contains("slik"), "{typo}");
    }

    #[test]
    fn a_design_has_one_index() {
        let pink = include_str!("../designs/pink.toml");
        let (head, engine) = pink.split_once("[engine]").expect("it has that section");
        let (_, hash) = include_str!("../designs/hash.toml").split_once("[hash]").expect("as well");
        for (text, word) in [
            (head.to_owned(), "neither"),
            (format!("{head}[engine]{engine}\n[hash]{hash}"), "both"),
        ] {
            let error = catalogue::parse::<Design>("x.toml", &text).expect_err("not one index");
            let error = error.to_string();
            assert!(error.contains("[engine] or a [hash]") && error.contains(word), "{error}");
        }
    }

    #[test]
    fn errors_say_what_is_allowed_and_where_the_fault_is() {
        let unknown = Design::load("plink").expect_err("no such design").to_string();
        assert!(unknown.contains("pink") && unknown.contains("TOML"), "{unknown}");
        let text = include_str!("../designs/pink.toml").replace("levels = 4", "levles = 4");
        let typo = catalogue::parse::<Design>("x.toml", &text).expect_err("a typo").to_string();
        assert!(typo.contains("levles") && typo.contains("line"), "{typo}");
        let text = include_str!("../designs/pink.toml").replace("levels = 4", "levels = 99");
        let bad = catalogue::parse::<Design>("x.toml", &text).expect_err("too many").to_string();
        assert!(bad.contains("levels is 99"), "{bad}");
    }
}
