//! Reports in a browser: what a reader would see is drawn, and nothing goes wrong.

mod browser;
mod sample;

use std::path::Path;

use browser::Page;

/// Asserts that a report was drawn whole.
fn assert_drawn(page: &Page) {
    assert_eq!(page.errors, Vec::<String>::new(), "the page says what went wrong");
    assert_eq!(page.says_drawn, page.figures.len(), "the page counts the figures it drew");
    for figure in &page.figures {
        assert!(figure.width >= 200.0 && figure.height >= 200.0, "too small: {figure:?}");
        assert_eq!(figure.marks, figure.series, "not every series is drawn: {figure:?}");
    }
}

#[test]
fn a_sample_is_drawn_whole() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sample-report");
    let report = sample::report();
    std::fs::create_dir_all(&directory).expect("the target directory takes files");
    for (name, contents) in report.files().expect("the sample is a good report") {
        std::fs::write(directory.join(name), contents).expect("the target directory takes files");
    }
    let Some(page) = browser::open(&directory) else { return };
    let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
    let expected: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, expected);
    assert_drawn(&page);
}

/// Without this, a test that looks at nothing would pass too.
#[test]
fn a_broken_page_is_seen() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-report");
    std::fs::create_dir_all(&directory).expect("the target directory takes files");
    let files = sample::report().files().expect("the sample is a good report");
    let (name, page) = &files[0];
    let broken = page.replace("Plotly.react(", "Plotly.missing(");
    assert_ne!(page, &broken);
    let broken = broken.replace("</main>", "<img src=\"https://example.invalid/a.png\"></main>");
    std::fs::write(directory.join(name), broken).expect("the target directory takes files");
    let Some(page) = browser::open(&directory) else { return };
    assert_eq!(page.says_drawn, 0);
    assert!(page.errors.iter().any(|error| error.contains("missing")), "{:?}", page.errors);
    assert!(page.errors.iter().any(|error| error.contains("example.invalid")), "{:?}", page.errors);
}

/// `LEVELHEAD_REPORT=DIR cargo test -p lab --test report` looks at a report that was written.
#[test]
fn a_given_report_is_drawn_whole() {
    let Some(directory) = browser::environment("LEVELHEAD_REPORT") else { return };
    let Some(page) = browser::open(Path::new(&directory)) else { return };
    assert!(!page.figures.is_empty(), "{directory} has no figures");
    assert_drawn(&page);
}
