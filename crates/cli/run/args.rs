//! The words of `veilsum run`, and what they say of the party: its files, its role, which options it reads.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::Args;
use veilsum_node::{
    documents::{Offered, load_identity, load_roster},
    error::Failure,
};
use veilsum_proto::roster::PartyId;

use crate::{
    party::{Documents, LOSS_WAIT, Loss, Own, Patience, Reach, key_beside, state_beside, state_of},
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

    /// Roster, plan and key of the run at hand.
    pub(super) fn documents(&self) -> Documents {
        let roster = self.roster();
        let plan = self.plan.clone().unwrap_or_else(|| roster.with_file_name("plan.toml"));
        Documents { roster, plan, key: self.own.key.clone() }
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
        let role = match id {
            PartyId::Coordinator => "the coordinator",
            PartyId::Intermediary => "the intermediary",
            PartyId::Site(_) => "a site",
        };
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

/// Where a run's documents end: the file of the model in this folder.
pub(super) fn model_in(folder: &Path) -> PathBuf {
    folder.join("model.json")
}
