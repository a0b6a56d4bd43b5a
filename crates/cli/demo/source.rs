//! The rows of a demonstration: generated, or from a file and dealt to sites.

use std::path::Path;

pub(super) use veilsum_cluster::synthetic::DEFAULT_START_SEED;
use veilsum_cluster::{Centres, synthetic};
use veilsum_node::{
    agreed::{check_sites, numbered},
    cost::counted,
    error::{Code, Failure},
    loopback::LoopbackSite,
    plan::{Categorical, Column, Labels, Scaling},
    release::{ClusterError, Domain, Rows},
    split,
    table::{self, Table, TableSpec},
};

/// Rows at their sites, and what is known about their columns.
pub(super) struct Source {
    pub sites: Vec<LoopbackSite>,
    pub columns: Vec<Column>,
    /// Columns of categories, whose indicators follow the numbers.
    pub categorical: Vec<Categorical>,
    pub default_k: Option<u32>,
    pub note: String,
    /// The label column and its labels, where they are to be released.
    pub labels: Option<Labels>,
}

/// What of the options says which rows there are.
pub(super) struct Wish<'a> {
    pub columns: &'a [String],
    /// Those that hold categories.
    pub categorical: Vec<Categorical>,
    pub label: Option<&'a str>,
    pub split: &'a str,
    pub sites: Option<usize>,
    pub seed: Option<u64>,
    pub release_labels: bool,
}

/// The five-Gaussian example: no site can see five clusters alone.
pub(super) fn example(wish: &Wish<'_>) -> Source {
    let example = synthetic::five_groups(wish.seed.unwrap_or(synthetic::DEFAULT_SEED));
    let domain = synthetic::five_gaussians_domain();
    let columns = ["x", "y"]
        .iter()
        .zip(domain.lower().iter().zip(domain.upper()))
        .map(|(name, (lower, upper))| Column { name: (*name).into(), lower: *lower, upper: *upper })
        .collect();
    let clusters = example.truth.k();
    let labels = wish
        .release_labels
        .then(|| Labels { column: "cluster".into(), classes: (0..clusters).map(|class| class.to_string()).collect() });
    let sites: Vec<LoopbackSite> = example
        .sites
        .into_iter()
        .enumerate()
        .map(|(i, s)| LoopbackSite {
            name: format!("site-{}", i + 1),
            rows: s.rows,
            labels: labels.is_some().then(|| s.labels.into_iter().map(|label| label as u32).collect()),
        })
        .collect();
    let rows: usize = sites.iter().map(|s| s.rows.len()).sum();
    Source {
        note: format!(
            "five Gaussians at 3 sites, {rows} rows, generated; each site sees three of the five clusters; \
             public box [-1, 2] x [-1, 2]\nmasked sums, QUIC on 127.0.0.1"
        ),
        sites,
        columns,
        categorical: Vec::new(),
        default_k: Some(5),
        labels,
    }
}

