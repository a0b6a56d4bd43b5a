//! At most so many rows of one person count ([NOI-9]). Which ones do follows from a secret of the site and from what rows say, and never from where
//! they stand: the order of rows, columns and files plays no part.
//!
//! A first pass over the source finds the rows that count, and every later one takes those alone. A row that neither pass knows counts for
//! nothing, so that a file that changes in between cannot make more of a person count.

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use veilsum_proto::suite;
use zeroize::Zeroizing;

use super::cell::Cell;
use crate::{
    error::{Code, Failure},
    files::{self, Existing},
};

/// Bytes of the secret.
const KEY: usize = 32;

/// The site's secret by which rows of a person are put in order. Never shown.
#[derive(Clone, PartialEq)]
pub struct PersonKey(Arc<Zeroizing<[u8; KEY]>>);

impl fmt::Debug for PersonKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonKey")
    }
}

impl PersonKey {
    /// One of the system's random numbers, for rows that are read once.
    ///
    /// # Errors
    /// A [`Failure`] where it has none.
    pub fn fresh() -> Result<PersonKey, Failure> {
        let mut fresh = Zeroizing::new([0; KEY]);
        getrandom::fill(&mut *fresh)
            .map_err(|e| Failure::new(Code::Internal, e, "the system has no random numbers"))?;
        Ok(PersonKey(Arc::new(fresh)))
    }

    /// The one in this file (mode 0600); a fresh one of the system's random numbers where there is no such file.
    ///
    /// # Errors
    /// A [`Failure`] where the file is damaged, can be read by others, or cannot be written.
    pub fn of(path: &Path) -> Result<PersonKey, Failure> {
        if std::fs::symlink_metadata(path).is_err() {
            let fresh = PersonKey::fresh()?;
            // Another command of this site may have made one in between.
            if let Err(failure) = files::write_private(path, &**fresh.0, Existing::Refuse)
                && files::read_private(path, KEY).map_or(true, |there| there[..] == fresh.0[..])
            {
                return Err(failure);
            }
        }
        let bytes = files::read_private(path, KEY)?;
        let bytes: [u8; KEY] = bytes.as_slice().try_into().map_err(|_| {
            let what =
                format!("{}: it is damaged: it says which rows of a person count, in {KEY} bytes", path.display());
            let next = "put it back from a backup; or delete it, and other rows of a person count from then on";
            Failure::input(what, next)
        })?;
        Ok(PersonKey(Arc::new(Zeroizing::new(bytes))))
    }

    #[cfg(test)]
    pub(in crate::table) fn test(byte: u8) -> PersonKey {
        PersonKey(Arc::new(Zeroizing::new([byte; KEY])))
    }
}

/// How the rows of a table are told apart.
pub struct Cut {
    /// Where the column of persons stands.
    pub at: usize,
    /// All columns, in the order of their names.
    pub order: Vec<usize>,
    /// Rows of a person that count at most.
    pub rows: usize,
    /// The site's secret.
    pub key: PersonKey,
}

impl Cut {
    fn digest(&self, label: &str, parts: &[&[u8]]) -> u128 {
        let parts: Vec<&[u8]> = [&self.key.0[..]].into_iter().chain(parts.iter().copied()).collect();
        let mut half = [0; 16];
        half.copy_from_slice(&suite::hash(label, &parts).0[..16]);
        u128::from_le_bytes(half)
    }

    /// What a row says, with its person. One number is the same in every form and in other digits.
    fn row<'a>(&self, person: &str, cell: impl Fn(usize) -> Cell<'a>) -> u128 {
        let mut bytes = Vec::new();
        for at in &self.order {
            let cell = cell(*at);
            match cell.number() {
                Some(x) if !x.is_nan() && !cell.is_bool() => {
                    bytes.push(1);
                    // 0 and not -0.
                    bytes.extend_from_slice(&(x + 0.0).to_bits().to_le_bytes());
                }
                _ => {
                    let text = if cell.is_nothing() { "".into() } else { cell.common() };
                    bytes.push(2);
                    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
        }
        self.digest("a row of a person", &[person.as_bytes(), &bytes])
    }
}

/// The rows that count, and how often each.
pub(super) type Counting = HashMap<u128, u32>;

/// What a pass does with the rows of persons.
#[derive(Clone)]
pub(super) enum Pass {
    /// It finds which count: of every person so many that come first, ascending.
    Find(HashMap<u128, Vec<u128>>),
    /// It takes those that count and have not come yet.
    Take(Counting),
}

impl Default for Pass {
    /// No row of a person counts.
    fn default() -> Self {
        Pass::Take(Counting::new())
    }
}

impl Pass {
    /// Whether this row of this person, with these cells, counts in this pass, and the row's digest. Rows are counted apart by `kind`.
    pub(super) fn counts<'a>(
        &mut self,
        cut: &Cut,
        (kind, person): (&str, &str),
        cell: impl Fn(usize) -> Cell<'a>,
    ) -> (bool, u128) {
        let own = cut.row(person, cell);
        let counts = match self {
            Pass::Find(all) => {
                let first = all.entry(cut.digest(kind, &[person.as_bytes()])).or_default();
                let place = first.partition_point(|known| *known <= own);
                if place < cut.rows {
                    first.truncate(cut.rows - 1);
                    first.insert(place, own);
                }
                false
            }
            Pass::Take(left) => match left.get_mut(&own) {
                Some(times) if *times > 0 => {
                    *times -= 1;
                    true
                }
                _ => false,
            },
        };
        (counts, own)
    }

    /// After the pass that found them.
    pub(super) fn found(self) -> Counting {
        let mut counting = Counting::new();
        if let Pass::Find(all) = self {
            all.into_values().flatten().for_each(|row| *counting.entry(row).or_default() += 1);
        }
        counting
    }
}

#[cfg(all(test, feature = "columnar"))]
mod tests;
