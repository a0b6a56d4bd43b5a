//! `veilsum client`: a site, in a process of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    answerer::Answerer,
    cost,
    documents::{self, Federation, SitePolicy, policy_of},
    error::{Code, Failure},
    release::{Data, Origin},
    report,
    role::{
        client::{self, ClientConfig},
        status::Window,
    },
    store,
};
use veilsum_proto::roster::PartyId;

use crate::{
    agree::FirstUse,
    party::{
        Documents, Reach, address_of, block_on, head_of, place_for, place_of, state_of, waiting, warn_of_replacing,
    },
    verb::Verb,
    watch::Watch,
};

/// Run a site: it answers with masked sums of its own rows
#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Which way links take.
    #[command(flatten)]
    pub reach: Reach,
    /// What shows how the run goes.
    #[command(flatten)]
    pub watch: Watch,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// This site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    ///
    /// CSV with a header, also packed by gzip or zstd, Parquet, or Arrow.
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// This site's own policy [default: site.toml beside the key, else the strict default]
    ///
    /// `veilsum policy show` prints the one in force.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Folder for this site's journal and ledger (mode 0700) [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Seconds to keep trying to reach coordinator and intermediary [default: without end]
    #[arg(long, value_name = "SECONDS")]
    pub join_timeout: Option<u64>,
    /// Where to write the model (centres)
    ///
    /// The result is written beside it, as result.json for model.json.
    #[arg(long, value_name = "FILE", default_value = "model.json")]
    pub model: PathBuf,
}

impl Verb for ClientArgs {
    /// Runs a site.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let config = self.prepare(json)?;
        let window = Window::open(&state_of(&self.documents.key()?, self.state.as_ref()), "", "");
        block_on(self.take_part(config, &window, json))
    }
}

impl ClientArgs {
    /// Reads all that a run needs, and asks whether this party agreed to the roster. Nothing is dialled.
    ///
    /// # Errors
    /// A [`Failure`] that names the file at fault.
    pub(crate) fn prepare(&self, json: bool) -> Result<ClientConfig, Failure> {
        place_for(&self.model)?;
        self.prepare_with(json, |federation, site, file| self.rows(federation, site, file))
    }

    /// The rows of `--data`, or those that the policy names.
    pub(crate) fn rows(
        &self,
        federation: &Federation,
        site: &SitePolicy,
        file: Option<&Path>,
    ) -> Result<(Arc<dyn Answerer>, Origin), Failure> {
        let from = site.rows_from(self.data.as_deref(), file, Some(&self.documents.key()?))?;
        documents::load_rows_and_origin(federation, &from)
    }

    /// The same with rows from elsewhere.
    pub(crate) fn prepare_with(
        &self,
        json: bool,
        rows: impl FnOnce(&Federation, &SitePolicy, Option<&Path>) -> Result<(Arc<dyn Answerer>, Origin), Failure>,
    ) -> Result<ClientConfig, Failure> {
        let args = self;
        let (federation, identity, _) =
            args.documents.load_with("sites", |id| matches!(id, PartyId::Site(_)), args.state.as_ref())?;
        warn_of_replacing(&report::beside(&args.model), &federation.terms, "--model");
        let key = args.documents.key()?;
        let (site, file) = policy_of(args.policy.as_deref(), Some(&key))?;
        documents::keep_policy(file.as_deref(), &key)?;
        documents::keep_schema(&args.documents.roster)?;
        let (rows, origin) = rows(&federation, &site, file.as_deref())?;
        let data = Data::of(&site.data, &identity, &*rows);
        args.documents.agree(&args.first, &federation, &identity, Some(&data))?;
        store::follow(&place_of(&key, args.state.as_ref()), &args.documents.roster, &federation.roster, &identity)?;
        let state = state_of(&key, args.state.as_ref());
        let (coordinator, intermediary) =
            (address_of(&federation.roster.coordinator)?, address_of(&federation.roster.intermediary)?);
        site.has_room(rows.rows())?;
        Ok(ClientConfig {
            party: args.reach.party(identity, federation.clone(), args.watch.watcher(json)?)?,
            site,
            rows,
            origin: Arc::new(origin),
            coordinator,
            intermediary,
            state: Some(state.clone()),
            head: Some(head_of(&key)),
            patience: waiting(args.join_timeout),
            agreed: false,
        })
    }

    /// Takes part in the run, and writes what comes of it.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) async fn take_part(&self, mut config: ClientConfig, window: &Window, json: bool) -> Result<(), Failure> {
        let args = self;
        let id = config.party.federation.whoami(&config.party.identity)?;
        let writer = config.party.writer();
        let name = config.party.name_of(id);
        let federation = config.party.federation.clone();
        window.watch(&mut config.party, id);
        let report = client::run(config).await?;
        let Some(model) = &report.model else {
            return Err(Failure::new(Code::Denied, "the run ended without a model", "ask the coordinator's operator"));
        };
        documents::write_model(model, &args.model)?;
        let result = report::beside(&args.model);
        report::write_site(&result, model, report.result.as_ref(), &report.traffic, &writer)?;
        let page = report::page::kept_beside(&result, &federation);
        if json {
            crate::say!(
                "{}",
                json!({"site": name, "answered": report.answered, "traffic": report.traffic,
                       "model": args.model, "result": result, "converged": model.converged,
                       "ended_early": model.ended_early,
                       "extrapolated": model.extrapolated, "centres": model.centres})
            );
        } else {
            crate::say!(
                "{name}: answered {}, sent {} bytes, masked words, shares, keys and signatures",
                cost::counted(report.answered as usize, "question"),
                report.traffic.bytes()
            );
            crate::say!("what was given away so far: veilsum ledger budget --key {}", args.documents.key()?.display());
            crate::say!(
                "wrote {} and {}; your rows' memberships: veilsum assign --model {} --data {}",
                args.model.display(),
                page.as_ref().map_or(result.display().to_string(), |page| format!(
                    "{}, {}",
                    result.display(),
                    page.display()
                )),
                args.model.display(),
                args.data.as_ref().map_or("ROWS".into(), |data| data.display().to_string())
            );
        }
        model.ended_early.as_ref().map_or(Ok(()), |early| match &report.unreached {
            Some(cause) => Err(client::blamed(early.failure(), cause)),
            None => Err(early.failure()),
        })
    }
}
