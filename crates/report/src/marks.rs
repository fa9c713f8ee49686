//! Marks in a plot besides its series.

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Marks {
    /// Published values, under "paper" in the legend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Shaded ranges of the horizontal axis.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shaded: Vec<Stretch>,
    /// The series that is drawn on top of all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// A published value, drawn as a line through the whole plot or through one group of bars.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// Description of the value, with its place in the paper.
    pub what: String,
    /// The value, in the unit of the horizontal axis for distributions, and of the vertical axis
    /// for all other kinds.
    pub value: f64,
    /// The group of bars to which the value applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Published {
    /// Creates a value for the whole plot.
    pub fn new(what: impl Into<String>, value: f64) -> Self {
        Self { what: what.into(), value, group: None }
    }

    /// Creates a value for one group of bars.
    pub fn of_group(group: impl Into<String>, what: impl Into<String>, value: f64) -> Self {
        Self { what: what.into(), value, group: Some(group.into()) }
    }
}

/// A shaded range of the horizontal axis, such as a window or an activity of the drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Name of the range. Ranges with the same name have the same colour.
    pub name: String,
    /// Start of the range.
    pub from: f64,
    /// End of the range.
    pub to: f64,
}
