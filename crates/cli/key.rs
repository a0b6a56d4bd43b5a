//! A party's secret key, which is made where it lives, and the account that its folder has.

use std::{path::Path, sync::Arc};

use veilsum_node::{
    documents::{Pinned, load_identity, policy_of, write_key},
    error::Failure,
    files::Existing,
    random::{drawn, system_rng},
    store::{
        Ledger,
        ledger::{self, HEAD},
    },
};
use veilsum_proto::identity::Identity;
use zeroize::Zeroizing;

use crate::party::{own_identity, state_of};

/// The identity of a party whose key is at `path`; it is made there (mode 0600) where there is none. Where the folder has an account, that goes
/// on under the key that is made ([LED-9]).
///
/// # Errors
/// A [`Failure`] where it cannot be written or read, or is another party's.
pub(crate) fn key_of(path: &Path, name: &str) -> Result<Identity, Failure> {
    if std::fs::symlink_metadata(path).is_err() {
        let (identity, state) = (Arc::new(Identity::generate(&mut system_rng())), state_of(path, None));
        if state.join(HEAD).exists() {
            // First, so that no key is ever there that the account does not know.
            Ledger::take_over(&state, identity.clone())?;
            crate::tell!("the account in {} goes on under a new key", state.display());
        }
        write_key(path, name, &identity, Existing::Refuse)?;
    }
    let (_, of) = load_identity(path)?;
    if of == name {
        return Ok(own_identity(path, &state_of(path, None))?.0);
    }
    let what = format!("{}: this is the key of {of}, and not of {name}", path.display());
    Err(Failure::input(what, "choose another --folder"))
}

/// Begins the account of a site that joins, unless its folder has one. One that took part before, and whose state folder is lost, begins a new
/// one only if its operator says so.
///
/// # Errors
/// A [`Failure`] where nobody said so, or it cannot be written.
pub(crate) fn account_of(key: &Path, identity: &Identity, anew: bool) -> Result<(), Failure> {
    // Where `site.toml` says where the account is, and cannot be read, none is begun elsewhere.
    policy_of(None, Some(key))?;
    let state = state_of(key, None);
    if !state.join(HEAD).exists() && Pinned::load(key)?.roster.is_some() && !anew {
        let what = format!(
            "this site took part before, and {} is lost: nobody knows what its rows have answered, and a new account counts nothing of it",
            state.display()
        );
        let next = "put the newest copy of the state folder back; if there is none, and these are other rows or you take it upon you, begin a \
                    new account with --new-account";
        return Err(Failure::input(what, next));
    }
    // Whoever met the one before knows it by its secret, and would take this one for it, set back.
    let digests = if anew { Zeroizing::new(drawn()) } else { identity.digest_secret() };
    Ok(ledger::begin(&state, &digests)?)
}
