//! Figures as values: the data of a plot, not its drawing.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::csv::Csv;
use crate::marks::{Marks, Published, Stretch};
use crate::quantiles::resolved_quantiles;
use crate::unit::Unit;

/// A figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Identifier of the figure in file names and in the page: lower-case letters, digits and `-`.
    pub id: String,
    /// Title of the figure, one line.
    pub title: String,
    /// Caption: the result that the figure shows, and the corresponding figure of the paper.
    pub caption: String,
    /// The plot.
    #[serde(flatten)]
    pub kind: FigureKind,
    /// Marks in the plot besides the series.
    #[serde(flatten)]
    pub(super) marks: Marks,
}

/// Data of a plot. Each kind has only the axes that it needs.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines through points.
    Lines {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// The lines.
        series: Vec<Series>,
    },
    /// Cumulative distributions, as steps. The page can also show the tail, with percentiles on a
    /// logarithmic axis.
    Cdf {
        /// The measured quantity and its unit.
        x: Axis,
        /// The items that are counted, such as "gets".
        of: String,
        /// Whether the page shows the tail first.
        tail: bool,
        /// The distributions. Each point is a value and the share of items at or below the value, 0
        /// to 1.
        series: Vec<Series>,
    },
    /// Groups of bars, which start at zero. A logarithmic axis has no zero, so the values are dots
    /// there.
    Bars {
        /// The meaning of the categories, such as "YCSB workload".
        over: String,
        /// Names of the groups, from left to right.
        categories: Vec<String>,
        /// Vertical axis.
        y: Axis,
        /// One bar of each group.
        series: Vec<BarSeries>,
    },
}

/// A numeric axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// The quantity, without the unit.
    pub label: String,
    /// The unit.
    pub unit: Unit,
    /// The initial scale. A reader of the page can change the scale.
    pub scale: Scale,
}

impl Axis {
    /// Creates an axis with a linear scale.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// Creates an axis with a logarithmic scale. The axis does not show values at or below zero.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    pub(super) fn heading(&self) -> String {
        self.unit.heading(&self.label)
    }
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal factors.
    Log,
}

/// A named series of points.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, as horizontal and vertical values in the units of the axes.
    pub points: Vec<(f64, f64)>,
    /// Half width of the 95 % confidence interval of each point. Empty if no point has an interval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ci95: Vec<Option<f64>>,
}

impl Series {
    /// Creates a series without confidence intervals.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), points, ci95: Vec::new() }
    }

    /// Returns the series with confidence intervals, one for each point. Returns the series
    /// unchanged if no interval is known.
    #[must_use]
    pub fn with_ci95(mut self, ci95: impl IntoIterator<Item = Option<f64>>) -> Self {
        let ci95: Vec<Option<f64>> = ci95.into_iter().collect();
        if ci95.iter().any(Option::is_some) {
            self.ci95 = ci95;
        }
        self
    }

    /// Creates the distribution of latencies, in microseconds, from a histogram in nanoseconds. The
    /// series has about 270 points, dense towards the tail. The last point is the longest latency.
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

/// A named series of bars, one bar for each category.
#[derive(Clone, Debug, Serialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Heights, in the order of the categories. `None` is a missing bar.
    pub values: Vec<Option<f64>>,
}

impl BarSeries {
    /// Creates a series with a bar for each category.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Some).collect() }
    }
}

impl Figure {
    /// Creates a figure without marks.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        kind: FigureKind,
    ) -> Self {
        let (id, title, caption) = (id.into(), title.into(), caption.into());
        Self { id, title, caption, kind, marks: Marks::default() }
    }

    /// Returns the figure with published values added.
    #[must_use]
    pub fn with_published(mut self, published: impl IntoIterator<Item = Published>) -> Self {
        self.marks.published.extend(published);
        self
    }

    /// Returns the figure with shaded ranges of the horizontal axis added.
    #[must_use]
    pub fn with_shaded(mut self, stretches: impl IntoIterator<Item = Stretch>) -> Self {
        self.marks.shaded.extend(stretches);
        self
    }

    /// Returns the figure with the named series, the subject of the paper, drawn on top.
    #[must_use]
    pub fn about(mut self, series: impl Into<String>) -> Self {
        self.marks.subject = Some(series.into());
        self
    }

    /// Returns the data as CSV: a row for each point of lines and distributions, a row for each
    /// category of bars.
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

    /// Returns the number of outlines that the page draws: one for each series, and one for all
    /// published values.
    pub(super) fn traces(&self) -> usize {
        self.series_names().len() + usize::from(!self.marks.published.is_empty())
    }

    /// Returns the names in the legend.
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
