//! Reads the shared data sets and known answers, which are not part of the repository. A test that needs them is no `#[test]`, but one of
//! [`with_data`](crate::with_data). They are run by `cargo test --workspace -- --ignored with_data`.

use std::path::{Path, PathBuf};

use veilsum_cluster::{Centres, Domain, OutOfBox, Prepared, Rows, Scaling};

/// Makes tests of these functions of a module, which need the shared data. They are ignored unless they are asked for.
#[macro_export]
macro_rules! with_data {
    ($($name:ident),* $(,)?) => {
        mod with_data {
            $(#[test] #[ignore = "needs the shared data: see CONTRIBUTING.md"] fn $name() { super::$name(); })*
        }
    };
}

/// The shared folder: `VEILSUM_SHARED`, or else `../shared` beside the checkout.
pub fn shared() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("VEILSUM_SHARED").map_or_else(beside, PathBuf::from)
}

/// Table 1 of Bárcena et al. (2021) at gamma = 1: the data set, and its adjusted Rand index as printed.
pub const TABLE_1: [(&str, f64); 4] =
    [("xclara", 0.99289), ("s-set1", 0.89728), ("pendigits", 0.42468), ("waveform-v1", 0.24359)];

/// A data set: all columns but the last are attributes, the last is a label.
pub struct DataSet {
    /// The attributes.
    pub rows: Rows,
    /// The class of each row, counted from 0 in the order of appearance.
    pub labels: Vec<usize>,
    /// The attributes' names.
    pub names: Vec<String>,
}

impl DataSet {
    /// The data set of this name.
    ///
    /// # Panics
    /// Where its file cannot be read.
    pub fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(shared().join(format!("data/{name}.csv"))).expect("data set");
        let (mut values, mut labels, mut names, mut columns) = (Vec::new(), Vec::new(), Vec::<String>::new(), 0);
        let mut header: Vec<String> = text.lines().next().expect("a header").split(',').map(str::to_owned).collect();
        header.pop();
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            let cells: Vec<&str> = line.split(',').collect();
            let (label, attributes) = cells.split_last().expect("a label");
            columns = attributes.len();
            values.extend(attributes.iter().map(|cell| cell.trim().parse::<f64>().expect("a number")));
            let label = label.trim().to_owned();
            labels.push(names.iter().position(|name| *name == label).unwrap_or_else(|| {
                names.push(label);
                names.len() - 1
            }));
        }
        Self { rows: Rows::new(values, columns).expect("rows"), labels, names: header }
    }

    /// Pooled min-max scaling, as the papers' tables use it.
    /// # Panics
    /// Where a column is constant.
    pub fn boxed(&self) -> Domain {
        Domain::around(&self.rows, Scaling::Box).expect("box")
    }
}

/// A reference CSV of centres, K x d, no header.
///
/// # Panics
/// Where it cannot be read.
pub fn centres(file: &str) -> Centres {
    Centres::from_rows(&matrix(&shared().join("reference/federated_fcm").join(file))).expect("centres")
}

/// Lines of numbers without a header.
///
/// # Panics
/// Where there are none.
pub fn matrix(path: &Path) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(path).expect("a table of numbers");
    let row = |line: &str| line.split(',').map(|cell| cell.trim().parse().expect("a number")).collect();
    text.lines().filter(|line| !line.is_empty()).map(row).collect()
}

/// A JSON file of the shared references.
///
/// # Panics
/// Where it cannot be read.
pub fn json(file: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(shared().join("reference").join(file)).expect("reference");
    serde_json::from_str(&text).expect("JSON")
}

/// All numbers of nested lists, in their order.
///
/// # Panics
/// Where something else stands among them.
pub fn numbers(value: &serde_json::Value) -> Vec<f64> {
    match value {
        serde_json::Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

/// The rows of the three sites of `method_vectors.json`.
///
/// # Panics
/// Where there are none.
pub fn clients(vectors: &serde_json::Value) -> Vec<Rows> {
    let rows = |client| Rows::new(numbers(client), 2).expect("rows");
    vectors["clients"].as_array().expect("sites").iter().map(rows).collect()
}

/// Deals the rows out to `sites` sites like cards.
pub fn split(rows: &Rows, sites: usize) -> Vec<Rows> {
    let hand = |site: usize| rows.iter().skip(site).step_by(sites).flatten().copied().collect();
    (0..sites).map(|site| Rows::new(hand(site), rows.columns()).expect("rows")).collect()
}

/// Rows in the units of a domain, packed.
pub fn prepare(rows: &Rows, domain: &Domain) -> Prepared {
    Prepared::new(rows, domain, OutOfBox::Refuse).expect("rows inside the box")
}

/// [`prepare`] for every site.
pub fn prepare_all(sites: &[Rows], domain: &Domain) -> Vec<Prepared> {
    sites.iter().map(|rows| prepare(rows, domain)).collect()
}

/// Largest absolute difference of coordinates, index-matched.
pub fn max_difference(a: &Centres, b: &Centres) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.as_slice().iter().zip(b.as_slice()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}
