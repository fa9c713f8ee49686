//! A line chart as SVG: some series, two axes and a legend. The chart has no script and no font of
//! its own, and is dark if the reader's colour scheme is dark.

use std::fmt::Write;

use crate::units::three_digits;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 62.0;

/// Colours that colour-blind readers can distinguish (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// The dark colour scheme, by class: background, text, notes, grid lines, axes and bands; lines
/// (`l`) and dots (`d`) of each colour.
const DARK: &str = "@media (prefers-color-scheme:dark){.g{fill:#12161c}text{fill:#e4e8ee}.n{fill:#a3adba}\
    .r{stroke:#343d49}.a{stroke:#a3adba}.b{fill:#24402c}\
    .l0{stroke:#56b4e9}.l1{stroke:#ff8c42}.l2{stroke:#2ec49a}.l3{stroke:#e59ac4}.l4{stroke:#f0c040}.l5{stroke:#8fb8ff}\
    .d0{fill:#56b4e9}.d1{fill:#ff8c42}.d2{fill:#2ec49a}.d3{fill:#e59ac4}.d4{fill:#f0c040}.d5{fill:#8fb8ff}}";

/// A named line.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<(f64, f64)>,
}

enum Kind {
    Linear,
    Log,
    /// Values are `1 / (1 - quantile)`; ticks are percentiles.
    Tail,
}

/// An axis: its label, and how values are placed on it.
pub struct Scale {
    label: String,
    kind: Kind,
}

impl Scale {
    /// Returns a linear axis.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), kind: Kind::Linear }
    }

    /// Returns a logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), kind: Kind::Log }
    }

    /// Returns an axis of percentiles that stretches the tail.
    pub fn tail(label: &str) -> Self {
        Self { label: label.to_owned(), kind: Kind::Tail }
    }

    fn is_log(&self) -> bool {
        !matches!(self.kind, Kind::Linear)
    }

    /// Returns the ends of the axis for these values.
    fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return (1.0, 10.0);
        }
        match self.kind {
            Kind::Linear => (0.0, if high > 0.0 { high } else { 1.0 }),
            Kind::Tail => (1.0, high.max(10.0)),
            Kind::Log => {
                let low = 10_f64.powf(low.max(1e-3).log10().floor());
                (low, 10_f64.powf(high.max(low * 1.1).log10().ceil()))
            }
        }
    }

    fn share(&self, value: f64, (low, high): (f64, f64)) -> f64 {
        if self.is_log() {
            (value.max(low).log10() - low.log10()) / (high.log10() - low.log10())
        } else {
            (value - low) / (high - low)
        }
    }

    /// Returns the values and labels of the ticks.
    fn ticks(&self, (low, high): (f64, f64)) -> Vec<(f64, String)> {
        match self.kind {
            Kind::Linear => {
                let step = nice_step(high - low);
                let count = (high / step * 1.0001) as u32;
                (0..=count).map(|i| f64::from(i) * step).map(|v| (v, trimmed(v))).collect()
            }
            Kind::Log => decades(low, high).map(|v| (v, trimmed(v))).collect(),
            Kind::Tail => {
                let mut ticks = vec![(1.0, "min".to_owned()), (2.0, "p50".to_owned())];
                ticks.extend(
                    decades(10.0, high).map(|v| (v, format!("p{}", trimmed(100.0 - 100.0 / v)))),
                );
                ticks
            }
        }
    }
}

fn decades(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let first = low.log10().round() as i32;
    (first..).map(|exponent| 10_f64.powi(exponent)).take_while(move |v| *v <= high * 1.0001)
}

fn nice_step(span: f64) -> f64 {
    let raw = span / 8.0;
    let decade = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * decade).find(|s| *s >= raw).unwrap_or(raw)
}

