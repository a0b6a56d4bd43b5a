//! Places that somebody takes for a while, so many for each key at most.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
};

use crate::store::held;

type Taken<K> = Arc<Mutex<HashMap<K, usize>>>;

/// The places of all keys.
#[derive(Clone)]
pub(crate) struct Places<K> {
    most: usize,
    taken: Taken<K>,
}

/// One of them; given back when dropped.
pub(crate) struct Place<K: Eq + Hash>(Taken<K>, K);

impl<K: Eq + Hash + Clone> Places<K> {
    /// `most` for each key.
    pub(crate) fn new(most: usize) -> Places<K> {
        Places { most, taken: Arc::default() }
    }

    /// A place of this key; nothing where all are taken.
    pub(crate) fn take(&self, key: K) -> Option<Place<K>> {
        let mut taken = held(&self.taken);
        let places = taken.entry(key.clone()).or_default();
        (*places < self.most).then(|| {
            *places += 1;
            Place(self.taken.clone(), key)
        })
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = held(&self.0);
        if let Some(places) = taken.get_mut(&self.1) {
            *places -= 1;
            if *places == 0 {
                taken.remove(&self.1);
            }
        }
    }
}
