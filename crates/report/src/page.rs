//! The page: one file that loads no other.
//!
//! The text is HTML, so that the page is readable without a script and in print. `page.js` draws
//! the figures from the report's JSON. The script stores the number of drawn figures
//! (`data-figures-drawn`) and the errors (`data-errors`, a JSON list) as attributes of the document
//! element; tests read these attributes.

use std::fmt::Write;

use crate::comparison::{Comparison, Counted, counts};
use crate::contents::{Report, Table};
use crate::figure::Figure;
use crate::html::{escaped, script_json};
use crate::verdict::{RULE, Verdict};
use crate::{numbers, plotly_js};

const STYLE: &str = include_str!("page.css");
/// Runs before all other scripts, so that no error is missed.
const ERRORS: &str = include_str!("errors.js");
const AXES: &str = include_str!("axes.js");
const DRAW: &str = include_str!("page.js");

/// Content security policy: forbids the page to load anything.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
                      style-src 'unsafe-inline'; img-src data: blob:";

/// Returns the page of a report. Requires: the report has been checked.
pub(super) fn render(report: &Report, tables: &[Table]) -> String {
    let json = serde_json::to_string(report).expect("strings and numbers become JSON");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <script>{ERRORS}</script>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {header}{contents}{tables}{figures}{comparisons}{notes}{footer}</main>\n\
         <script type=\"application/json\" id=\"report\">{json}</script>\n\
         <script>{plotly}</script>\n<script>\n{AXES}</script>\n<script>\n{DRAW}</script>\n</body>\n</html>\n",
        title = escaped(&report.title),
        header = header(report),
        contents = contents(report),
        comparisons = comparisons(&report.comparisons),
        tables = tables.iter().map(table).collect::<String>(),
        figures = (1..).zip(&report.figures).map(figure).collect::<String>(),
        notes = notes(&report.notes),
        footer = footer(),
        json = script_json(&json),
        plotly = plotly_js::source(),
    )
}

fn header(report: &Report) -> String {
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"summary\">{}</p>\n<dl>\n<dt>Scale</dt><dd>{}</dd>\n\
         <dt>Reproduce with</dt><dd><code>{}</code></dd>\n{}</dl>\n</header>\n",
        escaped(&report.title),
        escaped(&report.summary),
        escaped(&report.scale),
        escaped(&report.command),
        tally(&report.comparisons),
    )
}

/// Returns the number of published claims by verdict, and the same for fitted claims.
fn tally(comparisons: &[Comparison]) -> String {
    let (claims, of_claims) = counts(comparisons, Counted::Yes);
    let (fitted, of_fitted) = counts(comparisons, Counted::Fitted);
    if comparisons.is_empty() {
        return String::new();
    }
    let badges = |counts: [(Verdict, usize); 3]| {
        counts.map(|(verdict, count)| badge(verdict, &format!(": {count}"))).join(" ")
    };
    let others = comparisons.len() - claims - fitted;
    let others = if others > 0 {
        format!(
            "<span class=\"none\">not counted: {others} that are no published claim, or one of these under other conditions</span>"
        )
    } else {
        String::new()
    };
    let fitted = match fitted {
        0 => String::new(),
        fitted => format!(
            "<dt>{fitted} fitted besides</dt><dd class=\"tally\">{}</dd>\n",
            badges(of_fitted)
        ),
    };
    format!(
        "<dt>{claims} published claims</dt><dd class=\"tally\">{} {others}</dd>\n{fitted}",
        badges(of_claims)
    )
}

fn contents(report: &Report) -> String {
    if report.figures.len() < 2 {
        return String::new();
    }
    let mut html = "<nav aria-label=\"Contents\">\n<ul>\n".to_owned();
    for (number, figure) in (1..).zip(&report.figures) {
        let title = escaped(&figure.title);
        writeln!(html, "<li><a href=\"#{}\">Figure {number}. {title}</a></li>", figure.id)
            .expect("a string takes any text");
    }
    if !report.comparisons.is_empty() {
        html.push_str("<li><a href=\"#comparisons\">The paper and this run</a></li>\n");
    }
    html.push_str("</ul>\n</nav>\n");
    html
}

fn badge(verdict: Verdict, more: &str) -> String {
    let (class, mark) = match verdict {
        Verdict::Holds => ("holds", "\u{2713}"),
        Verdict::Deviates => ("deviates", "\u{25d0}"),
        Verdict::DoesNotHold => ("fails", "\u{2717}"),
        Verdict::NotApplicable => ("none", "\u{2013}"),
    };
    format!("<span class=\"verdict {class}\">{mark} {}{more}</span>", verdict.words())
}

