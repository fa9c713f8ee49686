//! Compresses Plotly's script for the pages of reports, to a quarter of its 4.7 MB.

use std::{env, fs, path::Path};

const OPEN: &str = "<script type=\"text/javascript\">";
const CLOSE: &str = "</script>";
/// Compression level, of 10.
const EFFORT: u8 = 6;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts by variables of the environment"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // `plotly` returns two script elements: Plotly, and a typesetter for formulas, which no report
    // needs.
    let elements = plotly::Plot::offline_js_sources();
    let script = elements.split_once(OPEN).and_then(|(_, rest)| rest.split_once(CLOSE));
    let script = script.expect("the first element of crate `plotly` is Plotly").0;
    let packed = miniz_oxide::deflate::compress_to_vec(script.as_bytes(), EFFORT);
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("plotly.js.deflate"), packed).expect("cargo made the directory");
}
