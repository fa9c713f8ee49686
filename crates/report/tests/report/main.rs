//! Checks reports in a browser: everything is drawn, and nothing fails.

mod browser;
mod sample;
mod side_by_side;

use std::path::{Path, PathBuf};

use browser::{Page, VIEWS};
use report::Report;

/// Asserts that a report was drawn completely.
fn assert_drawn(page: &Page) {
    assert_eq!(page.errors, Vec::<String>::new(), "the page says what went wrong");
    assert_eq!(page.says_drawn, page.figures.len(), "the page counts the figures it drew");
    for figure in &page.figures {
        assert!(figure.width >= 200.0 && figure.height >= 200.0, "too small: {figure:?}");
        assert_eq!(figure.marks, figure.series, "not every series is drawn: {figure:?}");
    }
}

/// Writes a report to its own directory, with `change` applied to the page.
fn write(name: &str, report: &Report, change: impl Fn(&str) -> String) -> PathBuf {
    write_files(name, report.files().expect("a good report"), change)
}

fn write_files(
    name: &str,
    files: Vec<(String, String)>,
    change: impl Fn(&str) -> String,
) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("the target directory takes files");
    for (name, contents) in files {
        let contents = if name == "index.html" { change(&contents) } else { contents };
        std::fs::write(directory.join(name), contents).expect("the target directory takes files");
    }
    directory
}

#[test]
fn a_sample_is_drawn_whole() {
    let report = sample::report();
    let directory = write("sample-report", &report, str::to_owned);
    for view in VIEWS {
        let Some(page) = browser::open(&directory, view) else { return };
        let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
        let expected: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, expected);
        assert_drawn(&page);
    }
}

#[test]
fn results_side_by_side_are_drawn_whole() {
    for (name, files) in [("sweep", side_by_side::sweep()), ("comparison", side_by_side::two())] {
        let directory = write_files(&format!("side-by-side-{name}"), files, str::to_owned);
        for view in VIEWS {
            let Some(page) = browser::open(&directory, view) else { return };
            assert!(page.figures.len() >= 4, "{name}: {:?}", page.figures);
            assert_drawn(&page);
        }
    }
}

/// A script that zooms and hovers in each plot, and then selects every option above the plots.
const READER: &str = r#"<script>
addEventListener("load", async () => {
  for (const plot of document.querySelectorAll(".plot")) {
    while (!plot.layout) await new Promise((later) => setTimeout(later, 20));
    await Plotly.relayout(plot, { "yaxis.range": plot.layout.yaxis.range.map((end) => end * 0.9) });
    Plotly.Fx.hover(plot, [{ curveNumber: 0, pointNumber: 1 }]);
  }
  for (const button of document.querySelectorAll(".views button")) button.click();
});
</script></body>"#;

#[test]
fn every_view_can_be_chosen() {
    let directory =
        write("chosen-report", &sample::report(), |page| page.replace("</body>", READER));
    let Some(page) = browser::open(&directory, VIEWS[0]) else { return };
    assert_drawn(&page);
    let chosen: Vec<String> = page.figures.iter().map(|figure| figure.chosen.join(" ")).collect();
    // The last option of each group was selected last.
    assert_eq!(chosen, ["log tail", "log tail", "log", "log", "log log", "log log"]);
}

/// Values that cannot be shown are reported, and nothing fails.
#[test]
fn odd_figures_do_no_harm() {
    let reader = |page: &str| page.replace("</body>", READER);
    let directory = write("odd-report", &sample::odd(), reader);
    let Some(page) = browser::open(&directory, VIEWS[0]) else { return };
    assert_eq!(page.errors, Vec::<String>::new());
    assert_eq!(page.says_drawn, page.figures.len());
    let silent: Vec<&str> = page
        .figures
        .iter()
        .filter(|figure| !figure.says_hidden)
        .map(|figure| figure.id.as_str())
        .collect();
    assert_eq!(silent, ["one-point", "many"], "the others have values that a log axis hides");
}

/// Without this test, checks that examine nothing would pass.
#[test]
fn a_broken_page_is_seen() {
    let directory = write("broken-report", &sample::report(), |page| {
        let broken = page.replace("Plotly.react(", "Plotly.missing(");
        assert_ne!(page, broken);
        broken.replace("</main>", "<img src=\"https://example.invalid/a.png\"></main>")
    });
    let Some(page) = browser::open(&directory, VIEWS[0]) else { return };
    assert_eq!(page.says_drawn, 0);
    assert!(page.errors.iter().any(|error| error.contains("missing")), "{:?}", page.errors);
    assert!(page.errors.iter().any(|error| error.contains("example.invalid")), "{:?}", page.errors);
}

/// Without this test, checks that never find a problem for readers would pass.
#[test]
fn what_a_reader_would_stumble_over_is_seen() {
    let directory = write("unreadable-report", &sample::report(), |page| {
        let worse = page
            .replace("r: narrow.matches || printing ? 16 : 48", "r: 16")
            .replace("orientation: \"v\", bgcolor", "bgcolor")
            .replace("x: 0, y: 1.02, xanchor: \"left\"", "x: 1, y: 1.02, xanchor: \"right\"")
            .replace("--text: #1c2430", "--text: #d8d8d8")
            .replace("</main>", "<div style=\"width: 3000px\">wide</div></main>");
        assert_ne!(page, worse);
        worse
    });
    let Some(page) = browser::open(&directory, VIEWS[0]) else { return };
    for complaint in ["scrolls sideways", "under the toolbar", "hardly to be seen"] {
        assert!(page.errors.iter().any(|error| error.contains(complaint)), "{:?}", page.errors);
    }
}

/// `LEVELHEAD_REPORT=DIR cargo test -p report --test report` checks an existing report.
#[test]
fn a_given_report_is_drawn_whole() {
    let Some(directory) = browser::environment("LEVELHEAD_REPORT") else { return };
    for view in VIEWS {
        let Some(page) = browser::open(Path::new(&directory), view) else { return };
        assert!(!page.figures.is_empty(), "{directory} has no figures");
        assert_drawn(&page);
    }
}