fn comparisons(comparisons: &[Comparison]) -> String {
    if comparisons.is_empty() {
        return String::new();
    }
    let rows: String = comparisons.iter().map(comparison).collect();
    format!(
        "<section id=\"comparisons\">\n<h2>The paper and this run</h2>\n\
         <table class=\"comparisons\">\n<thead><tr><th>What</th><th>Paper</th><th>Ours</th>\
         <th>Verdict</th><th>Why</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n\
         <p class=\"rule\">{RULE}</p>\n{}</section>\n",
        files("comparisons")
    )
}

fn comparison(one: &Comparison) -> String {
    let value =
        |label: &str, text: &str| format!("<td data-label=\"{label}\">{}</td>", escaped(text));
    format!(
        "<tr id=\"comparison-{}\"><th scope=\"row\">{}</th>{}{}\
         <td data-label=\"Verdict\">{}</td><td data-label=\"Why\">{}</td></tr>\n",
        one.id,
        escaped(&one.what),
        value("Paper", &one.paper),
        value("Ours", &one.ours),
        badge(one.holds, "") + one.remark(),
        escaped(&one.sentence),
    )
}

fn figure((number, figure): (usize, &Figure)) -> String {
    format!(
        "<figure id=\"{id}\" data-series=\"{series}\">\n<h2>Figure {number}. {title}</h2>\n\
         <div class=\"views\"></div>\n<div class=\"plot\"></div>\n\
         <noscript><p>This plot needs a script; its numbers do not.</p></noscript>\n\
         <p class=\"hidden-points\" hidden></p>\n<figcaption>{caption}</figcaption>\n\
         {numbers}{files}</figure>\n",
        id = figure.id,
        series = figure.traces(),
        title = escaped(&figure.title),
        caption = escaped(&figure.caption),
        numbers = numbers_table(figure),
        files = files(&figure.id),
    )
}

fn numbers_table(figure: &Figure) -> String {
    let Some(numbers) = numbers::of(figure) else { return String::new() };
    let unit = match numbers.unit.as_str() {
        "" => String::new(),
        unit => format!(", {}", escaped(unit)),
    };
    format!(
        "<details><summary>Data as a table{unit}</summary>\n{}</details>\n",
        rows_table(&numbers.headings, &numbers.rows)
    )
}

/// Tables with more rows are folded, so that the figures stay near the top of the page.
const MOST_ROWS: usize = 60;

fn table(table: &Table) -> String {
    let rows = rows_table(&table.headings, &table.rows);
    let rows = match table.rows.len() {
        count if count > MOST_ROWS => {
            format!("<details><summary>All {count} rows</summary>\n{rows}</details>\n")
        }
        _ => rows,
    };
    let title = escaped(&table.title);
    format!("<section id=\"{}\">\n<h2>{title}</h2>\n{rows}</section>\n", table.id)
}

/// Returns a table whose rows begin with a name. Columns of text are aligned left, columns of
/// numbers right.
fn rows_table(headings: &[String], rows: &[Vec<String>]) -> String {
    let is_text =
        |column: usize| rows.iter().filter(|row| is_text(&row[column])).count() * 2 > rows.len();
    let classes: Vec<&str> = (0..headings.len())
        .map(|column| if column == 0 || is_text(column) { "" } else { " class=\"number\"" })
        .collect();
    let cells = |tag: &str, row: &[String]| {
        let cells = row.iter().zip(&classes).enumerate().map(|(column, (text, class))| {
            if column == 0 {
                element("th", if tag == "th" { "" } else { " scope=\"row\"" }, text)
            } else {
                element(tag, class, text)
            }
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let heading = cells("th", headings);
    let rows: String = rows.iter().map(|row| cells("td", row)).collect();
    format!(
        "<div class=\"wide\"><table class=\"numbers\">\n<thead>{heading}</thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

/// Whether a cell is text: neither a number, with or without a unit or comparison, nor the `-` of a
/// missing value.
fn is_text(cell: &str) -> bool {
    cell != "-" && !cell.starts_with(|c: char| c.is_ascii_digit() || "+-<".contains(c))
}

fn element(tag: &str, attributes: &str, text: &str) -> String {
    format!("<{tag}{attributes}>{}</{tag}>", escaped(text))
}

/// Returns links to the files of a figure or of the comparisons.
fn files(id: &str) -> String {
    format!(
        "<p class=\"files\">Files: <a href=\"{id}.csv\">{id}.csv</a>, \
         <a href=\"{id}.json\">{id}.json</a></p>\n"
    )
}

fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| element("li", "", note)).collect();
    format!("<section id=\"notes\">\n<h2>Notes</h2>\n<ul>\n{items}</ul>\n</section>\n")
}

fn footer() -> String {
    format!(
        "<footer>levelhead {}. In a plot: hover or tap for values; click a name in the legend to \
         hide it, twice to see it alone; drag to look closer, click twice to come back. The same \
         as one file: <a href=\"report.json\">report.json</a>.</footer>\n",
        env!("CARGO_PKG_VERSION")
    )
}
