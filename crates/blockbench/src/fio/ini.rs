//! The syntax of fio's job files: sections and their options.
//!
//! A line is `[name]`, `option=value` or `option`; `;` and `#` start comments. Options of
//! `[global]` apply to all later sections, which may override them.

/// An option as given in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Given {
    pub name: String,
    /// `None` without a `=`.
    pub value: Option<String>,
    /// The line, from 1.
    pub line: usize,
}

/// A job of fio.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub name: String,
    pub line: usize,
    /// The effective options, each once: the last one of a name counts.
    pub options: Vec<Given>,
}

/// An error and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wrong {
    pub line: usize,
    pub words: String,
}

impl Wrong {
    pub(super) fn new(line: usize, words: impl Into<String>) -> Self {
        Self { line, words: words.into() }
    }
}

/// Whether the text is a job file of fio: its first line with content is a section header, and not
/// that of a TOML array of tables.
pub(super) fn is_ini(text: &str) -> bool {
    let first = text.lines().map(without_comment).find(|line| !line.is_empty());
    first.is_some_and(|line| line.starts_with('[') && !line.starts_with("[["))
}

/// Parses the jobs of a file, in order.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, Wrong> {
    let mut global: Vec<Given> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    let mut is_global = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = without_comment(text);
        if text.is_empty() {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            let Some((name, "")) = name.split_once(']') else {
                return Err(Wrong::new(line, format!("`{text}` is no section: write [name]")));
            };
            is_global = name.to_ascii_lowercase().starts_with("global");
            if !is_global {
                let (name, options) = (name.to_owned(), global.clone());
                sections.push(Section { name, line, options });
            }
            continue;
        }
        let given = given(text, line)?;
        let options = match sections.last_mut() {
            _ if is_global => &mut global,
            Some(section) => &mut section.options,
            None => return Err(Wrong::new(line, format!("`{text}` is in no section"))),
        };
        options.retain(|other| other.name != given.name);
        options.push(given);
    }
    Ok(sections)
}

fn given(text: &str, line: usize) -> Result<Given, Wrong> {
    if text == "include" || text.starts_with("include ") {
        let words = "include is not followed: put what the other file has in its place";
        return Err(Wrong::new(line, words));
    }
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None => (text, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(Wrong::new(line, format!("`{text}` is no option: write name=value")));
    }
    Ok(Given { name: name.to_owned(), value, line })
}

fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_what_global_gives_and_what_they_give() {
        let text = "; a comment\n[global]\nbs=4k # of all\nthread\n\n[a]\nrw=read\r\nbs = 8k\n\
                    [global]\nbs=16k\n[b]\n";
        let sections = sections(text).expect("it is right");
        let shown = |section: &Section| {
            let one = |given: &Given| {
                format!("{}={}@{}", given.name, given.value.as_deref().unwrap_or("-"), given.line)
            };
            (section.name.clone(), section.options.iter().map(one).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            sections.iter().map(shown).collect::<Vec<_>>(),
            [
                ("a".to_owned(), "thread=-@4 rw=read@7 bs=8k@8".to_owned()),
                ("b".to_owned(), "thread=-@4 bs=16k@10".to_owned())
            ]
        );
    }

    #[test]
    fn what_is_no_line_of_a_job_file_is_told_with_its_number() {
        for (text, line, words) in [
            ("[a]\ninclude other.fio\n", 2, "include is not followed"),
            ("[a\nrw=read\n", 1, "`[a` is no section"),
            ("[a]\n\n=5\n", 3, "`=5` is no option"),
            ("rw=read\n", 1, "is in no section"),
        ] {
            let wrong = sections(text).expect_err(text);
            assert!(wrong.line == line && wrong.words.contains(words), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn files_of_fio_are_told_from_toml() {
        assert!(is_ini("; c\n\n[global]\nrw=read\n") && is_ini("[a]"));
        for text in ["", "name = \"a\"\n[[stream]]", "[[stream]]\nrw = \"read\"", "# c\n"] {
            assert!(!is_ini(text), "{text}");
        }
    }
}
