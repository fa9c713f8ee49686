//! A few curves as SVG, latency over rates: names stand where the curves end, letters are large enough for a telephone, curves differ
//! by dashes as well as by colours, and the ground is white wherever it is shown.

use std::fmt::Write;

const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 463.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 162.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 115.0;
/// From one name to the next.
const LINE: f64 = 23.0;

/// Colours that colour-blind readers can tell apart (Okabe and Ito), and dashes.
const LOOKS: [(&str, &str); 6] = [
    ("#555555", "2 5"),
    ("#0072b2", "none"),
    ("#d55e00", "12 5"),
    ("#a34a7a", "12 4 2 4"),
    ("#007a5a", "6 4"),
    ("#8a6400", "3 3"),
];

/// A measured point.
pub struct Dot {
    pub x: f64,
    /// Microseconds.
    pub y: f64,
    pub is_open: bool,
}

pub struct Curve {
    pub name: String,
    /// It was measured once, for all rates: no dots.
    pub is_level: bool,
    /// Its store was there no more behind the last dot.
    pub has_ended: bool,
    /// From left to right; the first that is open ends the curve.
    pub dots: Vec<Dot>,
}

pub struct Picture {
    pub title: String,
    pub x_label: String,
    /// What an open dot means.
    pub open_label: String,
    /// What a dagger behind a name means.
    pub ended_label: String,
    /// Where ticks are, and what they say.
    pub x: Vec<(f64, String)>,
    pub curves: Vec<Curve>,
}

impl Picture {
    /// The SVG document.
    pub fn render(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("a string takes any text");
        svg
    }

    fn draw(&self, svg: &mut String) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"19\" fill=\"#111111\" role=\"img\">\n<title>{0}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"12\" y=\"32\" font-size=\"21\" font-weight=\"bold\">{0}</text>",
            self.title
        )?;
        let us = || self.curves.iter().flat_map(drawn).map(|dot| dot.y);
        let ticks = ticks(us().fold(f64::MAX, f64::min), us().fold(1.0, f64::max));
        let (low, high) = (ticks[0].log10(), ticks[ticks.len() - 1].log10());
        let py = |us: f64| bottom - (us.log10() - low) / (high - low) * (bottom - TOP);
        for tick in &ticks {
            let y = py(*tick);
            writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 6.0,
                time(*tick)
            )?;
        }
        let px = |x: f64| self.place(x, right);
        for (x, label) in &self.x {
            let x = px(*x);
            writeln!(
                svg,
                "<path d=\"M{x:.1} {bottom}v6\" stroke=\"#404040\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 27.0
            )?;
        }
        writeln!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#404040\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            bottom + 53.0,
            self.x_label
        )?;
        let is_open = self.curves.iter().flat_map(drawn).any(|dot| dot.is_open);
        let has_ended = self.curves.iter().any(|curve| curve.has_ended);
        let notes = [(is_open, &self.open_label), (has_ended, &self.ended_label)];
        let notes = notes.iter().filter(|(is_due, _)| *is_due).map(|(_, label)| label);
        for (at, label) in notes.enumerate() {
            let (x, y) = (f64::midpoint(LEFT, right), bottom + 79.0 + LINE * at as f64);
            writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>")?;
        }
        self.draw_curves(svg, px, py)?;
        svg.push_str("</svg>\n");
        Ok(())
    }

    /// Where a rate stands: as far apart as rates are by their ratios.
    fn place(&self, x: f64, right: f64) -> f64 {
        let all = || self.x.iter().map(|tick| tick.0.log10());
        let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        let share = if high > low { (x.log10() - low) / (high - low) } else { 0.5 };
        LEFT + 22.0 + share * (right - LEFT - 40.0)
    }

    fn draw_curves(
        &self,
        svg: &mut String,
        px: impl Fn(f64) -> f64,
        py: impl Fn(f64) -> f64,
    ) -> std::fmt::Result {
        let last = self.x.last().map_or(0.0, |tick| tick.0);
        let mut ends = Vec::new();
        for (curve, (colour, dashes)) in self.curves.iter().zip(LOOKS.iter().cycle()) {
            let places: Vec<_> =
                drawn(curve).map(|dot| (px(dot.x), py(dot.y), dot.is_open)).collect();
            let path: Vec<_> = places.iter().map(|(x, y, _)| format!("{x:.1} {y:.1}")).collect();
            let level = curve.dots.first().filter(|_| curve.is_level);
            let data = level.map_or(String::new(), |dot| {
                format!("data-peer=\"{}\" data-us=\"{:.1}\" ", curve.name, dot.y)
            });
            writeln!(
                svg,
                "<path {data}d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"3.5\" stroke-dasharray=\"{dashes}\"/>",
                path.join("L")
            )?;
            for (dot, (x, y, is_open)) in drawn(curve).zip(&places).filter(|_| !curve.is_level) {
                let fill = if *is_open { "white" } else { colour };
                writeln!(
                    svg,
                    "<circle data-peer=\"{}\" data-writes=\"{}\" data-us=\"{:.1}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
                    curve.name, dot.x, dot.y
                )?;
            }
            let Some((x, y, _)) = places.last().copied() else { continue };
            if drawn(curve).last().is_some_and(|dot| dot.x >= last) {
                ends.push((x, y, curve, *colour));
            } else {
                // A line to the edge would look like a curve.
                name(svg, curve, colour, (x, y - 13.0), "middle")?;
            }
        }
        ends.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        let heights = apart(&ends.iter().map(|end| end.1).collect::<Vec<_>>(), HEIGHT - BOTTOM);
        for ((x, y, curve, colour), at) in ends.into_iter().zip(heights) {
            let begin = WIDTH - RIGHT + 8.0;
            writeln!(
                svg,
                "<path d=\"M{:.1} {y:.1}L{:.1} {at:.1}\" stroke=\"#999999\" stroke-dasharray=\"2 4\"/>",
                x + 7.0,
                begin - 2.0
            )?;
            name(svg, curve, colour, (begin, at + 6.0), "start")?;
        }
        Ok(())
    }
}

