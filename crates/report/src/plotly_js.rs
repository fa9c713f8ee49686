//! The script of Plotly, which draws the figures, from the crate `plotly`. `build.rs` compresses
//! it.

/// The script, compressed with DEFLATE (RFC 1951).
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.js.deflate"));

/// Returns the script.
pub(super) fn source() -> String {
    let script = miniz_oxide::inflate::decompress_to_vec(PACKED).expect("it was packed whole");
    String::from_utf8(script).expect("it is text")
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
