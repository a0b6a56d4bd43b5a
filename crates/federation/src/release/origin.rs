//! The rows as they came from their file, by which a ledger knows them again ([LED-8]): every column by itself, and the columns
//! that were answered from together, row by row.

use std::{cmp::Ordering, sync::Arc};

use veilsum_cluster::Rows;
use veilsum_proto::{
    identity::Identity,
    ledger::Column,
    suite::{self, Hash, Multiset},
};

use crate::error::Failure;

/// Rows in their own units with the names of their columns.
///
/// It is private to its site and has no `Debug`.
#[derive(Clone)]
pub struct Origin {
    names: Vec<String>,
    rows: From,
}

/// What is known of the rows.
#[derive(Clone)]
enum From {
    /// They can be looked at.
    Here(Arc<dyn Passes>),
    /// A digest of all of them, which are elsewhere.
    Elsewhere(Hash),
}

/// Rows batch by batch, as often as somebody asks.
pub trait Passes: Send + Sync {
    /// Shows all rows once, in their own units.
    ///
    /// # Errors
    /// A [`Failure`] where they cannot be read, or are others than before.
    fn pass(&self, each: &mut dyn FnMut(&Rows)) -> Result<(), Failure>;

    /// All of them, where they are in memory.
    fn held(&self) -> Option<&Rows> {
        None
    }
}

impl Passes for Rows {
    fn pass(&self, each: &mut dyn FnMut(&Rows)) -> Result<(), Failure> {
        each(self);
        Ok(())
    }

    fn held(&self) -> Option<&Rows> {
        Some(self)
    }
}

/// The names of columns that were answered from together, ascending.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Together(pub Vec<String>);

impl Together {
    /// Their name in a ledger, a list in JSON.
    fn name(&self) -> String {
        // Names always have a form in JSON.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Reads such a name; `None` where it is that of one column by itself.
    pub fn named(name: &str) -> Option<Together> {
        serde_json::from_str(name).ok().map(Together)
    }
}

impl Origin {
    /// `rows`, n x d, whose columns have these names.
    pub fn new(names: Vec<String>, rows: Rows) -> Origin {
        Origin { names, rows: From::Here(Arc::new(rows)) }
    }

    /// Rows that are read anew whenever they are asked for.
    pub fn read(names: Vec<String>, rows: Arc<dyn Passes>) -> Origin {
        Origin { names, rows: From::Here(rows) }
    }

    /// Rows that are elsewhere: a digest of all of them, which does not depend on their order. Such rows are not those of any file, and
    /// nothing is known of some of their columns.
    pub fn elsewhere(names: Vec<String>, digest: Hash) -> Origin {
        Origin { names, rows: From::Elsewhere(digest) }
    }

    /// All columns: what the plan at hand answers from together.
    fn whole(&self) -> Together {
        let mut columns = self.names.clone();
        columns.sort_unstable();
        Together(columns)
    }

