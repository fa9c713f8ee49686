//! Tables for terminals.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// Returns an empty table with these headings.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header.iter().enumerate().map(|(i, title)| align(i, (*title).to_owned())));
    table
}

/// Aligns the first column to the left, and the others to the right.
fn align(column: usize, text: String) -> Cell {
    let alignment = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(alignment)
}

/// Adds a row.
pub fn add(table: &mut Table, cells: impl IntoIterator<Item = String>) {
    table.add_row(cells.into_iter().enumerate().map(|(i, text)| align(i, text)));
}
