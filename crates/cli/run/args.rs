//! The words of `veilsum run`, and what they say of the party: its files, its role, which options it reads.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use veilsum_node::{
    documents::{Federation, Offered, load_federation, load_identity, load_roster},
    error::Failure,
};
use veilsum_proto::{identity::Identity, roster::PartyId};

use crate::{
    party::{LOSS_WAIT, Loss, Own, Patience, Reach, agree, key_beside, own_identity, state_beside, state_of},
    watch::Watch,
};

/// Run this party in its federation
///
/// The key says which role it has. The coordinator lets parties join and begins the runs that `plan propose` proposes. A site answers
/// with masked sums of its rows. The intermediary sums the masked row counts and sees no centre.
#[derive(Args, Debug, Clone)]
pub(crate) struct RunArgs {
    /// This party's folder, with its key and the federation's documents
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The federation's roster [default: roster.toml in the folder]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan of the run at hand, where it is known.
    #[arg(skip)]
    pub plan: Option<PathBuf>,
    /// What is this party's own.
    #[command(flatten)]
    pub own: Own,
    /// Folder for the results, a folder in it for each run
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// End after one run, with its exit code
    #[arg(long)]
    pub once: bool,
    /// Where coordinator or intermediary listen [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Which way links take.
    #[command(flatten)]
    pub reach: Reach,
    /// Timeouts.
    #[command(flatten)]
    pub patience: Patience,
    /// What shows how runs go.
    #[command(flatten)]
    pub watch: Watch,
}

impl RunArgs {
    /// Where the roster is.
    pub(super) fn roster(&self) -> PathBuf {
        self.roster.clone().unwrap_or_else(|| self.folder.join("roster.toml"))
    }

    /// This party's key file.
    pub(super) fn key(&self) -> Result<PathBuf, Failure> {
        key_beside(self.own.key.as_ref(), &self.roster())
    }

    /// A site's folder of journal and ledger.
    pub(super) fn state(&self) -> Result<PathBuf, Failure> {
        self.state_for(&self.key()?, true)
    }

    /// Where the party with this key keeps its journal: a site where its account is, others beside the key.
    pub(super) fn state_for(&self, key: &Path, is_site: bool) -> Result<PathBuf, Failure> {
        let given = self.own.state.as_ref();
        if is_site { state_of(key, given) } else { Ok(state_beside(key, given)) }
    }

    /// Reads roster, plan and key of the run at hand, and checks that the key is that of such a party ([`role_of`]).
    pub(super) fn load(&self, role: &str) -> Result<(Federation, Arc<Identity>), Failure> {
        let file = self.roster();
        let plan = self.plan.clone().unwrap_or_else(|| file.with_file_name("plan.toml"));
        let federation = load_federation(&file, plan)?;
        let key = self.key()?;
        let (identity, name) = own_identity(&key, &self.state()?)?;
        let offered = Offered { file: &file, roster: &federation.roster, key: &key, identity: &identity };
        if role_of(offered.whoami()?) != role {
            let next = "name the key of that party";
            return Err(Failure::input(format!("the key of {name} is not that of {role}"), next));
        }
        Ok((federation, Arc::new(identity)))
    }

    /// Asks whether this party agreed to the roster. Nothing is resolved or dialled before.
    pub(super) fn agree(&self, to: &Federation, identity: &Identity) -> Result<(), Failure> {
        let (file, key) = (self.roster(), self.key()?);
        agree(&Offered { file: &file, roster: &to.roster, key: &key, identity }, self.own.state.as_ref())
    }

    /// Which member of the roster this key is.
    pub(crate) fn role(&self) -> Result<PartyId, Failure> {
        let file = self.roster();
        if !file.exists() {
            let what = format!("{}: there is no roster here yet", file.display());
            let next = "join first, with the line that the coordinator sent: veilsum join 'vs1:…'; or say where it is: --roster FILE";
            return Err(Failure::input(what, next));
        }
        let (roster, key) = (load_roster(&file)?, self.key()?);
        let (identity, _) = load_identity(&key)?;
        Offered { file: &file, roster: &roster, key: &key, identity: &identity }.whoami()
    }

    /// Refuses options that this role does not read.
    pub(crate) fn fits(&self, id: PartyId) -> Result<(), Failure> {
        let is_site = matches!(id, PartyId::Site(_));
        let role = role_of(id);
        let unread = [
            ("--data", "has no rows", self.own.data.is_some() && !is_site),
            ("--policy", "has no rows", self.own.policy.is_some() && !is_site),
            ("--listen", "only dials out", self.listen.is_some() && is_site),
            ("--loss-wait", "waits for no other site", self.patience.loss_wait != LOSS_WAIT && is_site),
            ("--on-loss", "waits for no other site", self.patience.on_loss == Loss::Stop && is_site),
            ("--once", "serves until it is stopped", self.once && id == PartyId::Coordinator),
        ];
        match unread.iter().find(|(_, _, given)| *given) {
            None => Ok(()),
            Some((option, why, _)) => {
                Err(Failure::usage(format!("this party is {role}, which {why}"), format!("leave {option} out")))
            }
        }
    }
}

/// What a party is, in words.
fn role_of(id: PartyId) -> &'static str {
    match id {
        PartyId::Coordinator => "the coordinator",
        PartyId::Intermediary => "the intermediary",
        PartyId::Site(_) => "a site",
    }
}

/// Where a run's documents end: the file of the model in this folder.
pub(super) fn model_in(folder: &Path) -> PathBuf {
    folder.join("model.json")
}
