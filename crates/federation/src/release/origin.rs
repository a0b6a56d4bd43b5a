//! The rows as they came from their file, by which a ledger knows them again ([LED-8]): every column by itself, and the columns
//! that were answered from together, row by row.

use std::{cmp::Ordering, collections::BTreeMap};

use veilsum_cluster::Rows;
use veilsum_proto::{
    identity::Identity,
    ledger::Column,
    suite::{self, Hash},
};

/// Rows in their own units with the names of their columns, and labels beside them where a plan counts by labels.
///
/// It is private to its site and has no `Debug`.
#[derive(Clone)]
pub struct Origin {
    names: Vec<String>,
    rows: Rows,
    /// One label a row, by the name of the column.
    labels: BTreeMap<String, Vec<String>>,
}

/// Columns that were answered from together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Together {
    /// Their names, ascending.
    pub columns: Vec<String>,
    /// The column of labels beside them.
    pub label: Option<String>,
}

impl Together {
    /// Their name in a ledger, a list in JSON.
    fn name(&self) -> String {
        // Names always have a form in JSON.
        serde_json::to_string(&(&self.columns, &self.label)).unwrap_or_default()
    }

    /// Reads such a name; `None` where it is that of one column by itself.
    pub fn named(name: &str) -> Option<Together> {
        let (columns, label) = serde_json::from_str(name).ok()?;
        Some(Together { columns, label })
    }
}

impl Origin {
    /// `rows`, n x d, whose columns have these names, and columns of n labels each.
    pub fn new(names: Vec<String>, rows: Rows, labels: impl IntoIterator<Item = (String, Vec<String>)>) -> Origin {
        Origin { names, rows, labels: labels.into_iter().collect() }
    }

    /// All columns, with the label where there is one: what the plan at hand answers from together.
    fn whole(&self) -> Together {
        let mut columns = self.names.clone();
        columns.sort_unstable();
        Together { columns, label: self.labels.keys().next().cloned() }
    }

    /// Digests under a key of this site's, so that nobody can try values against a ledger: of every column by itself, of all
    /// together, and of those of `known` that are among them. Ascending by name.
    pub fn columns(&self, identity: &Identity, known: &[Together]) -> Vec<Column> {
        let key = |name: String, values: Hash| Column {
            name,
            values: suite::hash("column in a ledger", &[&*identity.digest_secret(), &values.0]),
        };
        let alone = self.names.iter().enumerate().map(|(at, name)| key(name.clone(), self.alone(at)));
        let mut sets: Vec<&Together> = known.iter().collect();
        let whole = self.whole();
        if whole.columns.len() + usize::from(whole.label.is_some()) > 1 {
            sets.push(&whole);
        }
        let together = sets.into_iter().filter_map(|set| Some(key(set.name(), self.together(set)?)));
        let mut columns: Vec<Column> = alone.chain(together).collect();
        columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        columns.dedup();
        columns
    }

