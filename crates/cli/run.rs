//! `veilsum run`: a party of any role, which its key says, stands by for the runs of its federation.

mod args;
pub(crate) mod coordinator;
pub(crate) mod intermediary;
mod serving;
pub(crate) mod site;
pub(crate) mod standby;

use veilsum_node::{
    documents::GuestList,
    error::{Code, Failure},
    report,
    role::{server, status::Window},
};
use veilsum_proto::roster::PartyId;

pub(crate) use self::args::RunArgs;
use crate::{party::block_on, verb::Verb};

/// The one run of the plan that is named.
pub(crate) fn one(args: &RunArgs, json: bool) -> Result<(), Failure> {
    let (id, state) = (args.role()?, args.state()?);
    args.fits(id)?;
    match id {
        PartyId::Coordinator => {
            let mut config = coordinator::prepare(args, json)?;
            let window = Window::open(&state, "", "");
            window.watch(&mut config.party, id);
            let (result, written) = block_on(server::run_and_write(config, &args.out))?;
            crate::say!("{}", report::of_server(&result, &written, json).trim_end());
            result.ended_early.map_or(Ok(()), |early| Err(early.failure()))
        }
        PartyId::Intermediary => {
            let config = intermediary::prepare(args, json)?;
            block_on(intermediary::count(config, None, &Window::open(&state, "", ""), json))
        }
        PartyId::Site(_) => {
            let config = site::prepare(args, json)?;
            block_on(site::take_part(args, config, &Window::open(&state, "", ""), json))
        }
    }
}

impl Verb for RunArgs {
    /// Runs until the run has ended, or until it is told to stop.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code. If this party stands by, what goes wrong in a run is told and ends that run alone.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if GuestList::within(&self.folder).exists() {
            self.fits(PartyId::Coordinator)?;
            return well(serving::serve(self, json));
        }
        let id = self.role()?;
        self.fits(id)?;
        if id == PartyId::Coordinator {
            let what = format!("{}: this coordinator has invited nobody from here", self.folder.display());
            return Err(Failure::usage(what, "found the federation here: veilsum federation create"));
        }
        let is_site = matches!(id, PartyId::Site(_));
        let ended = standby::begin(self, is_site).and_then(|key| block_on(self.stand_by(&key, is_site, json)));
        if self.once { ended } else { well(ended) }
    }
}

/// A service that was told to stop has ended as it should.
fn well(ended: Result<(), Failure>) -> Result<(), Failure> {
    match ended {
        Err(failure) if failure.code == Code::Terminated => {
            crate::tell!("stopped, as this process was told to; {}", failure.advice);
            Ok(())
        }
        ended => ended,
    }
}