/// Writes the name of a curve at a place.
fn name(
    svg: &mut String,
    curve: &Curve,
    colour: &str,
    (x, y): (f64, f64),
    anchor: &str,
) -> std::fmt::Result {
    let dagger = if curve.has_ended { " †" } else { "" };
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}{dagger}</text>",
        curve.name
    )
}

/// The dots up to the first that is open.
fn drawn(curve: &Curve) -> impl Iterator<Item = &Dot> {
    let open = curve.dots.iter().position(|dot| dot.is_open);
    curve.dots.iter().take(open.map_or(usize::MAX, |open| open + 1))
}

/// Heights that go down, moved until there is a line between each two and none is below `bottom`.
fn apart(heights: &[f64], bottom: f64) -> Vec<f64> {
    let mut moved = heights.to_vec();
    for i in 1..moved.len() {
        moved[i] = moved[i].max(moved[i - 1] + LINE);
    }
    let mut most = bottom;
    for height in moved.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LINE;
    }
    moved
}

/// Round numbers from below the lowest to above the highest, or powers of ten only where that is enough.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decade = |us: f64| us.max(1.0).log10().floor() as i32;
    let steps = (decade(low)..=decade(high) + 1)
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(decade)));
    let steps: Vec<f64> = steps.collect();
    let first = steps.iter().rposition(|step| *step <= low).unwrap_or(0);
    let last = steps.iter().position(|step| *step >= high).unwrap_or(steps.len() - 1);
    let range = &steps[first..=last.max(first + 1)];
    if range.len() <= 8 {
        return range.to_vec();
    }
    (decade(low)..=(high.log10().ceil() as i32)).map(|decade| 10_f64.powi(decade)).collect()
}

fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.0} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_apart_and_within() {
        assert_eq!(apart(&[10.0, 100.0], 300.0), [10.0, 100.0]);
        assert_eq!(apart(&[10.0, 12.0, 13.0], 300.0), [10.0, 33.0, 56.0]);
        assert_eq!(apart(&[299.0, 299.0], 300.0), [277.0, 300.0]);
    }

    #[test]
    fn ticks_enclose_what_is_drawn() {
        assert_eq!(ticks(120.0, 1900.0), [100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(ticks(90.0, 250_000.0), [10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(ticks(100.0, 100.0), [100.0, 200.0]);
    }

    #[test]
    fn a_curve_ends_where_its_store_fell_behind() {
        let dot = |x, is_open| Dot { x, y: 100.0, is_open };
        let curve = Curve {
            name: String::new(),
            is_level: false,
            has_ended: false,
            dots: vec![dot(1.0, false), dot(2.0, true), dot(3.0, false)],
        };
        assert_eq!(drawn(&curve).map(|dot| dot.x).collect::<Vec<_>>(), [1.0, 2.0]);
    }
}
