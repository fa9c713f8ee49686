//! Tables of text as CSV, quoted according to RFC 4180. Lines end with a line feed.

/// A table under construction.
pub(super) struct Csv(String);

impl Csv {
    /// Creates a table with a row of headings.
    pub(super) fn new(headings: impl IntoIterator<Item = String>) -> Self {
        let mut csv = Self(String::new());
        csv.row(headings);
        csv
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().map(quoted).collect();
        self.0.push_str(&cells.join(","));
        self.0.push('\n');
    }

    /// Returns the contents of the file.
    pub(super) fn text(self) -> String {
        self.0
    }
}

/// Returns a table of text cells as CSV.
pub(crate) fn csv(
    headings: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut csv = Csv::new(headings);
    for row in rows {
        csv.row(row);
    }
    csv.text()
}

fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut csv = Csv::new(["plain", "a,b"].map(str::to_owned));
        csv.row(["says \"no\"", "two\nlines"].map(str::to_owned));
        csv.row(["", "1.5"].map(str::to_owned));
        assert_eq!(csv.text(), "plain,\"a,b\"\n\"says \"\"no\"\"\",\"two\nlines\"\n,1.5\n");
    }
}
