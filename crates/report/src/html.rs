//! Escapes text for the page.

/// Escapes text between tags or in a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element. Without `<`, the JSON can neither end the element nor begin a
/// comment. JSON has `<` only in strings, where the escape means the same.
pub(super) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(escaped("<b a=\"1\">'&'"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;&#39;");
        let json = serde_json::to_string("</script><!-- \" ").expect("a string");
        let inside = script_json(&json);
        assert!(!inside.contains('<'), "{inside}");
        let back: String = serde_json::from_str(&inside).expect("still JSON");
        assert_eq!(back, "</script><!-- \" ");
    }
}
