//! A party's secret key, which is made where it lives, and the account that its folder has.

use std::{path::Path, sync::Arc};

use veilsum_node::{
    checkup,
    documents::{Pinned, load_identity, policy_of, write_key},
    door::{Bound, Data, Ledger, LedgerError, ledger},
    error::Failure,
    files::Existing,
    random::{drawn, system_rng},
};
use veilsum_proto::identity::Identity;
use zeroize::Zeroizing;

use crate::party::{own_identity, state_of};

/// The identity of a coordinator or an intermediary whose key is at `path`; it is made there (mode 0600) where there is none.
///
/// # Errors
/// A [`Failure`] where it cannot be written or read, or is another party's.
pub(crate) fn key_of(path: &Path, name: &str) -> Result<Identity, Failure> {
    if std::fs::symlink_metadata(path).is_err() {
        write_key(path, name, &Identity::generate(&mut system_rng()), Existing::Refuse)?;
    }
    let (identity, of) = load_identity(path)?;
    if of == name {
        return Ok(identity);
    }
    let what = format!("{}: this is the key of {of}, and not of {name}", path.display());
    Err(Failure::input(what, "choose another --folder"))
}

/// Enters what other folders spent for these people into an account that has spent nothing yet; said again, it changes nothing.
fn spent_before(state: &Path, identity: &Arc<Identity>, key: &Path, spent: u64) -> Result<(), Failure> {
    let (site, _) = policy_of(None, Some(key))?;
    let mut ledger = Ledger::open(state, identity.clone(), Data::unread(&site.data), None)?;
    let bound = ledger.account().bound().of_unit(site.policy.unit);
    if bound.before >= spent {
        return Ok(());
    }
    if ledger.account().is_settled() {
        let what = format!("the account in {} has been used, and counts what it spent by itself", state.display());
        return Err(Failure::usage(what, "leave --spent out; it is for a new account"));
    }
    Ok(ledger.bind(Bound { before: spent, ..bound })?)
}

/// The same of a site that joins, with the account that its folder has, or a new one that counts what was `spent` elsewhere: it goes on under a key that it does not know, because its operator joins from
/// this folder ([LED-9]). Where there is none it begins, and the second value says so; but a site that took part before begins a new one only if its
/// operator says so.
///
/// # Errors
/// A [`Failure`] where nobody said so, somebody did without need, or something cannot be read or written. No key is made then.
pub(crate) fn site_of(path: &Path, name: &str, anew: bool, spent: u64) -> Result<(Identity, bool), Failure> {
    let state = state_of(path, None)?;
    let there = match ledger::all(&state) {
        Err(LedgerError::NoAccount(_)) => false,
        found => found.map(|_| true)?,
    };
    if there && anew {
        let what = format!("the account in {} is there, and no other begins beside it", state.display());
        return Err(Failure::usage(what, "leave --new-account out"));
    }
    let is_new = std::fs::symlink_metadata(path).is_err();
    let before = !is_new || path.with_file_name("roster.toml").exists() || Pinned::load(path)?.roster.is_some();
    if !there && before && !anew {
        let what = format!(
            "this site took part before, and {} is lost: nobody knows what its rows have answered, and a new account counts nothing of it",
            state.display()
        );
        let next = "put the newest copy of the state folder back; if there is none, and these are other rows or you take it upon you, begin a \
                    new account with --new-account";
        return Err(Failure::input(what, next));
    }
    let identity = if is_new { Identity::generate(&mut system_rng()) } else { key_of(path, name)? };
    let identity = Arc::new(identity);
    if let Some(finding) = checkup::lasts(&state)? {
        crate::tell!("warning: {}; {}", finding.says, finding.next);
    }
    // First, so that no key is ever there that the account does not know.
    if !there {
        // Whoever met the one before knows it by its secret, and would take this one for it, set back.
        let digests = if anew { Zeroizing::new(drawn()) } else { identity.digest_secret() };
        ledger::begin(&state, &digests)?;
    } else if Ledger::take_over(&state, identity.clone())? {
        crate::tell!("the account in {} goes on under a new key", state.display());
    }
    if spent > 0 {
        spent_before(&state, &identity, path, spent)?;
    }
    if is_new {
        write_key(path, name, &identity, Existing::Refuse)?;
    }
    Ok((own_identity(path, &state)?.0, !there))
}
