//! The rows of a demonstration: generated, or from a file and dealt to sites.

use std::{path::Path, sync::Arc};

use veilsum_cluster::synthetic;
pub(super) use veilsum_cluster::synthetic::DEFAULT_START_SEED;
use veilsum_node::{
    agreed::check_sites,
    answerer::{ClusterError, Domain, Rows},
    cost::counted,
    error::Failure,
    loopback::LoopbackSite,
    plan::{Categorical, Column, Scaling},
    split,
    table::{self, Dialect, PersonKey, RowRules, Table, TableSpec, Unusable, spelling::normal},
};

use super::DemoArgs;
use crate::{columns::Wanted, rows::RowsSaid};

/// Rows at their sites, and what is known about their columns.
pub(super) struct Source {
    pub sites: Vec<LoopbackSite>,
    pub columns: Vec<Column>,
    pub note: String,
}

impl Source {
    /// The names of the sites.
    pub(super) fn names(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.name.clone()).collect()
    }

    /// The most rows of a site; for a description those without a value count, too.
    pub(super) fn largest(&self, describes: bool) -> u64 {
        let missing = self.sites.iter().filter(|_| describes).flat_map(|site| site.missing.iter().copied());
        self.rows().into_iter().chain(missing).max().unwrap_or(1)
    }

    /// How many rows each has.
    pub(super) fn rows(&self) -> Vec<u64> {
        self.sites.iter().map(|site| site.rows.len() as u64).collect()
    }
}

/// What says which rows there are.
pub(super) struct Wish<'a> {
    /// The options.
    pub of: &'a DemoArgs,
    /// Columns that are named; those of numbers may have their range.
    pub columns: &'a [Wanted],
    /// Those that hold categories.
    pub categorical: &'a [Categorical],
    /// Whether a number out of its range is moved to its edge, and not refused.
    pub clips: bool,
    /// Whether the file is read as a site reads it for a plan with noise ([NOI-8]).
    pub noisy: bool,
    /// So many sites if no option says how many.
    pub usual_sites: Option<usize>,
}

impl Wish<'_> {
    /// The rows at their sites.
    ///
    /// # Errors
    /// A [`Failure`] that names the option or the file.
    pub(super) fn rows(&self) -> Result<Source, Failure> {
        match &self.of.data {
            Some(path) => from_file(self, path, self.of.rules()?).map_err(RowsSaid::of_option),
            None => example(self),
        }
    }

    /// The column of this name, where its range was said.
    fn ranged(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find_map(|wanted| match wanted {
            Wanted::Number(column) if column.name == name => Some(column),
            _ => None,
        })
    }

    fn numbers(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| !matches!(column, Wanted::Category(..))).map(Wanted::name)
    }
}

/// The five-Gaussian example: no site can see five clusters alone.
///
/// # Errors
/// A [`Failure`] where columns are wished for that it does not have.
fn example(wish: &Wish<'_>) -> Result<Source, Failure> {
    let example = synthetic::five_groups(wish.of.what.seed.unwrap_or(synthetic::DEFAULT_SEED));
    let columns = ["x", "y"].map(|name| Column { name: name.into(), lower: -1.0, upper: 2.0 });
    let own = wish.columns.is_empty() || wish.columns == columns.clone().map(Wanted::Number);
    if !own || !wish.categorical.is_empty() {
        let what = "the generated example has the columns x and y from -1 to 2";
        return Err(Failure::usage(what, "give the rows of other columns with --data FILE.csv"));
    }
    let named = |(i, site): (usize, synthetic::Site)| LoopbackSite::new(format!("site-{}", i + 1), site.rows);
    let sites: Vec<LoopbackSite> = example.sites.into_iter().enumerate().map(named).collect();
    let rows: usize = sites.iter().map(|s| s.rows.len()).sum();
    Ok(Source {
        note: format!(
            "five Gaussians at 3 sites, {rows} rows, generated; each site sees three of the five clusters; \
             public box [-1, 2] x [-1, 2]\nmasked sums, QUIC on 127.0.0.1"
        ),
        sites,
        columns: columns.to_vec(),
    })
}

