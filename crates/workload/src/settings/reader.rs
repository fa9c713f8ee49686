//! Typed values from properties, with errors that name the source and the allowed values.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::SettingsError;
use crate::{Origin, Properties};

pub(super) struct Reader<'a> {
    properties: &'a Properties,
}

impl<'a> Reader<'a> {
    pub(super) fn new(properties: &'a Properties) -> Self {
        Self { properties }
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.properties.get(name).is_some()
    }

    /// Returns whether `name` is set on the command line, not by a file.
    pub(super) fn is_typed(&self, name: &str) -> bool {
        let property = self.properties.get(name);
        property.is_some_and(|property| !matches!(property.origin, Origin::File { .. }))
    }

    /// Returns the value as text, without the trailing blanks that Java keeps.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.properties.get(name).map(|property| property.value.trim())
    }

    /// Returns the source of `name`, for messages.
    pub(super) fn origin(&self, name: &str) -> String {
        self.properties.get(name).map_or_else(String::new, |property| property.origin.to_string())
    }

    /// Returns a number within `range`, or `default` if the property is not set.
    pub(super) fn number<T>(
        &self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, SettingsError>
    where
        T: Number,
    {
        Ok(self.optional(name, range)?.unwrap_or(default))
    }

    /// Returns the source of a property, if it is set.
    pub(super) fn set_at(&self, name: &str) -> Option<&Origin> {
        self.properties.get(name).map(|property| &property.origin)
    }

    /// Returns a number within `range`, or `None` if the property is not set.
    pub(super) fn optional<T: Number>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse().ok().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.refuse(name, text, T::describe(&range))),
        }
    }

    /// Returns one of the `allowed` words.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        default: T,
        allowed: &[(&str, T)],
    ) -> Result<T, SettingsError> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let found = allowed.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
            self.refuse(name, text, words.join(", "))
        })
    }

    pub(super) fn refuse(
        &self,
        name: &str,
        value: &str,
        allowed: impl Into<String>,
    ) -> SettingsError {
        SettingsError {
            origin: self.properties.get(name).map(|property| property.origin.clone()),
            property: name.to_owned(),
            value: value.to_owned(),
            allowed: allowed.into(),
        }
    }
}

/// Number types of properties.
pub(super) trait Number: FromStr + PartialOrd + Display + Copy {
    /// The word for such a number.
    const WORD: &'static str;
    /// The greatest number: the upper end of a range up to it is not shown.
    const MAX: Self;

    fn describe(range: &RangeInclusive<Self>) -> String {
        let (start, end) = (range.start(), range.end());
        if *end == Self::MAX {
            format!("{} from {start}", Self::WORD)
        } else {
            format!("{} from {start} to {end}", Self::WORD)
        }
    }
}

impl Number for u64 {
    const WORD: &'static str = "a whole number";
    const MAX: Self = u64::MAX;
}

impl Number for u32 {
    const WORD: &'static str = "a whole number";
    const MAX: Self = u32::MAX;
}

impl Number for f64 {
    const WORD: &'static str = "a number";
    const MAX: Self = f64::MAX;
}
