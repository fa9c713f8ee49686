//! Metrics, and the dashboard in a browser.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::{Client, directory, start};
use server::{Clock, Options, Server};

fn served(name: &str) -> (Server, SocketAddr) {
    let metrics = Some(([127, 0, 0, 1], 0).into());
    let server =
        start(&directory(name), Options { metrics, ..Options::default() }, Clock::system());
    let address = server.addresses().metrics.expect("it was asked for");
    let mut client = Client::of(&server);
    for number in 0..200 {
        client.say(&format!("SET key:{number} v"));
        client.say(&format!("GET key:{number}"));
    }
    (server, address)
}

fn fetch(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes that");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn prometheus_finds_what_it_knows() {
    let (_server, address) = served("metrics");
    let text = fetch(address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    for line in body.lines() {
        let is_comment =
            line.starts_with("# HELP levelhead_") || line.starts_with("# TYPE levelhead_");
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(
            is_comment || name.starts_with("levelhead_") && value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
    assert!(body.contains("levelhead_keys 200\n"), "{body}");
    assert!(
        body.contains("levelhead_command_duration_seconds_count{class=\"write\"} 200\n"),
        "{body}"
    );
    assert!(fetch(address, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(fetch(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(fetch(address, &"x".repeat(8 << 10)).starts_with("HTTP/1.1 405"));
}

/// The page is drawn completely, without errors and without external requests.
#[test]
fn the_page_is_drawn() {
    let Some(browser) = browser() else {
        eprintln!("left out: no browser was found (LEVELHEAD_NEED_BROWSER=1 insists on one)");
        return;
    };
    let (_server, address) = served("page");
    let page = fetch(address, "GET / HTTP/1.1\r\n\r\n");
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "it asks elsewhere");
    // Until the page has some seconds to show.
    std::thread::park_timeout(Duration::from_secs(3));
    let shown = drawn(&browser, address, "page-browser");
    assert!(shown.contains("data-drawn=\""), "nothing is drawn: {shown}");
    assert_eq!(shown.matches("role=\"img\"").count(), 7, "{shown}");
    assert!(shown.matches("<polyline").count() >= 7, "lines are missing: {shown}");
    assert!(shown.contains("<b>200</b>keys"), "{shown}");
    assert!(shown.contains("<td class=\"\">L1</td>"), "levels are missing: {shown}");
    assert!(shown.contains("durability group"), "{shown}");
    assert!(shown.contains("<section id=\"windows\" hidden"), "it has no windows: {shown}");
    assert!(shown.contains("<span id=\"trouble\" role=\"status\"></span>"), "{shown}");
}

/// For a store over three directories with windows, the page shows the windows.
#[test]
fn the_page_shows_windows() {
    let Some(browser) = browser() else { return };
    let directories = ["a", "b", "c"].map(|name| directory("page-windows").join(name));
    let store_options = levelhead::Options {
        capacity_bytes: 512 << 20,
        memtable_bytes: 1 << 20,
        windows: levelhead::Windows::Rails,
        ..levelhead::Options::default()
    };
    let store =
        levelhead::Store::open_over(&directories, &store_options).expect("directories of our own");
    let any = Some(([127, 0, 0, 1], 0).into());
    let options = Options { listen: any, metrics: any, ..Options::default() };
    let server = Server::start(store, options, Clock::system()).expect("a new store");
    let mut client = Client::of(&server);
    for number in 0..3_000 {
        client.say(&format!("SET key:{number} {}", "v".repeat(1_000)));
    }
    std::thread::park_timeout(Duration::from_secs(2));
    let address = server.addresses().metrics.expect("it was asked for");
    let shown = drawn(&browser, address, "page-windows-browser");
    assert!(shown.contains("<section id=\"windows\">"), "{shown}");
    assert_eq!(shown.matches("<td>set ").count(), 3, "{shown}");
    assert!(shown.contains("<td>ADT</td><td>reads, and the log</td>"), "{shown}");
    let slots = shown.split_once("<p id=\"slots\">").expect("a line").1;
    let slots = slots.split_once(" slots").expect("a number").0;
    assert!(slots.replace(',', "").parse::<u64>().is_ok_and(|slots| slots > 0), "{slots}");
    assert_eq!(shown.matches("role=\"img\"").count(), 9, "{shown}");
    assert!(shown.contains("<span id=\"trouble\" role=\"status\"></span>"), "{shown}");
}

/// Returns the DOM of the page in a browser, as text. Without `?once` the page would request data
/// every second, and a headless browser would never finish.
fn drawn(browser: &Path, address: SocketAddr, name: &str) -> String {
    let profile = directory(name);
    std::fs::create_dir_all(&profile).expect("a directory of our own");
    let (out, log) = (profile.join("dom.html"), profile.join("log.txt"));
    let file = |path| Stdio::from(File::create(path).expect("a directory of our own"));
    let mut browser = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{address}/?once"))
        .stdout(file(&out))
        .stderr(file(&log))
        .spawn()
        .expect("the browser starts");
    let is_over = (0..2_400).any(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        browser.try_wait().expect("our own process").is_some()
    });
    if !is_over {
        browser.kill().expect("our own process");
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        panic!("the browser did not end in two minutes; it said:\n{said}");
    }
    std::fs::read_to_string(&out).expect("the page as text")
}

/// Looked up as in the tests of reports.
#[expect(clippy::disallowed_methods, reason = "a test may be told from outside")]
fn browser() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var(name).ok();
    if variable("LEVELHEAD_NO_BROWSER").as_deref() == Some("1") {
        return None;
    }
    let path = variable("PATH").unwrap_or_default();
    let in_path = |name: &&str| {
        path.split(':').map(|dir| Path::new(dir).join(name)).find(|file| file.is_file())
    };
    let named = variable("CHROMIUM").map(PathBuf::from);
    let found = named
        .or_else(|| ["chromium", "chromium-browser", "google-chrome"].iter().find_map(in_path));
    let is_needed = variable("LEVELHEAD_NEED_BROWSER").as_deref() == Some("1");
    assert!(found.is_some() || !is_needed, "LEVELHEAD_NEED_BROWSER=1, but there is none");
    found
}
