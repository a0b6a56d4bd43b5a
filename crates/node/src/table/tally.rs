//! What was read of a site's rows: one account, made while they are read, for the site's own operator. No value of a row is in it, and
//! nothing of it leaves the site.

use std::fmt;

use serde::Serialize;

use super::{Place, Reasons, error::placed};
use crate::{
    cost::{counted, some_of},
    plan::Categorical,
};

/// One in so many values or rows may be moved or left out before it is a warning.
const DOUBTFUL: u64 = 100;

/// What was read of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Rows that were read, whatever became of them.
    pub rows: u64,
    /// Rows that count.
    pub used: u64,
    /// Files that were read.
    pub files: u64,
    /// Files of a folder that were not read.
    pub files_left_out: Vec<String>,
    /// What would stop a site without noise, and does not stop this one: a sentence each.
    pub noticed: Vec<String>,
    /// Rows that are left out, by reason.
    pub left_out: Reasons,
    /// Rows that stop the site, by reason.
    pub unusable: Reasons,
    /// Rows that do not pass the filter of `site.toml`.
    pub filtered: u64,
    /// Rows of persons beyond those that count.
    pub beyond: u64,
    /// Cells that have a line break in them.
    pub spanning: u64,
    /// What is read, by column: numbers, then categories.
    pub columns: Vec<Column>,
    /// Columns of the file that are not used.
    pub unused: Vec<String>,
}

/// What was read of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name, as the plan has it.
    pub name: String,
    /// Rows without a value, of all that pass the filter: counted before any is left out; of a person's rows
    /// that lack a value, as many as count of the others.
    pub missing: u64,
    /// Values of rows that count which were moved up to the lower end of the range.
    pub below: u64,
    /// Those which were moved down to its upper end.
    pub above: u64,
    /// Those which are none of the categories and count as "other".
    pub other: u64,
    /// Where the first of these three are.
    pub first: Vec<String>,
}

impl Column {
    /// One more of these three.
    pub(super) fn note(&mut self, which: fn(&mut Column) -> &mut u64, file: Option<&str>, place: Place) {
        *which(self) += 1;
        if self.first.len() < Reasons::LINES {
            self.first.push(placed(&(file.map(str::to_owned), place)));
        }
    }

    fn clipped(&self) -> u64 {
        self.below + self.above
    }

    /// What became of its values, of so many.
    fn moved(&self, of: u64) -> Option<String> {
        let Column { name, below, above, other, .. } = self;
        let what = match (below, above, other) {
            (0, 0, 0) => return None,
            (0, 0, _) => "are none of its categories and count as \"other\"".to_owned(),
            _ => format!("lie outside its range and are moved to its edge, {below} up and {above} down"),
        };
        let (moved, first) = (below + above + other, self.first.join(", "));
        let share = moved * 100 / of.max(1);
        Some(format!("{name}: {moved} of {} ({share} %) {what}: {first}", counted(of as usize, "value")))
    }
}

impl Tally {
    /// With the number of all rows, once they are read.
    pub(super) fn whole(&self) -> Tally {
        let rows = self.used + self.left_out.rows() + self.unusable.rows() + self.filtered + self.beyond;
        Tally { rows, ..self.clone() }
    }

    /// Rows without a value by column of the box that these columns come to: those of categories at their first indicator.
    pub fn missing(&self, categorical: &[Categorical]) -> Vec<u64> {
        let (numbers, names) = self.columns.split_at(self.columns.len().saturating_sub(categorical.len()));
        let first = names.iter().zip(categorical).flat_map(|(of, by)| {
            let others = by.categories.len().saturating_sub(1);
            std::iter::once(of.missing).chain(std::iter::repeat_n(0, others))
        });
        numbers.iter().map(|of| of.missing).chain(first).collect()
    }

    /// Rows that are left out, and why, as a sentence.
    pub fn without(&self) -> Option<String> {
        let (rows, without) = (counted(self.rows as usize, "row"), self.left_out.rows());
        (without > 0).then(|| format!("{without} of {rows} cannot be used: {}", self.left_out))
    }

    /// All of it without what a plan's ranges and categories make of values: under noise nobody is told that before the last answer.
    pub fn without_ranges(mut self) -> Tally {
        for of in &mut self.columns {
            *of = Column { name: std::mem::take(&mut of.name), missing: of.missing, ..Column::default() };
        }
        self
    }

    /// What its operator should look at before anything is answered: a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let many = |part: u64, of: u64| part * DOUBTFUL > of;
        let left_out = self.left_out.rows();
        let mut doubts = self.noticed.clone();
        if many(left_out, self.rows) {
            doubts.push(format!("{left_out} of {} are left out", counted(self.rows as usize, "row")));
        }
        let columns = self.columns.iter().filter(|of| many(of.clipped() + of.other, self.used));
        doubts.extend(columns.filter_map(|of| {
            let hint = match of.clipped() * 100 >= self.used * 99 {
                true => "; this may be another column, or another unit, which [rows.units] in site.toml converts",
                false => "",
            };
            Some(of.moved(self.used)? + hint)
        }));
        doubts
    }

    /// What was read, a thought a line: the same on every screen and page.
    pub fn lines(&self) -> Vec<String> {
        let count = |n: u64, what| counted(n as usize, what);
        let used = if self.used == self.rows { "all are".to_owned() } else { format!("{} are", self.used) };
        let mut lines = vec![format!("{} in {}; {used} used", count(self.rows, "row"), count(self.files, "file"))];
        let used: Vec<String> = self.columns.iter().map(|of| of.name.clone()).collect();
        let mut some = |n: u64, line: String| lines.extend((n > 0).then_some(line));
        some(self.filtered, format!("left out by the filter of site.toml: {}", count(self.filtered, "row")));
        some(self.beyond, format!("not counted, because their person has enough: {}", count(self.beyond, "row")));
        some(self.left_out.rows(), format!("rows left out: {}", self.left_out));
        some(self.unusable.rows(), format!("rows that cannot be used: {}", self.unusable));
        self.columns.iter().filter_map(|of| of.moved(self.used)).for_each(|line| some(1, line));
        some(self.spanning, format!("cells with a line break in them: {}", self.spanning));
        some(used.len() as u64, format!("columns that are used: {}", some_of(&used, ", ")));
        some(self.unused.len() as u64, format!("columns that are not used: {}", some_of(&self.unused, ", ")));
        some(
            self.files_left_out.len() as u64,
            format!("files that are not read: {}", some_of(&self.files_left_out, ", ")),
        );
        lines.extend(self.noticed.iter().cloned());
        lines
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}
