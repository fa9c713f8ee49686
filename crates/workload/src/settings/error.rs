//! Errors in a workload's settings.

use std::fmt;

use crate::Origin;

/// A setting that cannot be used. The user must correct the file or override the property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Source of the property; `None` if it was not set.
    pub origin: Option<Origin>,
    /// Name of the property.
    pub property: String,
    /// The refused value.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

impl SettingsError {
    pub(super) fn missing(property: &str) -> Self {
        Self {
            origin: None,
            property: property.to_owned(),
            value: String::new(),
            allowed: "it must be set to a whole number above 0".to_owned(),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, property, value, allowed } = self;
        match origin {
            Some(Origin::Flag(flag)) => {
                write!(f, "{flag} {value} is not allowed; allowed: {allowed}")
            }
            Some(origin) => {
                write!(f, "{origin}: {property}={value} is not allowed; allowed: {allowed}")
            }
            None if value.is_empty() => write!(f, "{property} is not set; {allowed}"),
            None => write!(f, "{property}={value} (default) is not allowed; allowed: {allowed}"),
        }
    }
}

impl std::error::Error for SettingsError {}