/// Rows of a file, dealt to sites.
fn from_file(wish: &Wish<'_>, path: &Path, rules: RowRules) -> Result<Source, Failure> {
    let asked = wish.columns.iter().map(Wanted::name);
    let asked = asked.map(|name| rules.columns.get(name).map_or(name, String::as_str));
    let asked = asked.chain(rules.columns.values().map(String::as_str));
    let own = table::read_header(path, Dialect { by_line: wish.noisy, ..rules.dialect() }, asked)?;
    let header = table::known_as(&path.display().to_string(), &own, &rules)?;
    let named = header.last().filter(|last| *last == "label").cloned();
    let label = match &*wish.of.split {
        "iid" => None,
        column if header.iter().any(|of| of == column) => Some(column.to_owned()),
        other => {
            let next = format!("write iid, or one of {}", header.join(", "));
            return Err(Failure::usage(format!("--split {other:?}: the file has no such column"), next));
        }
    };
    if let Some(column) = wish.columns.iter().map(Wanted::name).find(|column| !header.iter().any(|h| h == column)) {
        let next =
            format!("if it has another name there: --rows columns.NAME=COLUMN; the file has {}", header.join(", "));
        return Err(Failure::usage(format!("--column {column:?}: {} has no such column", path.display()), next));
    }
    let category = |column: &&String| wish.categorical.iter().any(|of| of.column == **column);
    let is_named = |column: &&String| category(column) || wish.numbers().any(|name| name == column.as_str());
    if let Some(label) = label.as_ref().filter(is_named) {
        let what = format!("--column {label}: this column is not clustered, because the rows are split by it");
        return Err(Failure::usage(what, "name others, or split the rows another way (--split iid)"));
    }
    let any = wish.columns.is_empty() && wish.categorical.is_empty();
    let person = rules.person.as_deref().map(normal);
    let person = own.iter().zip(&header).find(|(own, _)| person.as_deref() == Some(own)).map(|(_, name)| name);
    let clustered = |column: &&String| ![label.as_ref(), named.as_ref(), person].contains(&Some(*column));
    let wanted: Vec<String> = match any {
        true => header.iter().filter(clustered).cloned().collect(),
        false => wish.numbers().map(str::to_owned).collect(),
    };
    let (categorical, rules) = (wish.categorical.to_vec(), Arc::new(rules));
    let range = |name: &String| {
        wish.ranged(name).map_or((f64::NEG_INFINITY, f64::INFINITY), |column| (column.lower, column.upper))
    };
    let within = wanted.iter().map(range).collect();
    let unusable = if wish.noisy { Unusable::Weightless } else { Unusable::Refused };
    let person_key = rules.person.as_ref().map(|_| PersonKey::fresh()).transpose()?;
    let how = TableSpec { rules, within, clips: wish.clips, unusable, person_key, ..TableSpec::default() };
    let spec = TableSpec { columns: wanted, categorical, label: label.clone(), ..how };
    let mut table = table::read(path, &spec)?;
    if table.rows == 0 {
        let what = format!("{}: no row can be used: {}", path.display(), table.tally().left_out);
        return Err(Failure::input(what, "correct the file, or name other columns with --column"));
    }
    let ones: usize = wish.categorical.iter().map(|of| of.categories.len()).sum();
    let all = table.columns.clone();
    let constant = if any { leave_out_constant(&mut table, ones) } else { Vec::new() };
    let d = table.columns.len();
    let account = table.tally();
    let rows = Rows::new(table.values, d)?;
    // Of a column by itself.
    let unusable = |e: ClusterError, at: usize| {
        let (what, next) = match e {
            ClusterError::ConstantColumn(_) => {
                ("is constant and says nothing about clusters", "name the other columns with --column")
            }
            ClusterError::BoundNotUsable(_) => (
                "has a value beyond 10^150",
                "give the column in another unit, or name the other columns with --column",
            ),
            other => return other.into(),
        };
        Failure::input(format!("{}: the column {:?} {what}", path.display(), table.columns[at]), next)
    };
    let sites = wish.of.sites.or(wish.usual_sites);
    let parts = match &label {
        Some(column) if sites.is_some() => {
            let next = format!("leave --sites out: every value of {column:?} is a site");
            return Err(Failure::usage("--sites and --split by a column contradict each other", next));
        }
        Some(_) => split::by_label(&table.labels.clone().unwrap_or_default()),
        None => split::iid(table.rows, sites.unwrap_or(20), wish.of.what.seed.unwrap_or(0)),
    };
    let next = "split into other --sites, or by another column";
    check_sites(parts.len()).map_err(|e| Failure::usage(e, next))?;
    if let Some((name, _)) = parts.iter().find(|(_, rows)| rows.is_empty()) {
        let what = format!("{name} would have no rows: {} rows for {} sites", table.rows, parts.len());
        return Err(Failure::usage(what, "use fewer --sites"));
    }
    let column = |at: usize| {
        if let Some(ranged) = wish.ranged(&table.columns[at]) {
            return Ok(ranged.clone());
        }
        let own = Rows::new(rows.iter().map(|row| row[at]).collect(), 1)?;
        let around = Domain::around(&own, Scaling::Box).map_err(|e| unusable(e, at))?;
        Ok(Column { name: table.columns[at].clone(), lower: around.lower()[0], upper: around.upper()[0] })
    };
    let columns = (0..d - ones).map(column).collect::<Result<Vec<_>, Failure>>()?;
    let mut sites = parts
        .into_iter()
        .map(|(name, members)| {
            let values = members.iter().flat_map(|i| rows.row(*i).to_vec()).collect();
            Rows::new(values, d).map(|rows| LoopbackSite::new(name, rows)).map_err(Failure::from)
        })
        .collect::<Result<Vec<_>, _>>()?;
    // Rows that are left out are dealt to nobody: that they lack a value is counted at the first site.
    if let Some(first) = sites.first_mut() {
        let by = all.iter().zip(account.missing(wish.categorical));
        first.missing = by.filter(|(name, _)| !constant.contains(name)).map(|(_, missing)| missing).collect();
    }
    let skipped = match constant.as_slice() {
        [] => String::new(),
        names => format!("left out, because they are constant and say nothing about clusters: {}\n", names.join(", ")),
    };
    let boxed = match wish.columns.iter().any(|column| matches!(column, Wanted::Number(_))) {
        true => "",
        false => "; for this demonstration the public box is taken from the file, which a real federation must not do",
    };
    let doubts: String = account.doubts().iter().map(|doubt| format!("warning: {doubt}\n")).collect();
    let note = format!(
        "{}\n{doubts}{skipped}{}: {}, {}, {} sites ({}){boxed}\nmasked sums, QUIC on 127.0.0.1",
        account,
        path.display(),
        counted(rows.len(), "row"),
        counted(d - ones + wish.categorical.len(), "column"),
        sites.len(),
        label.map_or_else(|| "each row goes to a site by chance".into(), |c| format!("one for every value of {c:?}"))
    );
    Ok(Source { sites, columns, note })
}

/// Takes the constant columns out of a table where others are left, and returns their names. The last `ones` columns are indicators,
/// which stay.
fn leave_out_constant(table: &mut Table, ones: usize) -> Vec<String> {
    let d = table.columns.len();
    let varies =
        |column: usize| column >= d - ones || table.values.chunks(d).any(|row| row[column] != table.values[column]);
    let kept: Vec<usize> = (0..d).filter(|column| varies(*column)).collect();
    if kept.is_empty() || kept.len() == d {
        return Vec::new();
    }
    let names = (0..d).filter(|column| !kept.contains(column)).map(|column| table.columns[column].clone()).collect();
    table.values = table.values.chunks(d).flat_map(|row| kept.iter().map(|column| row[*column])).collect();
    table.columns = kept.iter().map(|column| table.columns[*column].clone()).collect();
    names
}
