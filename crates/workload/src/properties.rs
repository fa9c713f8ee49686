//! Property files as in YCSB: the syntax of `java.util.Properties`. The line of every setting is
//! kept for error messages.
//!
//! The grammar is that of the Java documentation of `Properties.load`: `#` and `!` start comments;
//! a name ends at the first `=`, `:` or blank; an odd number of backslashes at the end of a line
//! continues it; `\t \n \r \f \uXXXX` are escapes, and a backslash before any other character
//! stands for that character.
//!
//! Invariant: of several settings of one name the last one counts. Cost: one pass over the text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Settings by name.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    entries: BTreeMap<String, Property>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The text after the separator, with escapes resolved and trailing blanks kept, as in Java.
    pub value: String,
    /// Source of the setting.
    pub origin: Origin,
}

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, from 1; a continued line has the number of its first line.
    File {
        /// The name given to [`Properties::parse`].
        name: Arc<str>,
        /// The line, from 1.
        line: usize,
    },
    /// [`Properties::set`], as by `-p name=value`.
    Override,
    /// [`Properties::set_by_flag`]: a command-line flag with its own name.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Override => f.write_str("override"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Error: the text is not a property file, or not an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertiesError {
    /// Place of the error.
    pub origin: Origin,
    /// The problem, and the allowed form.
    pub problem: String,
}

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.problem)
    }
}

impl std::error::Error for PropertiesError {}

impl Properties {
    /// Parses the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// Returns an error for a `\u` escape without four hexadecimal digits, or an unpaired
    /// surrogate.
    pub fn parse(file: &str, text: &str) -> Result<Self, PropertiesError> {
        let name: Arc<str> = file.into();
        let mut properties = Self::default();
        for (line, logical) in logical_lines(text) {
            let origin = Origin::File { name: Arc::clone(&name), line };
            let (key, value) = split(&logical);
            let resolve = |text: &str| {
                unescape(text)
                    .map_err(|problem| PropertiesError { origin: origin.clone(), problem })
            };
            let (key, value) = (resolve(key)?, resolve(value)?);
            properties.entries.insert(key, Property { value, origin });
        }
        Ok(properties)
    }

    /// Sets one property, and replaces an earlier setting.
    pub fn set(&mut self, name: &str, value: &str) {
        let property = Property { value: value.to_owned(), origin: Origin::Override };
        self.entries.insert(name.to_owned(), property);
    }

    /// Sets one property for a command-line flag, which messages then name: `--records`.
    pub fn set_by_flag(&mut self, flag: &'static str, name: &str, value: &str) {
        let property = Property { value: value.to_owned(), origin: Origin::Flag(flag) };
        self.entries.insert(name.to_owned(), property);
    }

    /// Sets one property from `name=value`, as after `-p` on a command line.
    ///
    /// # Errors
    /// Returns an error if the `=`, or the name before it, is missing.
    pub fn set_assignment(&mut self, assignment: &str) -> Result<(), PropertiesError> {
        match assignment.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                self.set(name.trim(), value.trim());
                Ok(())
            }
            _ => {
                let problem = format!("`{assignment}` is not of the form name=value");
                Err(PropertiesError { origin: Origin::Override, problem })
            }
        }
    }

    /// Adds all settings of `later`, which override existing ones.
    pub fn merge(&mut self, later: Self) {
        self.entries.extend(later.entries);
    }

    /// Returns the setting of `name`.
    pub fn get(&self, name: &str) -> Option<&Property> {
        self.entries.get(name)
    }

    /// Returns all settings, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Property)> {
        self.entries.iter().map(|(name, property)| (name.as_str(), property))
    }
}

const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// Joins continued lines and drops comments and blank lines. Keeps escapes unchanged.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let text = text.replace("\r\n", "\n");
    let mut lines = text.split(['\n', '\r']).map(|line| line.trim_start_matches(BLANKS)).zip(1..);
    let mut logical = Vec::new();
    while let Some((line, number)) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut joined = line.to_owned();
        while ends_in_open_backslash(&joined) {
            joined.pop();
            let Some((next, _)) = lines.next() else { break };
            joined.push_str(next);
        }
        logical.push((number, joined));
    }
    logical
}

fn ends_in_open_backslash(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits a logical line at its separator. The value is empty if the line has no separator.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let ends_name = |c: char| {
        let ends = !is_escaped && (c == '=' || c == ':' || BLANKS.contains(&c));
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    let (name, rest) = line.split_at(line.find(ends_name).unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANKS);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, rest.trim_start_matches(BLANKS))
}

