//! A ledger goes on when its owner, or another site of its block, has a new key ([LED-9]).

use std::{path::Path, sync::Arc};

use veilsum_proto::{
    codec,
    history::Rekey,
    identity::{Identity, PublicKey},
    ledger::{Head, Note},
    suite::Hash,
};

use super::{
    FILE, Ledger, LedgerError, ROUNDS, SIGNED_ROUNDS, lock,
    look::{Checked, check},
    read_head, rounds_in, write_head,
};
use crate::{
    files::{self, Existing},
    release::{Data, Left},
};

impl Ledger {
    /// Hands a ledger over from the key that wrote it so far to the one that takes its place. The order is: the note, which `writer`
    /// signs, the old key or, where that is lost, the new one; the head; the rounds. Where a process ended in between, the next call goes on from there, and
    /// where everything is done, or there is no ledger yet, nothing is.
    ///
    /// # Errors
    /// [`LedgerError`]; both keys are then needed still.
    pub fn hand_over(
        folder: &Path,
        head: &Path,
        writer: &Arc<Identity>,
        new: &Identity,
        rekey: &Rekey,
    ) -> Result<(), LedgerError> {
        let old = rekey.old;
        let path = folder.join(FILE);
        if !path.exists() && !head.exists() {
            return Ok(());
        }
        let done = match path.exists().then(|| check(&path, old, None)) {
            Some(Ok(checked)) if checked.owners.last() == Some(&new.public()) => Some(checked),
            // What else is wrong with it, opening it tells; a torn line is mended there.
            _ => None,
        };
        // Nobody else writes meanwhile.
        let (held, end) = match done {
            Some(Checked { head: end, .. }) => {
                ((None, vec![lock(&path, &Hash::default())?, lock(head, &Hash::default())?]), end)
            }
            None => {
                let data = Data { name: String::new(), rows: Hash::default() };
                let mut ledger = Ledger::open_of(folder, Some(head), (writer.clone(), old), data, Hash::default())?;
                ledger.note(Note::Rekeyed(Box::new(rekey.clone())), &Left::default(), Hash::default())?;
                let end = ledger.head();
                ((Some(ledger), Vec::new()), end)
            }
        };
        let done = sign_anew(folder, head, (&old, new), &end);
        drop(held);
        done
    }

    /// Notes the new keys of other sites of the block, and of others who were met, in their order, as far as they are not noted yet.
    /// Without a ledger there are none.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn follow<'a>(
        folder: &Path,
        head: &Path,
        identity: &Arc<Identity>,
        rekeys: impl IntoIterator<Item = &'a Rekey>,
    ) -> Result<(), LedgerError> {
        let rekeys: Vec<&Rekey> = rekeys.into_iter().collect();
        if rekeys.is_empty() || !folder.join(FILE).exists() {
            return Ok(());
        }
        let data = Data { name: String::new(), rows: Hash::default() };
        let mut ledger = Ledger::open(folder, Some(head), identity.clone(), data, Hash::default())?;
        for rekey in rekeys {
            let has =
                |key| ledger.book.account().block().is_some_and(|block| block.members.iter().any(|(k, _)| *k == key));
            if (has(rekey.old) && !has(rekey.new)) || ledger.book.account().met().knows(&rekey.old) {
                ledger.note(Note::Renamed(Box::new(rekey.clone())), &Left::default(), Hash::default())?;
            }
        }
        Ok(())
    }
}

/// Signs what stands beside a ledger with the new key, as far as the old one signed it.
fn sign_anew(folder: &Path, head: &Path, (old, new): (&PublicKey, &Identity), end: &Head) -> Result<(), LedgerError> {
    if read_head(head, &new.public()).is_err() {
        let Some(known) = read_head(head, old)? else {
            return Err(LedgerError::NoHead { path: head.to_owned() });
        };
        // [LED-5]: what it names is there, whoever signs it.
        check(&folder.join(FILE), new.public(), Some(known.link))?;
        write_head(head, end, new)?;
    } else if !head.exists() {
        return Err(LedgerError::NoHead { path: head.to_owned() });
    }
    let rounds = rounds_in(folder, old);
    if !rounds.is_empty() {
        let list = codec::encode(&rounds);
        let bytes = [&new.sign(SIGNED_ROUNDS, &[&list]).to_bytes()[..], &list].concat();
        files::write_private(folder.join(ROUNDS), &bytes, Existing::Replace).map_err(LedgerError::Head)?;
    }
    Ok(())
}