    /// Digests under a key of this site's, so that nobody can try values against a ledger: of every column by itself, of all
    /// together, and of those of `known` that are among them. Ascending by name.
    ///
    /// # Errors
    /// Those of [`Passes::pass`].
    pub fn columns(&self, identity: &Identity, known: &[Together]) -> Result<Vec<Column>, Failure> {
        let rows = match &self.rows {
            From::Here(rows) => rows,
            From::Elsewhere(digest) => {
                let values = [b"elsewhere", &digest.0[..]].concat();
                return Ok(vec![keyed(identity, self.whole().name(), &values)]);
            }
        };
        let key = suite::hash("values of a column", &[&*identity.digest_secret()]);
        let mut alone: Vec<Multiset> = self.names.iter().map(|_| Multiset::new(&key)).collect();
        let mut sets: Vec<(&Together, Vec<usize>, Multiset)> = Vec::new();
        let whole = self.whole();
        for set in known.iter().chain((self.names.len() > 1).then_some(&whole)) {
            if let Some(places) = self.places(set)
                && !sets.iter().any(|(known, ..)| *known == set)
            {
                sets.push((set, places, Multiset::new(&key)));
            }
        }
        rows.pass(&mut |rows| {
            for (at, values) in alone.iter_mut().enumerate() {
                values.add_values(rows.iter().map(|row| row[at].to_bits()));
            }
            for (_, places, sum) in &mut sets {
                for row in rows.iter() {
                    let bytes: Vec<u8> = places.iter().flat_map(|place| row[*place].to_le_bytes()).collect();
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
        let From::Here(here) = &self.rows else { return Vec::new() };
        let Some(rows) = here.held() else { return Vec::new() };
        let of = |name: &String| {
            let values = match Together::named(name) {
                Some(set) => self.together(rows, &set)?,
                None => alone(rows, self.names.iter().position(|known| known == name)?),
            };
            Some(keyed(identity, name.clone(), &values.0))
        };
        names.iter().filter_map(of).collect()
    }

    fn places(&self, set: &Together) -> Option<Vec<usize>> {
        set.0.iter().map(|name| self.names.iter().position(|n| n == name)).collect()
    }

    fn together(&self, rows: &Rows, set: &Together) -> Option<Hash> {
        let places = self.places(set)?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by(|a, b| {
            let values = places.iter().map(|p| rows.row(*a)[*p].total_cmp(&rows.row(*b)[*p]));
            values.fold(Ordering::Equal, Ordering::then)
        });
        let of_row = |row: usize| places.iter().flat_map(move |place| rows.row(row)[*place].to_le_bytes());
        let bytes: Vec<u8> = order.into_iter().flat_map(of_row).collect();
        Some(suite::hash("rows of columns", &[&bytes]))
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

    fn origin(names: &[&str], rows: &[&[f64]]) -> Origin {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Origin::new(names.clone(), Rows::new(rows.concat(), names.len()).unwrap())
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
        let a = origin(&["x", "y", "z"], &rows);
        let turned = origin(&["z", "x", "y"], &[&[6.0, 2.0, 10.0], &[5.0, 1.0, 10.0], &[5.0, 2.0, 20.0]]);
        assert_eq!(differs(&a, &turned, &[]), [""; 0]);
        let swapped = origin(&["x", "y", "z"], &[&[2.0, 10.0, 5.0], &[1.0, 20.0, 5.0], &[2.0, 10.0, 6.0]]);
        assert_eq!(differs(&a, &swapped, &[]), [r#"["x","y","z"]"#]);
        // Another plan's columns are still bound among those of this one.
        let known = [r#"["x","y"]"#, r#"["x","z"]"#, r#"["q","x"]"#].map(|n| Together::named(n).unwrap());
        assert_eq!(differs(&a, &swapped, &known), [r#"["x","y","z"]"#, r#"["x","y"]"#]);
        // A column by itself is one list, as before rows were bound.
        let one = origin(&["x"], &[&[1.0], &[2.0]]);
        assert_eq!(one.columns(&Identity::from_seed(&[1; 32]), &[]).unwrap().len(), 1);
        assert_eq!(Together::named("x"), None);
    }

    /// [LED-8]: rows that are elsewhere are one data set as well, and never that of a file.
    #[test]
    fn rows_elsewhere_are_known_by_their_digest() {
        let of = |names: &[&str], digest: u8| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Origin::elsewhere(names, Hash([digest; 32])).columns(&Identity::from_seed(&[1; 32]), &[]).unwrap()
        };
        assert_eq!(of(&["x", "y"], 3), of(&["y", "x"], 3));
        assert_eq!(of(&["x", "y"], 3)[0].name, r#"["x","y"]"#);
        assert_ne!(of(&["x", "y"], 3), of(&["x", "y"], 4));
        let file = origin(&["x", "y"], &[&[1.0, 2.0]]).columns(&Identity::from_seed(&[1; 32]), &[]).unwrap();
        assert!(!file.contains(&of(&["x", "y"], 3)[0]));
    }
}
