//! Opens a report in headless Chromium and reads back the resulting page.
//!
//! The markup is that of `report/page.rs` and of Plotly, so it is enough to split it at known tags;
//! an HTML parser would be a further dependency for a dozen lines.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A page after its scripts have run.
#[derive(Debug)]
pub(crate) struct Page {
    /// Figures in order.
    pub figures: Vec<Drawn>,
    /// Number of drawn figures, according to the page.
    pub says_drawn: usize,
    /// Errors of scripts, on the console and of loading, and problems for readers.
    pub errors: Vec<String>,
}

/// The window that a page is shown in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Width of the window, in pixels.
    pub width: u32,
    pub is_dark: bool,
}

/// A wide window, and a narrow window with dark colours.
pub(crate) const VIEWS: [View; 2] =
    [View { width: 1400, is_dark: false }, View { width: 600, is_dark: true }];

/// A script that looks for problems for readers.
const EYES: &str = include_str!("eyes.js");

/// A figure as it was drawn.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub id: String,
    /// Number of series to be drawn.
    pub series: usize,
    /// Number of series with a visible outline.
    pub marks: usize,
    pub width: f64,
    pub height: f64,
    /// The selected options above the plot, one per group.
    pub chosen: Vec<String>,
    /// Whether the figure has a line about values that are not shown.
    pub says_hidden: bool,
}

/// Opens the report in `directory` in a window of this `view`. Returns `None` if there is no
/// browser, or if `LEVELHEAD_NO_BROWSER=1` is set.
///
/// # Panics
/// If there is no browser but `LEVELHEAD_NEED_BROWSER=1` is set, or if the browser does not end.
pub(crate) fn open(directory: &Path, view: View) -> Option<Page> {
    let is_set = |name: &str| environment(name).as_deref() == Some("1");
    if is_set("LEVELHEAD_NO_BROWSER") {
        skip("LEVELHEAD_NO_BROWSER=1");
        return None;
    }
    let Some(browser) = browser() else {
        assert!(!is_set("LEVELHEAD_NEED_BROWSER"), "LEVELHEAD_NEED_BROWSER=1, but {NO_BROWSER}");
        skip(NO_BROWSER);
        return None;
    };
    let page = directory.join("index.html");
    let page =
        fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "browser-{}-{}-{}",
        std::process::id(),
        name_of(directory),
        view.width
    ));
    fs::create_dir_all(&profile).expect("the target directory takes files");
    let looked_at = profile.join("page.html");
    let (head, tail) = page.rsplit_once("</body>").expect("a page has an end");
    fs::write(&looked_at, format!("{head}<script>{EYES}</script></body>{tail}"))
        .expect("the target directory takes files");
    let dom = rendered(&browser, &looked_at, &profile, view);
    let _ = fs::remove_dir_all(&profile);
    assert_seen(&dom, view);
    Some(read(&dom))
}

/// Asserts that the page was shown in this window. Without this check, a browser that ignores its
/// arguments would pass.
fn assert_seen(dom: &str, view: View) {
    let root = dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>'));
    let root = root.expect("a page begins with html").0;
    let seen = ["data-looked", "data-width", "data-dark"].map(|name| attribute(root, name));
    let wanted = ["1".to_owned(), view.width.to_string(), view.is_dark.to_string()].map(Some);
    assert_eq!(seen, wanted, "the page was not looked at as it was to be");
}

fn name_of(directory: &Path) -> String {
    directory.file_name().map_or("report".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Runs the browser and returns the resulting page. The output goes to a file, which cannot fill up
/// as a pipe can.
fn rendered(browser: &Path, page: &Path, profile: &Path, view: View) -> String {
    let (out, log) = (profile.join("dom.html"), profile.join("log.txt"));
    let file = |path| Stdio::from(File::create(path).expect("the target directory takes files"));
    let mut browser = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--hide-scrollbars"])
        .arg(format!("--window-size={},1600", view.width))
        // 0 is dark, 1 is light.
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!view.is_dark)))
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--virtual-time-budget=15000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .stdout(file(&out))
        .stderr(file(&log))
        .spawn()
        .expect("the browser starts");
    let ended = wait(&mut browser);
    let dom = fs::read_to_string(&out).expect("the page as text");
    let log = || fs::read_to_string(&log).unwrap_or_default();
    assert!(ended && dom.contains("data-errors"), "the browser gave no page; it said:\n{}", log());
    dom
}

/// Whether the browser ends by itself within two minutes, and successfully.
#[expect(clippy::disallowed_methods, reason = "the browser runs in real time")]
fn wait(browser: &mut Child) -> bool {
    for _ in 0..2_400 {
        if let Some(status) = browser.try_wait().expect("our own process") {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    browser.kill().expect("our own process");
    false
}

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const NO_BROWSER: &str = "none of chromium, chromium-browser and google-chrome is in PATH: install one \
                          (Debian, Ubuntu: apt-get install chromium; Fedora: dnf install chromium; \
                          macOS: brew install chromium) or name it in CHROMIUM";

/// Returns the path of the browser, if there is one.
fn browser() -> Option<PathBuf> {
    let path = environment("PATH").unwrap_or_default();
    let in_path = |name: &str| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
    };
    environment("CHROMIUM").map(PathBuf::from).or_else(|| NAMES.into_iter().find_map(in_path))
}

/// Reports that no page was checked. Writes past the test harness, which hides the output of tests
/// that pass.
fn skip(why: &str) {
    let words = format!("SKIPPED: no report page was looked at in a browser: {why}\n");
    let _ = std::io::stderr().write_all(words.as_bytes());
}

/// Returns an environment variable, unless it is empty.
#[expect(clippy::disallowed_methods, reason = "where the browser is depends on the machine")]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(dom: &str) -> Page {
    let root = dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>'));
    let root = root.expect("a page begins with html").0;
    let errors = attribute(root, "data-errors").expect("the page notes its errors");
    let figures = dom.split("<figure ").skip(1).map(|rest| {
        let figure = rest.split_once("</figure>").expect("a figure has an end").0;
        drawn(figure)
    });
    Page {
        figures: figures.collect(),
        says_drawn: attribute(root, "data-figures-drawn")
            .map_or(0, |count| count.parse().expect("a count")),
        errors: serde_json::from_str(&errors).expect("errors are a list of texts"),
    }
}

fn drawn(figure: &str) -> Drawn {
    let canvas = figure.split("<svg ").find(|svg| svg.starts_with("class=\"main-svg\""));
    let size = |name| {
        let text = canvas.and_then(|svg| attribute(svg, name)).unwrap_or_default();
        text.parse().unwrap_or(0.0)
    };
    let count = |name| attribute(figure, name).map_or(0, |n| n.parse().expect("a count"));
    Drawn {
        id: attribute(figure, "id").expect("a figure has an id"),
        series: count("data-series"),
        marks: count("data-marks"),
        width: size("width"),
        height: size("height"),
        chosen: figure.split("aria-pressed=\"true\">").skip(1).map(first_text).collect(),
        says_hidden: !figure.contains("class=\"hidden-points\" hidden"),
    }
}

fn first_text(html: &str) -> String {
    html.split_once('<').map_or(html, |(text, _)| text).to_owned()
}

/// Returns the value of an attribute of the element that `element` begins with.
fn attribute(element: &str, name: &str) -> Option<String> {
    let tag = element.split_once('>').map_or(element, |(tag, _)| tag);
    let (_, value) = tag.split_once(&format!("{name}=\""))?;
    let value = value.split_once('"')?.0;
    let plain = value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    Some(plain.replace("&amp;", "&"))
}
