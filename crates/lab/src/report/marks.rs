//! What stands in a plot beside its series.

use serde::Serialize;

/// Marks of a plot.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Marks {
    /// What a paper gives, under "paper" in the legend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Stretches of the axis across.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shaded: Vec<Stretch>,
    /// The series that is drawn on top of all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// A number that a paper gives, as a line at that value: through the whole plot, or through one group of bars.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// What it is, and where the paper says so.
    pub what: String,
    /// In the unit of the axis of values: the one across in distributions, the one up in all others.
    pub value: f64,
    /// The group of bars that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Published {
    /// A number that goes for the whole plot.
    pub fn new(what: impl Into<String>, value: f64) -> Self {
        Self { what: what.into(), value, group: None }
    }

    /// A number that goes for a group of bars.
    pub fn of_group(group: impl Into<String>, what: impl Into<String>, value: f64) -> Self {
        Self { what: what.into(), value, group: Some(group.into()) }
    }
}

/// A stretch of the axis across: a window, or what a drive does meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// What goes on in it; all of one name are alike.
    pub name: String,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}
