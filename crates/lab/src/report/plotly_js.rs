//! The script that draws: Plotly, as the `plotly` crate carries it.

const OPEN: &str = "<script type=\"text/javascript\">";
const CLOSE: &str = "</script>";

/// The script of Plotly alone.
///
/// The crate gives script elements with Plotly first and a typesetter for formulas behind it, of
/// which no report has need.
pub(super) fn source() -> String {
    let elements = plotly::Plot::offline_js_sources();
    let script = elements.split_once(OPEN).and_then(|(_, rest)| rest.split_once(CLOSE));
    script.expect("the crate's first element is Plotly").0.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_plotly_and_nothing_else() {
        let source = source();
        assert!(source.trim_start().starts_with("/**\n* plotly.js v"), "{}", &source[..80]);
        assert!(source.len() < 5_000_000, "{} bytes", source.len());
    }
}
