//! The data of a figure as a table below the plot, for readers that cannot see the plot or need
//! exact values.

use crate::figure::{BarSeries, Figure, FigureKind, Series};
use crate::units::{count_text, three_digits};

/// Rows of text. The first column has the names of the rows, the others have numbers.
pub(super) struct Numbers {
    pub unit: String,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Percentiles in the table of a distribution.
const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

/// Maximum number of rows. A figure of lines with more positions has no table.
const MOST_ROWS: usize = 30;

/// Returns the table, or `None` if it would be too long.
pub(super) fn of(figure: &Figure) -> Option<Numbers> {
    match &figure.kind {
        FigureKind::Lines { x, y, series } => {
            let places = places(series);
            let rows = places.iter().map(|place| {
                let at = |one: &Series| {
                    one.points.iter().find(|p| p.0.total_cmp(place).is_eq()).map(|p| p.1)
                };
                row(number(*place), series.iter().map(at))
            });
            let (unit, headings) = (y.unit.shown().to_owned(), headings(x.heading(), figure));
            (places.len() <= MOST_ROWS).then(|| Numbers { unit, headings, rows: rows.collect() })
        }
        FigureKind::Cdf { x, of, series, .. } => {
            let rows = PERCENTILES.map(|(name, share)| {
                let at = |one: &Series| one.points.iter().find(|p| p.1 >= share).map(|p| p.0);
                row(name.to_owned(), series.iter().map(at))
            });
            let (unit, headings) =
                (x.unit.shown().to_owned(), headings(format!("of all {of}"), figure));
            Some(Numbers { unit, headings, rows: rows.into() })
        }
        FigureKind::Bars { over, categories, y, series } => {
            let rows = categories.iter().enumerate().map(|(i, category)| {
                let at = |bars: &BarSeries| bars.values.get(i).copied().flatten();
                row(category.clone(), series.iter().map(at))
            });
            let (unit, headings) = (y.unit.shown().to_owned(), headings(over.clone(), figure));
            Some(Numbers { unit, headings, rows: rows.collect() })
        }
    }
}

fn headings(first: String, figure: &Figure) -> Vec<String> {
    [first].into_iter().chain(figure.series_names().into_iter().map(str::to_owned)).collect()
}

fn row(name: String, values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
    let values = values.map(|value| value.map_or("-".to_owned(), number));
    [name].into_iter().chain(values).collect()
}

/// Returns the horizontal positions of all points, sorted and without duplicates.
fn places(series: &[Series]) -> Vec<f64> {
    let mut places: Vec<f64> =
        series.iter().flat_map(|one| one.points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// Formats a number for a reader: whole numbers and numbers of 1 000 or more with all digits before
/// the point, other numbers with about three significant digits.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value.fract() == 0.0 && magnitude < 1e15 || magnitude >= 1_000.0 {
        let sign = if value <= -0.5 { "-" } else { "" };
        return format!("{sign}{}", count_text(magnitude.round() as u64));
    }
    if magnitude < 0.1 {
        return format!("{value:.2e}");
    }
    three_digits(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let cases = [
            (209_181.4, "209 181"),
            (-1_500.5, "-1 501"),
            (64.0, "64"),
            (0.0, "0"),
            (0.5, "0.50"),
            (12.34, "12.3"),
            (0.00123, "1.23e-3"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_distribution_is_read_at_its_percentiles() {
        let series = Series::new("a", [(10.0, 0.5), (20.0, 0.95), (30.0, 0.999)]);
        let kind = FigureKind::Cdf {
            x: crate::Axis::log("latency", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: false,
            series: vec![series],
        };
        let figure = Figure::new("f", "", "", kind);
        let numbers = of(&figure).expect("every distribution has a table");
        let values: Vec<&str> = numbers.rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(values, ["10", "20", "30", "30", "-", "-"]);
        assert_eq!(numbers.headings, ["of all gets", "a"]);
        assert_eq!(numbers.unit, "\u{b5}s");
    }
}
