//! The rows as they came from their file, by which a ledger knows them again ([LED-8]): every column by itself, and the columns
//! that were answered from together, row by row.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use veilsum_cluster::Rows;
use veilsum_proto::{
    identity::Identity,
    ledger::Column,
    suite::{self, Hash, Multiset},
};

use crate::error::Failure;

/// Rows in their own units with the names of their columns, and labels beside them where a plan counts by labels.
///
/// It is private to its site and has no `Debug`.
#[derive(Clone)]
pub struct Origin {
    names: Vec<String>,
    /// Names of the columns of labels.
    labels: Vec<String>,
    rows: Arc<dyn Passes>,
}

/// Labels by the name of their column, one a row.
pub type RowLabels = BTreeMap<String, Vec<String>>;

/// Rows batch by batch, as often as somebody asks.
pub trait Passes: Send + Sync {
    /// Shows all rows once, in their own units.
    ///
    /// # Errors
    /// A [`Failure`] where they cannot be read, or are others than before.
    fn pass(&self, each: &mut dyn FnMut(&Rows, &RowLabels)) -> Result<(), Failure>;

    /// All of them, where they are in memory.
    fn held(&self) -> Option<(&Rows, &RowLabels)> {
        None
    }
}

struct Held(Rows, RowLabels);

impl Passes for Held {
    fn pass(&self, each: &mut dyn FnMut(&Rows, &RowLabels)) -> Result<(), Failure> {
        each(&self.0, &self.1);
        Ok(())
    }

    fn held(&self) -> Option<(&Rows, &RowLabels)> {
        Some((&self.0, &self.1))
    }
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
        let labels: RowLabels = labels.into_iter().collect();
        Origin { names, labels: labels.keys().cloned().collect(), rows: Arc::new(Held(rows, labels)) }
    }

    /// Rows that are read anew whenever they are asked for.
    pub fn read(names: Vec<String>, labels: impl IntoIterator<Item = String>, rows: Arc<dyn Passes>) -> Origin {
        Origin { names, labels: labels.into_iter().collect(), rows }
    }

    /// All columns, with the label where there is one: what the plan at hand answers from together.
    fn whole(&self) -> Together {
        let mut columns = self.names.clone();
        columns.sort_unstable();
        Together { columns, label: self.labels.first().cloned() }
    }

    /// Digests under a key of this site's, so that nobody can try values against a ledger: of every column by itself, of all
    /// together, and of those of `known` that are among them. Ascending by name.
    ///
    /// # Errors
    /// Those of [`Passes::pass`].
    pub fn columns(&self, identity: &Identity, known: &[Together]) -> Result<Vec<Column>, Failure> {
        let key = suite::hash("values of a column", &[&*identity.digest_secret()]);
        let mut alone: Vec<Multiset> = self.names.iter().map(|_| Multiset::new(&key)).collect();
        let mut sets: Vec<(&Together, Vec<usize>, Multiset)> = Vec::new();
        let whole = self.whole();
        let several = whole.columns.len() + usize::from(whole.label.is_some()) > 1;
        for set in known.iter().chain(several.then_some(&whole)) {
            let labelled = set.label.as_ref().is_none_or(|label| self.labels.contains(label));
            if let (true, Some(places)) = (labelled, self.places(set))
                && !sets.iter().any(|(known, ..)| *known == set)
            {
                sets.push((set, places, Multiset::new(&key)));
            }
        }
        let mut bytes = Vec::new();
        self.rows.pass(&mut |rows, labels| {
            for (at, values) in alone.iter_mut().enumerate() {
                values.add_values(rows.iter().map(|row| row[at].to_bits()));
            }
            for (set, places, sum) in &mut sets {
                let labels = set.label.as_ref().and_then(|label| labels.get(label));
                for (i, row) in rows.iter().enumerate() {
                    bytes.clear();
                    of_row(&mut bytes, row, places, labels.map(|labels| labels[i].as_str()));
                    sum.add_hash(&suite::hash("rows of columns", &[&bytes]));
                }
            }
        })?;
        let of = |name: &String, sum: &Multiset| keyed(identity, name.clone(), &sum.finish());
        let together = sets.iter().map(|(set, _, sum)| of(&set.name(), sum));
        let mut columns: Vec<Column> = self.names.iter().zip(&alone).map(|(name, sum)| of(name, sum)).collect();
        columns.extend(together);
        columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    /// The digests of these, by name, as ledgers had them before rows could be streamed: of sorted values, for which all of them have to
    /// be in memory.
    pub(super) fn columns_before(&self, identity: &Identity, names: &[String]) -> Vec<Column> {
        let Some((rows, labels)) = self.rows.held() else { return Vec::new() };
        let of = |name: &String| {
            let values = match Together::named(name) {
                Some(set) => self.together(rows, labels, &set)?,
                None => alone(rows, self.names.iter().position(|known| known == name)?),
            };
            Some(keyed(identity, name.clone(), &values.0))
        };
        names.iter().filter_map(of).collect()
    }

    fn places(&self, set: &Together) -> Option<Vec<usize>> {
        set.columns.iter().map(|name| self.names.iter().position(|n| n == name)).collect()
    }

    fn together(&self, rows: &Rows, labels: &RowLabels, set: &Together) -> Option<Hash> {
        let places = self.places(set)?;
        let labels = set.label.as_ref().map(|label| labels.get(label).ok_or(())).transpose().ok()?;
        let label = |row: usize| labels.and_then(|labels| labels.get(row)).map(String::as_str);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by(|a, b| {
            let values = places.iter().map(|p| rows.row(*a)[*p].total_cmp(&rows.row(*b)[*p]));
            values.fold(Ordering::Equal, Ordering::then).then_with(|| label(*a).cmp(&label(*b)))
        });
        let mut bytes = Vec::new();
        order.into_iter().for_each(|row| of_row(&mut bytes, rows.row(row), &places, label(row)));
        Some(suite::hash("rows of columns", &[&bytes]))
    }
}

/// A row as bytes: its values, then its label where there is one.
fn of_row(bytes: &mut Vec<u8>, row: &[f64], places: &[usize], label: Option<&str>) {
    places.iter().for_each(|place| bytes.extend_from_slice(&row[*place].to_le_bytes()));
    if let Some(label) = label {
        bytes.extend_from_slice(&(label.len() as u64).to_le_bytes());
        bytes.extend_from_slice(label.as_bytes());
    }
}

fn keyed(identity: &Identity, name: String, values: &[u8]) -> Column {
    Column { name, values: suite::hash("column in a ledger", &[&*identity.digest_secret(), values]) }
}

fn alone(rows: &Rows, at: usize) -> Hash {
    let mut values: Vec<f64> = rows.iter().map(|row| row[at]).collect();
    values.sort_unstable_by(f64::total_cmp);
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    suite::hash("values of a column", &[&bytes])
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
        let (a, b) = (a.columns(&identity, known).unwrap(), b.columns(&identity, known).unwrap());
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
        assert_eq!(one.columns(&Identity::from_seed(&[1; 32]), &[]).unwrap().len(), 1);
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