fn unescape(text: &str) -> Result<String, String> {
    // Java's characters are UTF-16 units, and so are its `\u` escapes: two of them may form one
    // character.
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            continue;
        }
        match chars.next() {
            Some('t') => units.push(u16::from(b'\t')),
            Some('n') => units.push(u16::from(b'\n')),
            Some('r') => units.push(u16::from(b'\r')),
            Some('f') => units.push(0x0C),
            Some('u') => units.push(hex_unit(&mut chars)?),
            Some(other) => units.extend_from_slice(other.encode_utf16(&mut [0; 2])),
            None => {}
        }
    }
    String::from_utf16(&units).map_err(|_| "a \\u escape holds half a surrogate pair".to_owned())
}

fn hex_unit(chars: &mut std::str::Chars<'_>) -> Result<u16, String> {
    let digits: String = chars.take(4).collect();
    let is_hex = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
    unit.ok_or_else(|| format!("`\\u{digits}` is not \\u with four hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<(String, String)> {
        let parsed = Properties::parse("file", text).unwrap();
        parsed.iter().map(|(name, p)| (name.to_owned(), p.value.clone())).collect()
    }

    #[test]
    fn every_form_of_a_line() {
        let table = [
            ("a=b", "a", "b"),
            ("a:b", "a", "b"),
            ("a b", "a", "b"),
            ("a\tb", "a", "b"),
            ("  a  =  b", "a", "b"),
            ("a = = b", "a", "= b"),
            ("a  :b=c", "a", "b=c"),
            ("a", "a", ""),
            ("a=", "a", ""),
            ("a=b ", "a", "b "),
            ("a=b # no comment", "a", "b # no comment"),
            (r"a\ b\:c\=d=e", "a b:c=d", "e"),
            (r"a\\=b", r"a\", "b"),
            (r"a=\t\n\r\f|\q\\", "a", "\t\n\r\u{c}|q\\"),
            (r"a=\u0041\u00e9", "a", "A\u{e9}"),
            (r"a=\ud83d\ude00", "a", "\u{1f600}"),
            ("a=x\\\n  y", "a", "xy"),
            ("a=x\\\r\n  y", "a", "xy"),
            ("a=x\\\\", "a", "x\\"),
            ("a=x\\\n# y", "a", "x# y"),
            ("a=x\\\n\n", "a", "x"),
            ("a=x\\", "a", "x"),
            ("=b", "", "b"),
        ];
        for (text, name, value) in table {
            assert_eq!(parse(text), [(name.to_owned(), value.to_owned())], "{text:?}");
        }
    }

    #[test]
    fn comments_and_blank_lines_are_nothing() {
        assert_eq!(parse("# a=b\n! c=d\n\n   \t\n  # e=f \\\n"), []);
        assert_eq!(parse("# not continued \\\na=b").len(), 1);
    }

    #[test]
    fn lines_count_from_one_and_survive_continuations_and_line_ends() {
        let text = "# x\r\na=1\r\nb=2 \\\r\n  3\r\nc=4\rd=5";
        let parsed = Properties::parse("w", text).unwrap();
        let line = |name: &str| parsed.get(name).unwrap().origin.to_string();
        assert_eq!([line("a"), line("b"), line("c"), line("d")], ["w:2", "w:3", "w:5", "w:6"]);
    }

    #[test]
    fn later_settings_win() {
        let mut first = Properties::parse("one", "a=1\na=2\nb=3").unwrap();
        assert_eq!(first.get("a").unwrap().value, "2");
        first.merge(Properties::parse("two", "\nb=4").unwrap());
        assert_eq!(first.get("b").unwrap().origin.to_string(), "two:2");
        first.set_assignment("a = 9").unwrap();
        let expected = Property { value: "9".to_owned(), origin: Origin::Override };
        assert_eq!(first.get("a"), Some(&expected));
    }

    #[test]
    fn broken_escapes_name_their_line() {
        let error = Properties::parse("w", "a=1\nb=\\u12").unwrap_err();
        assert_eq!(error.to_string(), r"w:2: `\u12` is not \u with four hexadecimal digits");
        assert!(Properties::parse("w", r"b=\u+123").is_err());
        assert!(Properties::parse("w", r"b=\ud83d").is_err());
        assert!(Properties::default().set_assignment("nothing").is_err());
        assert!(Properties::default().set_assignment("=1").is_err());
    }

    /// Encodes every character as an escape: none of them can end a name or a line.
    fn escape(text: &str) -> String {
        let escapes: Vec<String> =
            text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        escapes.concat()
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a =:#!\\\\u0-9\\n\\r\\t]{0,60}|\\PC{0,40}") {
            let _ = Properties::parse("any", &text);
        }

        #[test]
        fn escaped_text_comes_back(name in "(?s).{1,20}", value in "(?s).{0,20}") {
            let text = format!("# c\n {} = {}\n", escape(&name), escape(&value));
            assert_eq!(parse(&text), [(name, value)]);
        }
    }
}