    /// A column by itself; the order of its rows does not count.
    fn alone(&self, at: usize) -> Hash {
        let mut values: Vec<f64> = self.rows.iter().map(|row| row[at]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        suite::hash("values of a column", &[&bytes])
    }

    /// Rows of these columns, whose order does not count; `None` where one of them is missing here.
    fn together(&self, set: &Together) -> Option<Hash> {
        let at = |name: &String| self.names.iter().position(|n| n == name);
        let places: Vec<usize> = set.columns.iter().map(at).collect::<Option<_>>()?;
        let labels = set.label.as_ref().map(|label| self.labels.get(label).ok_or(())).transpose().ok()?;
        let label = |row: usize| labels.and_then(|labels| labels.get(row)).map_or("", String::as_str);
        let all: Vec<&[f64]> = self.rows.iter().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_unstable_by(|a, b| {
            let values = places.iter().map(|p| all[*a][*p].total_cmp(&all[*b][*p]));
            values.fold(Ordering::Equal, Ordering::then).then_with(|| label(*a).cmp(label(*b)))
        });
        let mut bytes = Vec::new();
        for row in order {
            places.iter().for_each(|p| bytes.extend_from_slice(&all[row][*p].to_le_bytes()));
            if labels.is_some() {
                bytes.extend_from_slice(&(label(row).len() as u64).to_le_bytes());
                bytes.extend_from_slice(label(row).as_bytes());
            }
        }
        Some(suite::hash("rows of columns", &[&bytes]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(names: &[&str], rows: &[&[f64]], labels: &[&str]) -> Origin {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let labels = (!labels.is_empty()).then(|| ("class".to_owned(), labels));
        Origin::new(names.clone(), Rows::new(rows.concat(), names.len()).unwrap(), labels)
    }

    /// Names of what differs.
    fn differs(a: &Origin, b: &Origin, known: &[Together]) -> Vec<String> {
        let identity = Identity::from_seed(&[1; 32]);
        let (a, b) = (a.columns(&identity, known), b.columns(&identity, known));
        assert_eq!(a.len(), b.len());
        a.iter()
            .zip(&b)
            .filter(|(a, b)| a != b)
            .map(|(a, b)| {
                assert_eq!(a.name, b.name);
                a.name.clone()
            })
            .collect()
    }

    /// [LED-8]: a swap between rows leaves every column as it is, and is another set of rows; their order, and that of the
    /// columns, is not.
    #[test]
    fn rows_are_bound_and_their_order_is_not() {
        let rows: [&[f64]; 3] = [&[1.0, 10.0, 5.0], &[2.0, 20.0, 5.0], &[2.0, 10.0, 6.0]];
        let a = origin(&["x", "y", "z"], &rows, &[]);
        let turned = origin(&["z", "x", "y"], &[&[6.0, 2.0, 10.0], &[5.0, 1.0, 10.0], &[5.0, 2.0, 20.0]], &[]);
        assert_eq!(differs(&a, &turned, &[]), [""; 0]);
        let swapped = origin(&["x", "y", "z"], &[&[2.0, 10.0, 5.0], &[1.0, 20.0, 5.0], &[2.0, 10.0, 6.0]], &[]);
        assert_eq!(differs(&a, &swapped, &[]), [r#"[["x","y","z"],null]"#]);
        // Another plan's columns are still bound among those of this one.
        let known =
            [r#"[["x","y"],null]"#, r#"[["x","z"],null]"#, r#"[["q","x"],null]"#].map(|n| Together::named(n).unwrap());
        assert_eq!(differs(&a, &swapped, &known), [r#"[["x","y","z"],null]"#, r#"[["x","y"],null]"#]);
        // A column by itself is one list, as before rows were bound.
        let one = origin(&["x"], &[&[1.0], &[2.0]], &[]);
        assert_eq!(one.columns(&Identity::from_seed(&[1; 32]), &[]).len(), 1);
        assert_eq!(Together::named("x"), None);
    }

    /// [LED-8]: labels are content of their rows where a plan counts by them.
    #[test]
    fn labels_are_bound_to_their_rows() {
        let rows: [&[f64]; 2] = [&[1.0], &[2.0]];
        let (a, b) = (origin(&["x"], &rows, &["sick", "well"]), origin(&["x"], &rows, &["well", "sick"]));
        assert_eq!(differs(&a, &b, &[]), [r#"[["x"],"class"]"#]);
        let turned = origin(&["x"], &[&[2.0], &[1.0]], &["well", "sick"]);
        assert_eq!(differs(&a, &turned, &[]), [""; 0]);
        // It is unambiguous where one label ends and the next row begins.
        let twice: [&[f64]; 2] = [&[1.0], &[1.0]];
        let (a, b) = (origin(&["x"], &twice, &["a", "ab"]), origin(&["x"], &twice, &["aa", "b"]));
        assert_eq!(differs(&a, &b, &[]), [r#"[["x"],"class"]"#]);
    }
}
