//! Figures as values: what is drawn, not how.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::csv::Csv;
use super::marks::{Marks, Published, Stretch};
use super::unit::Unit;
use crate::picture::resolved_quantiles;

/// A figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Names its files and its place in the page: small letters, digits and `-`.
    pub id: String,
    /// What is shown, in a line.
    pub title: String,
    /// What to see in it, and which figure of the paper it stands beside.
    pub caption: String,
    /// The plot.
    #[serde(flatten)]
    pub kind: FigureKind,
    /// What stands in it beside the series.
    #[serde(flatten)]
    pub(super) marks: Marks,
}

/// What is plotted. Each kind has the axes it needs and no others.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines through points.
    Lines {
        /// Across.
        x: Axis,
        /// Up.
        y: Axis,
        /// The lines.
        series: Vec<Series>,
    },
    /// Cumulative distributions, as steps. The page can turn them to show the tail, with
    /// percentiles on a logarithmic axis.
    Cdf {
        /// Of what, in which unit.
        x: Axis,
        /// What the share is of: "gets".
        of: String,
        /// Whether the page shows the tail first.
        tail: bool,
        /// The distributions: points are a value and the share of all at or below it, 0 to 1.
        series: Vec<Series>,
    },
    /// Bars in groups, from zero. On a logarithmic axis, where lengths mean nothing, they are dots.
    Bars {
        /// What the categories are: "YCSB workload".
        over: String,
        /// Names of the groups, from left to right.
        categories: Vec<String>,
        /// Up.
        y: Axis,
        /// One bar in each group.
        series: Vec<BarSeries>,
    },
}

/// An axis of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What is counted, without the unit.
    pub label: String,
    /// In what.
    pub unit: Unit,
    /// How it is shown first; the page lets a reader change it.
    pub scale: Scale,
}

impl Axis {
    /// An axis on which equal distances are equal differences.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// An axis on which equal distances are equal factors; numbers up to zero do not show on it.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    pub(super) fn heading(&self) -> String {
        self.unit.heading(&self.label)
    }
}

/// What equal distances on an axis mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal differences.
    Linear,
    /// Equal factors.
    Log,
}

/// Points under one name.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Points, across and up, in the units of the axes.
    pub points: Vec<(f64, f64)>,
    /// How far the 95 % confidence interval of each point reaches below it and above; empty if no
    /// point has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ci95: Vec<Option<f64>>,
}

impl Series {
    /// Points under a name.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), points, ci95: Vec::new() }
    }

    /// The same with confidence intervals, one for each point; as it is if none of them is known.
    #[must_use]
    pub fn with_ci95(mut self, ci95: impl IntoIterator<Item = Option<f64>>) -> Self {
        let ci95: Vec<Option<f64>> = ci95.into_iter().collect();
        if ci95.iter().any(Option::is_some) {
            self.ci95 = ci95;
        }
        self
    }

    /// The distribution of latencies, recorded in nanoseconds, in microseconds: some 270 points,
    /// dense towards the tail, the last one the longest latency.
    pub fn latency_cdf(name: impl Into<String>, histogram: &Histogram<u64>) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let resolved = resolved_quantiles(histogram).into_iter();
        let mut points: Vec<(f64, f64)> =
            resolved.map(|(quantile, ns)| (us(ns), quantile)).collect();
        if !histogram.is_empty() {
            points.push((us(histogram.max()), 1.0));
        }
        Self::new(name, points)
    }
}

/// Bars under one name, one for each category.
#[derive(Clone, Debug, Serialize)]
pub struct BarSeries {
    /// The name in the legend.
    pub name: String,
    /// Heights in the order of the categories; none where there is no bar.
    pub values: Vec<Option<f64>>,
}

impl BarSeries {
    /// Bars under a name, one for each category.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Some).collect() }
    }
}

impl Figure {
    /// A figure without marks.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        kind: FigureKind,
    ) -> Self {
        let (id, title, caption) = (id.into(), title.into(), caption.into());
        Self { id, title, caption, kind, marks: Marks::default() }
    }

    /// The same with numbers that a paper gives.
    #[must_use]
    pub fn with_published(mut self, published: impl IntoIterator<Item = Published>) -> Self {
        self.marks.published.extend(published);
        self
    }

    /// The same with stretches of the axis across shaded.
    #[must_use]
    pub fn with_shaded(mut self, stretches: impl IntoIterator<Item = Stretch>) -> Self {
        self.marks.shaded.extend(stretches);
        self
    }

    /// The same with the series of this name, which the paper is about, drawn on top.
    #[must_use]
    pub fn about(mut self, series: impl Into<String>) -> Self {
        self.marks.subject = Some(series.into());
        self
    }

    /// The numbers: a row a point for lines and distributions, a row a category for bars.
    pub(super) fn csv(&self) -> String {
        match &self.kind {
            FigureKind::Lines { x, y, series } => points_csv(&x.heading(), &y.heading(), series),
            FigureKind::Cdf { x, of, series, .. } => {
                points_csv(&x.heading(), &format!("share of {of}"), series)
            }
            FigureKind::Bars { over, categories, y, series } => {
                let headings = series.iter().map(|bars| y.unit.heading(&bars.name));
                let mut csv = Csv::new([over.clone()].into_iter().chain(headings));
                for (i, category) in categories.iter().enumerate() {
                    let values = series.iter().map(|bars| bars.values.get(i).copied().flatten());
                    let values = values.map(|value| value.map_or(String::new(), |v| v.to_string()));
                    csv.row([category.clone()].into_iter().chain(values));
                }
                csv.text()
            }
        }
    }

    /// How many outlines the page draws: of the series, and of what a paper gives.
    pub(super) fn traces(&self) -> usize {
        self.series_names().len() + usize::from(!self.marks.published.is_empty())
    }

    /// Names in the legend.
    pub(super) fn series_names(&self) -> Vec<&str> {
        match &self.kind {
            FigureKind::Lines { series, .. } | FigureKind::Cdf { series, .. } => {
                series.iter().map(|series| series.name.as_str()).collect()
            }
            FigureKind::Bars { series, .. } => {
                series.iter().map(|bars| bars.name.as_str()).collect()
            }
        }
    }
}

fn points_csv(x: &str, y: &str, series: &[Series]) -> String {
    let has_ci95 = series.iter().any(|one| !one.ci95.is_empty());
    let interval = has_ci95.then(|| "ci95".to_owned());
    let mut csv = Csv::new(["series", x, y].map(str::to_owned).into_iter().chain(interval));
    for one in series {
        for (at, (x, y)) in one.points.iter().enumerate() {
            let ci95 = one.ci95.get(at).copied().flatten();
            let ci95 = has_ci95.then(|| ci95.map_or(String::new(), |ci95| ci95.to_string()));
            csv.row([one.name.clone(), x.to_string(), y.to_string()].into_iter().chain(ci95));
        }
    }
    csv.text()
}
