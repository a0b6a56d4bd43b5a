//! `veilsum run`: a party of any role, which its key says. It stands by for the runs of its federation, or takes part in the one run
//! of a plan.

mod args;
pub(crate) mod coordinator;
pub(crate) mod intermediary;
mod serving;
pub(crate) mod site;
mod standby;

use veilsum_node::{
    documents::GuestList,
    error::{Code, Failure},
};
use veilsum_proto::roster::PartyId;

pub(crate) use self::args::RunArgs;
use crate::verb::Verb;

impl Verb for RunArgs {
    /// Runs until the run has ended, or until it is told to stop.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code. If this party stands by, what goes wrong in a run is told and ends that run alone.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if self.plan.is_none() && GuestList::within(&self.folder).exists() {
            self.fits(PartyId::Coordinator)?;
            return serving::serve(self, json);
        }
        let id = self.role()?;
        self.fits(id)?;
        match (&self.plan, id) {
            (None, PartyId::Coordinator) => {
                let what = format!("{}: this coordinator has invited nobody from here", self.folder.display());
                let next = "found the federation here (veilsum federation create), or run one plan by its documents: --plan FILE";
                Err(Failure::new(Code::Usage, what, next))
            }
            (None, id) => standby::stand_by(self, matches!(id, PartyId::Site(_)), json),
            (Some(_), PartyId::Coordinator) => coordinator::run(self, json),
            (Some(_), PartyId::Intermediary) => intermediary::run(self, json),
            (Some(_), PartyId::Site(_)) => site::run(self, json),
        }
    }
}
