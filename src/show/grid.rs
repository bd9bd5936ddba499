//! Aligned columns: fitted to the terminal's width, the least important column leaving first, long
//! cells cut with an ellipsis. Without a terminal nothing is cut and nothing left out.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const GAP: usize = 2;

/// A column as it is declared, the most important first.
pub struct Column {
    pub title: &'static str,
    /// Columns of text that it needs to be worth showing, where its cells are that long.
    pub comfort: usize,
    /// Width to plan with where the cells are not known yet.
    pub usual: usize,
}

/// A column by its title, the width it needs to be worth showing, and the width to plan with.
pub const fn column(title: &'static str, comfort: usize, usual: usize) -> Column {
    Column { title, comfort, usual }
}

pub struct Cell {
    pub text: String,
    pub style: Style,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::new() }
    }

    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// Which columns are shown, and how wide.
pub struct Layout {
    /// (index into the declared columns, width), in declared order.
    shown: Vec<(usize, usize)>,
    titles: Vec<&'static str>,
    /// Cells longer than their column are cut.
    cut: bool,
}

impl Layout {
    /// For cells that come one by one.
    pub fn streaming(columns: &[Column], terminal: Option<usize>) -> Self {
        let natural: Vec<usize> = columns.iter().map(|c| c.usual).collect();
        Self::fit(columns, &natural, terminal)
    }

    /// For rows that are all there.
    pub fn of_rows(columns: &[Column], rows: &[Vec<Cell>], terminal: Option<usize>) -> Self {
        let widest = |at: usize| rows.iter().map(|row| row[at].text.width()).max().unwrap_or(0);
        let natural: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| widest(at).max(column.title.width()))
            .collect();
        Self::fit(columns, &natural, terminal)
    }

    fn fit(columns: &[Column], natural: &[usize], terminal: Option<usize>) -> Self {
        let titles = columns.iter().map(|c| c.title).collect();
        let Some(terminal) = terminal else {
            let shown = natural.iter().copied().enumerate().collect();
            return Self { shown, titles, cut: false };
        };
        let mut shown: Vec<(usize, usize)> = Vec::new();
        let mut left = terminal;
        for (at, column) in columns.iter().enumerate() {
            let gap = if shown.is_empty() { 0 } else { GAP };
            let width = natural[at].min(column.comfort);
            if gap + width > left && !shown.is_empty() {
                break;
            }
            left = left.saturating_sub(gap + width);
            shown.push((at, width.min(terminal)));
        }
        for (at, width) in &mut shown {
            let more = natural[*at].saturating_sub(*width).min(left);
            (*width, left) = (*width + more, left - more);
        }
        Self { shown, titles, cut: true }
    }

    pub fn write_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let bold = Style::new().bold();
        let cells: Vec<Cell> = self.titles.iter().map(|t| Cell::styled(*t, bold)).collect();
        self.write_row(out, &cells)
    }

    pub fn write_row(&self, out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
        // Nothing is written behind the last cell that says something.
        let filled = self.shown.iter().rposition(|(at, _)| !cells[*at].text.is_empty());
        let shown = &self.shown[..filled.map_or(0, |at| at + 1)];
        for (place, (at, width)) in shown.iter().enumerate() {
            let cell = &cells[*at];
            let text = if self.cut { cut(&cell.text, *width) } else { cell.text.clone() };
            let last = place + 1 == shown.len();
            let fill = if last { 0 } else { width.saturating_sub(text.width()) + GAP };
            write!(out, "{}{text}{:#}{:fill$}", cell.style, cell.style, "")?;
        }
        writeln!(out)
    }
}

/// At most `width` columns of `text`, with an ellipsis where something was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { title: "A", comfort: 4, usual: 6 },
        Column { title: "B", comfort: 4, usual: 6 },
        Column { title: "C", comfort: 4, usual: 6 },
    ];

    fn lines(width: Option<usize>) -> Vec<String> {
        let row = || ["abcdef", "αβγδεζ", "漢字漢字"].map(Cell::plain).into_iter().collect();
        let rows: Vec<Vec<Cell>> = vec![row()];
        let layout = Layout::of_rows(&COLUMNS, &rows, width);
        let mut out = Vec::new();
        layout.write_header(&mut out).unwrap();
        layout.write_row(&mut out, &rows[0]).unwrap();
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        String::from_utf8(text).unwrap().lines().map(str::to_string).collect()
    }

    #[test]
    fn fits_the_terminal_and_drops_the_last_column_first() {
        assert_eq!(lines(None), ["A       B       C", "abcdef  αβγδεζ  漢字漢字"]);
        assert_eq!(lines(Some(24)), ["A       B       C", "abcdef  αβγδεζ  漢字漢字"]);
        assert_eq!(lines(Some(18)), ["A       B     C", "abcdef  αβγ…  漢…"]);
        assert_eq!(lines(Some(12)), ["A       B", "abcdef  αβγ…"]);
        assert_eq!(lines(Some(3)), ["A", "ab…"]);
        for width in 1..30 {
            for line in lines(Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
}
