//! The rows as they came from their file, by which a ledger knows them again ([LED-8]): every column by itself, and the columns
//! that were answered from together, row by row.

use std::sync::Arc;

use veilsum_cluster::Rows;
use veilsum_proto::{
    identity::Identity,
    ledger::Column,
    suite::{self, Hash, Multiset},
};

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
    Here(Arc<Rows>),
    /// A digest of all of them, which are elsewhere.
    Elsewhere(Hash),
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
    pub fn columns(&self, identity: &Identity, known: &[Together]) -> Vec<Column> {
        let rows = match &self.rows {
            From::Here(rows) => rows,
            From::Elsewhere(digest) => {
                let values = [b"elsewhere", &digest.0[..]].concat();
                return vec![keyed(identity, self.whole().name(), &values)];
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
        for (at, values) in alone.iter_mut().enumerate() {
            values.add_values(rows.iter().map(|row| row[at].to_bits()));
        }
        for (_, places, sum) in &mut sets {
            for row in rows.iter() {
                let bytes: Vec<u8> = places.iter().flat_map(|place| row[*place].to_le_bytes()).collect();
                sum.add_hash(&suite::hash("rows of columns", &[&bytes]));
            }
        }
        let of = |name: &String, sum: &Multiset| keyed(identity, name.clone(), &sum.finish());
        let together = sets.iter().map(|(set, _, sum)| of(&set.name(), sum));
        let mut columns: Vec<Column> = self.names.iter().zip(&alone).map(|(name, sum)| of(name, sum)).collect();
        columns.extend(together);
        columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        columns
    }

    fn places(&self, set: &Together) -> Option<Vec<usize>> {
        set.0.iter().map(|name| self.names.iter().position(|n| n == name)).collect()
    }
}

fn keyed(identity: &Identity, name: String, values: &[u8]) -> Column {
    Column { name, values: suite::hash("column in a ledger", &[&*identity.digest_secret(), values]) }
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
        assert_eq!(one.columns(&Identity::from_seed(&[1; 32]), &[]).len(), 1);
        assert_eq!(Together::named("x"), None);
    }

    /// [LED-8]: rows that are elsewhere are one data set as well, and never that of a file.
    #[test]
    fn rows_elsewhere_are_known_by_their_digest() {
        let of = |names: &[&str], digest: u8| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Origin::elsewhere(names, Hash([digest; 32])).columns(&Identity::from_seed(&[1; 32]), &[])
        };
        assert_eq!(of(&["x", "y"], 3), of(&["y", "x"], 3));
        assert_eq!(of(&["x", "y"], 3)[0].name, r#"["x","y"]"#);
        assert_ne!(of(&["x", "y"], 3), of(&["x", "y"], 4));
        let file = origin(&["x", "y"], &[&[1.0, 2.0]]).columns(&Identity::from_seed(&[1; 32]), &[]);
        assert!(!file.contains(&of(&["x", "y"], 3)[0]));
    }
}