/// Formats a number without trailing zeros.
fn trimmed(value: f64) -> String {
    if value >= 1_000_000.0 {
        return format!("{}M", trimmed(value / 1e6));
    }
    if value >= 1_000.0 {
        return format!("{}k", trimmed(value / 1e3));
    }
    let text = format!("{value:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A chart of lines, as SVG.
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// The lines.
    pub series: Vec<Series>,
    /// The value that the legend gives for each line.
    pub note: Note,
    /// Shaded ranges of the x axis.
    pub bands: Vec<Band>,
}

/// The value that the legend gives for a line.
#[derive(Clone, Copy)]
pub enum Note {
    /// The last value.
    End,
    /// The largest value.
    Highest,
}

/// A shaded range of the x axis, with its name.
pub struct Band {
    /// The name, written into the range.
    pub name: String,
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
}

impl Chart {
    /// Returns the SVG document.
    pub fn render(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("a string takes any text");
        svg
    }

    fn draw(&self, svg: &mut String) -> std::fmt::Result {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let of_bands = self.bands.iter().flat_map(|band| [band.from, band.to]);
        let x_ends = self.x.ends(points().map(|point| point.0).chain(of_bands));
        let y_ends = self.y.ends(points().map(|point| point.1));
        let px = |x: f64| LEFT + self.x.share(x, x_ends) * (WIDTH - LEFT - RIGHT);
        let py = |y: f64| HEIGHT - BOTTOM - self.y.share(y, y_ends) * (HEIGHT - TOP - BOTTOM);
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<style>{DARK}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\" class=\"g\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            escaped(&self.title)
        )?;
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        self.draw_bands(svg, px)?;
        for (value, label) in self.x.ticks(x_ends) {
            let x = px(value);
            writeln!(
                svg,
                "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#e0e0e0\" class=\"r\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 20.0
            )?;
        }
        for (value, label) in self.y.ticks(y_ends) {
            let y = py(value);
            writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#e0e0e0\" class=\"r\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            )?;
        }
        writeln!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#404040\" class=\"a\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 14.0,
            escaped(&self.x.label),
            f64::midpoint(TOP, bottom),
            escaped(&self.y.label)
        )?;
        self.draw_series(svg, px, py)?;
        svg.push_str("</svg>\n");
        Ok(())
    }

    fn draw_bands(&self, svg: &mut String, px: impl Fn(f64) -> f64) -> std::fmt::Result {
        for band in &self.bands {
            let (from, to) = (px(band.from), px(band.to));
            writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\" fill=\"#f0f4e0\" class=\"b\"/>\
                 <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#606060\" \
                 font-size=\"11\" class=\"n\">{}</text>",
                (to - from).max(0.0),
                HEIGHT - BOTTOM - TOP,
                f64::midpoint(from, to),
                TOP - 6.0,
                escaped(&band.name)
            )?;
        }
        Ok(())
    }

    /// Draws the lines and the legend.
    fn draw_series(
        &self,
        svg: &mut String,
        px: impl Fn(f64) -> f64,
        py: impl Fn(f64) -> f64,
    ) -> std::fmt::Result {
        for (i, series) in self.series.iter().enumerate() {
            let n = i % COLOURS.len();
            let colour = COLOURS[n];
            let path: Vec<String> =
                series.points.iter().map(|(x, y)| format!("{:.1} {:.1}", px(*x), py(*y))).collect();
            let legend = TOP + 14.0 + i as f64 * 40.0;
            let mut heights = series.points.iter().map(|point| point.1);
            let (note, value) = match self.note {
                Note::End => ("ends at", heights.next_back().unwrap_or(0.0)),
                Note::Highest => ("at most", heights.fold(0.0, f64::max)),
            };
            if let [(x, y)] = series.points[..] {
                let (x, y) = (px(x), py(y));
                writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\" class=\"d{n}\"/>"
                )?;
            }
            writeln!(
                svg,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" class=\"l{n}\"/>\n\
                 <path d=\"M{} {legend}h22\" stroke=\"{colour}\" stroke-width=\"3\" class=\"l{n}\"/>\
                 <text x=\"{}\" y=\"{}\">{}</text>\
                 <text x=\"{}\" y=\"{}\" fill=\"#606060\" font-size=\"11\" class=\"n\">{note} {} us</text>",
                path.join("L"),
                WIDTH - RIGHT + 12.0,
                WIDTH - RIGHT + 40.0,
                legend + 4.0,
                escaped(&series.name),
                WIDTH - RIGHT + 40.0,
                legend + 18.0,
                three_digits(value)
            )?;
        }
        Ok(())
    }
}

/// Escapes text for XML. XML allows no control characters, not even as references.
fn escaped(text: &str) -> String {
    let text = crate::units::printable(text);
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_are_well_formed_xml_whatever_is_in_them() {
        assert_eq!(escaped("a<b>&\u{1b}[2J\u{ffff}"), "a&lt;b&gt;&amp;\\u{1b}[2J\u{fffd}");
    }
}
