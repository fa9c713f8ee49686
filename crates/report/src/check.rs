//! Checks of a report before its files are written.

use std::collections::BTreeSet;
use std::fmt;

use crate::comparison::Comparison;
use crate::figure::{BarSeries, Figure, FigureKind, Series};
use crate::marks::{Marks, Stretch};

/// Why a report is refused. Each is an error of the program that made the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// This id cannot name a file or an element of the page.
    BadId(String),
    /// Two figures, or two comparisons, have this id.
    SameId(String),
    /// A figure cannot be drawn.
    Figure {
        /// Id of the figure.
        id: String,
        /// The problem, as text.
        problem: String,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadId(id) => write!(
                f,
                "`{id}` is no id: it names files, so write small letters, digits and `-`, and \
                 neither `report` nor `comparisons`"
            ),
            Self::SameId(id) => write!(f, "two of the report have the id `{id}`: rename one"),
            Self::Figure { id, problem } => write!(f, "figure `{id}`: {problem}"),
        }
    }
}

impl std::error::Error for ReportError {}

/// Checks the figures and comparisons of a report.
pub(super) fn check(figures: &[Figure], comparisons: &[Comparison]) -> Result<(), ReportError> {
    ids(figures.iter().map(|figure| &figure.id))?;
    ids(comparisons.iter().map(|comparison| &comparison.id))?;
    for figure in figures {
        let refuse = |problem| ReportError::Figure { id: figure.id.clone(), problem };
        check_figure(figure).map_err(refuse)?;
    }
    Ok(())
}

fn ids<'a>(ids: impl Iterator<Item = &'a String>) -> Result<(), ReportError> {
    let mut seen = BTreeSet::new();
    for id in ids {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_taken = ["", "report", "comparisons"].contains(&id.as_str());
        if is_taken || id.starts_with('-') || !id.chars().all(is_allowed) {
            return Err(ReportError::BadId(id.clone()));
        }
        if !seen.insert(id) {
            return Err(ReportError::SameId(id.clone()));
        }
    }
    Ok(())
}

fn check_figure(figure: &Figure) -> Result<(), String> {
    let names = figure.series_names();
    if names.is_empty() {
        return Err("it has no series".to_owned());
    }
    let distinct: BTreeSet<&&str> = names.iter().collect();
    if distinct.len() < names.len() {
        return Err(format!("two series have one name among {names:?}"));
    }
    check_marks(figure)?;
    match &figure.kind {
        FigureKind::Lines { series, .. } => series.iter().try_for_each(check_points),
        FigureKind::Cdf { series, .. } => series.iter().try_for_each(check_distribution),
        FigureKind::Bars { categories, series, .. } => {
            series.iter().try_for_each(|bars| check_bars(bars, categories))
        }
    }
}

fn check_marks(figure: &Figure) -> Result<(), String> {
    let Marks { published, shaded, subject } = &figure.marks;
    if let Some(subject) =
        subject.as_ref().filter(|one| !figure.series_names().contains(&one.as_str()))
    {
        return Err(format!("it is about `{subject}`, which is none of its series"));
    }
    let groups: &[String] = match &figure.kind {
        FigureKind::Bars { categories, .. } => categories,
        _ => &[],
    };
    for one in published {
        if !one.value.is_finite() {
            return Err(format!("the paper's `{}` is {}", one.what, one.value));
        }
        if let Some(group) = one.group.as_ref().filter(|group| !groups.contains(group)) {
            return Err(format!("the paper's `{}` is of `{group}`, which it has not", one.what));
        }
    }
    let is_across = matches!(figure.kind, FigureKind::Lines { .. });
    let is_stretch = |one: &Stretch| one.from <= one.to && one.to.is_finite();
    match shaded.iter().find(|one| !is_across || !is_stretch(one)) {
        Some(one) => {
            Err(format!("`{}` from {} to {} cannot be shaded", one.name, one.from, one.to))
        }
        None => Ok(()),
    }
}

fn check_points(series: &Series) -> Result<(), String> {
    if series.points.is_empty() {
        return Err(format!("series `{}` has no points: leave it out", series.name));
    }
    match series.points.iter().find(|(x, y)| !x.is_finite() || !y.is_finite()) {
        Some((x, y)) => Err(format!("series `{}` has the point ({x}, {y})", series.name)),
        None => Ok(()),
    }
}

fn check_distribution(series: &Series) -> Result<(), String> {
    check_points(series)?;
    if let Some((_, share)) = series.points.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
        return Err(format!("series `{}` has {share} for a share, 0 to 1", series.name));
    }
    if !series.points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
        return Err(format!("series `{}` goes down: it is no distribution", series.name));
    }
    Ok(())
}

fn check_bars(bars: &BarSeries, categories: &[String]) -> Result<(), String> {
    let (values, groups) = (bars.values.len(), categories.len());
    if values != groups {
        return Err(format!("series `{}` has {values} bars for {groups} groups", bars.name));
    }
    if let Some(value) = bars.values.iter().flatten().find(|value| !value.is_finite()) {
        return Err(format!("series `{}` has a bar of {value}", bars.name));
    }
    if bars.values.iter().flatten().next().is_none() {
        return Err(format!("series `{}` has no bars: leave it out", bars.name));
    }
    Ok(())
}
