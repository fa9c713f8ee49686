//! Designs: which engine options make which published system.

use engine::Options;
use serde::Deserialize;

use crate::catalogue::{self, CatalogueError, Entry};

/// A named design.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Its name in results.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// The engine's options.
    pub engine: Options,
}

impl Design {
    /// A built-in design by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Names of the built-in designs.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for Design {
    const KIND: &'static str = "design";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("pink", include_str!("../designs/pink.toml")),
        ("pink-hw", include_str!("../designs/pink-hw.toml")),
        ("lightstore", include_str!("../designs/lightstore.toml")),
        ("iterkvssd", include_str!("../designs/iterkvssd.toml")),
        ("iterkvssd-i", include_str!("../designs/iterkvssd-i.toml")),
        ("iterkvssd-b", include_str!("../designs/iterkvssd-b.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        self.engine.problems()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_designs_are_the_engine_s_presets() {
        let presets = [
            ("pink", Options::pink()),
            ("pink-hw", Options::pink_hw()),
            ("lightstore", Options::lightstore()),
        ];
        for (name, preset) in presets {
            let design = Design::load(name).expect("it is built in");
            assert_eq!((&*design.name, design.engine), (name, preset));
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