/// Rows of a file, dealt to sites.
pub(super) fn from_file(wish: &Wish<'_>, path: &Path) -> Result<Source, Failure> {
    let header = table::read_header(path)?;
    let named = match wish.label {
        Some(name) if !header.iter().any(|column| column == name) => {
            return Err(Failure::new(
                Code::Usage,
                format!("--label {name:?}: {} has no such column", path.display()),
                format!("the file has {}", header.join(", ")),
            ));
        }
        Some(name) => Some(name.to_owned()),
        None => header.last().filter(|last| *last == "label").cloned(),
    };
    let way = Way::parse(wish.split, &header)?;
    let by_column = match &way {
        Way::Column(column) => Some(column.clone()),
        _ => None,
    };
    if wish.release_labels && by_column.is_some() {
        return Err(Failure::new(
            Code::Usage,
            "--release-labels and --split by a column contradict each other",
            "split by iid, dirichlet, observers or seen",
        ));
    }
    // Labels are read only where they are needed: their column may else be named as one to use.
    let by_label = wish.release_labels || matches!(way, Way::Dirichlet(_) | Way::Seen(_));
    if by_label && named.is_none() {
        return Err(Failure::new(
            Code::Usage,
            format!("labels are needed, and {} has no last column called label", path.display()),
            "say which column holds them with --label COLUMN",
        ));
    }
    let label = by_column.clone().or_else(|| named.clone().filter(|_| by_label));
    if let Some(column) = wish.columns.iter().find(|column| !header.contains(column)) {
        return Err(Failure::new(
            Code::Usage,
            format!("--columns {column:?}: {} has no such column", path.display()),
            format!("the file has {}", header.join(", ")),
        ));
    }
    if let Some(label) = label.as_ref().filter(|label| wish.columns.contains(label)) {
        let why = match by_column {
            Some(_) => "the rows are split by it",
            None => "it holds the labels",
        };
        return Err(Failure::new(
            Code::Usage,
            format!("--columns {label}: this column is not clustered, because {why}"),
            "leave it out of --columns, or split the rows another way (--split iid)",
        ));
    }
    let category = |column: &String| wish.categorical.iter().any(|of| of.column == *column);
    if let Some(column) = [&by_column, &named].into_iter().flatten().find(|column| category(column)) {
        return Err(Failure::new(
            Code::Usage,
            format!("--category {column:?}: this column holds the labels, or the rows are split by it"),
            "leave it out of --category, or split the rows another way (--split iid)",
        ));
    }
    let wanted: Vec<String> = if wish.columns.is_empty() {
        let clustered = |column: &&String| Some(*column) != by_column.as_ref() && Some(*column) != named.as_ref();
        header.iter().filter(clustered).filter(|column| !category(column)).cloned().collect()
    } else {
        wish.columns.iter().filter(|column| !category(column)).cloned().collect()
    };
    let spec = TableSpec { columns: wanted, categorical: wish.categorical.clone(), label, ..TableSpec::default() };
    let mut table = table::read(path, &spec)?;
    let ones: usize = wish.categorical.iter().map(|of| of.categories.len()).sum();
    let constant = if wish.columns.is_empty() { leave_out_constant(&mut table, ones) } else { Vec::new() };
    let d = table.columns.len();
    let rows = Rows::new(table.values, d)?;
    let unusable = |e: ClusterError| match e {
        ClusterError::ConstantColumn { column } => Failure::input(
            format!(
                "{}: the column {:?} is constant and says nothing about clusters",
                path.display(),
                table.columns[column]
            ),
            "name the other columns with --columns",
        ),
        ClusterError::BoundNotUsable { column } => Failure::input(
            format!("{}: the column {:?} has a value beyond 10^150", path.display(), table.columns[column]),
            "give the column in another unit, or name the other columns with --columns",
        ),
        other => other.into(),
    };
    let wanted = wish.sites.unwrap_or(20);
    let seed = wish.seed.unwrap_or(0);
    let found = table.labels.clone().unwrap_or_default();
    let parts = match &way {
        Way::Column(column) => {
            if wish.sites.is_some() {
                return Err(Failure::new(
                    Code::Usage,
                    "--sites and --split by a column contradict each other",
                    format!("leave --sites out: every value of {column:?} is a site"),
                ));
            }
            split::by_label(&found)
        }
        Way::Iid => split::iid(table.rows, wanted, seed),
        Way::Dirichlet(alpha) => split::dirichlet(&found, wanted, *alpha, seed),
        Way::Observers(beta) => {
            let around = Domain::around(&rows, Scaling::None).map_err(unusable)?;
            let places = Centres::uniform(&around, wanted.max(1), seed)?;
            split::observers(&rows, &Rows::new(places.as_slice().to_vec(), d)?, *beta, seed)
        }
        Way::Seen(labels) => split::lacking(&found, wanted, *labels, seed),
    };
    let next = "split into other --sites, or by another column";
    check_sites(parts.len()).map_err(|e| Failure::new(Code::Usage, e, next))?;
    if let Some((name, _)) = parts.iter().find(|(_, rows)| rows.is_empty()) {
        return Err(Failure::new(
            Code::Usage,
            format!("{name} would have no rows: {} rows for {} sites", table.rows, parts.len()),
            "use fewer --sites",
        ));
    }
    let numbers: Vec<f64> = rows.iter().flat_map(|row| row[..d - ones].to_vec()).collect();
    let around = match d - ones {
        0 => Ok(None),
        numeric => Rows::new(numbers, numeric).and_then(|rows| Domain::around(&rows, Scaling::Box)).map(Some),
    };
    let around = around.map_err(unusable)?;
    let column =
        |(name, (lower, upper)): (&String, (&f64, &f64))| Column { name: name.clone(), lower: *lower, upper: *upper };
    let of =
        |domain: &Domain| table.columns.iter().zip(domain.lower().iter().zip(domain.upper())).map(column).collect();
    let columns = around.as_ref().map(of).unwrap_or_default();
    let labels = wish.release_labels.then(|| {
        let classes: std::collections::BTreeSet<&String> = found.iter().collect();
        Labels { column: named.clone().unwrap_or_default(), classes: classes.into_iter().cloned().collect() }
    });
    let unlisted = |_| Failure::new(Code::Internal, "a label of the file is not in its own list", "please report it");
    let numbers = labels.as_ref().map(|labels| numbered(&found, labels)).transpose().map_err(unlisted)?;
    let sites = parts
        .into_iter()
        .map(|(name, members)| {
            let values = members.iter().flat_map(|i| rows.row(*i).to_vec()).collect();
            let labels = numbers.as_ref().map(|numbers| members.iter().map(|i| numbers[*i]).collect());
            Rows::new(values, d).map(|rows| LoopbackSite { name, rows, labels }).map_err(Failure::from)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let skipped = match constant.as_slice() {
        [] => String::new(),
        names => format!("left out, because they are constant and say nothing about clusters: {}\n", names.join(", ")),
    };
    let note = format!(
        "{skipped}{}: {}, {}, {} sites ({}); for this demonstration the public box is taken from the file, \
         which a real federation must not do\nmasked sums, QUIC on 127.0.0.1",
        path.display(),
        counted(rows.len(), "row"),
        counted(d - ones + wish.categorical.len(), "column"),
        sites.len(),
        by_column.map_or_else(|| format!("rows dealt by {}", wish.split), |c| format!("one for every value of {c:?}"))
    );
    Ok(Source { sites, columns, categorical: wish.categorical.clone(), default_k: None, note, labels })
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

/// How rows are spread over sites.
enum Way {
    Iid,
    Column(String),
    Dirichlet(f64),
    Observers(f64),
    Seen(usize),
}

impl Way {
    /// `iid`, `dirichlet:ALPHA`, `observers:BETA`, `seen:LABELS`, or a column of the file.
    fn parse(text: &str, header: &[String]) -> Result<Way, Failure> {
        if text == "iid" {
            return Ok(Way::Iid);
        }
        if header.iter().any(|column| column == text) {
            return Ok(Way::Column(text.to_owned()));
        }
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        match text.split_once(':').map(|(name, value)| (name, number(value))) {
            Some(("dirichlet", Some(alpha))) => Ok(Way::Dirichlet(alpha)),
            Some(("observers", Some(beta))) => Ok(Way::Observers(beta)),
            Some(("seen", Some(labels))) if labels >= 1.0 => Ok(Way::Seen(labels as usize)),
            _ => Err(Failure::new(
                Code::Usage,
                format!("--split {text:?}: the file has no such column, and it is no way to spread rows"),
                "write iid, dirichlet:0.5, observers:1, seen:2 or the name of a column",
            )),
        }
    }
}
