//! The coordinator's last word: a model, and a result that this site signs where it came to the same.

use std::sync::Arc;

use veilsum_proto::{
    message::{Disclosure, Kind},
    roster::PartyId,
};

use super::SiteSession;
use crate::{
    app_messages::{self, Countersigned, Finished, clean},
    error::{Code, Failure},
    model::Model,
    role::{dial::Line, run_state::RunState},
    signed::Signed,
};

impl SiteSession {
    /// Takes the coordinator's last word: its model, and the result if it follows from what was opened to this site.
    ///
    /// # Errors
    /// A [`Failure`] if one of them cannot be used.
    pub(super) async fn last_word(&mut self, finished: &Finished, line: &mut Line) -> Result<(), Failure> {
        let name = self.name();
        let model = self.read_model(&finished.model).map_err(|why| {
            let what = format!("{name} sent an unusable model: {}", clean(&why));
            Failure::new(Code::Peer, what, "speak to its operator; the centres of the rounds are in nobody's file")
        })?;
        if let Some(run) = &self.run {
            if run.replay().left_behind(&model) {
                let what = format!(
                    "{name} ended the run on totals that this site is not in: its result cannot be checked here, and was not taken"
                );
                let next = "this is so where this site came after the first total, or was lost; ask its operator and the other sites whether \
                            it was";
                return Err(Failure::new(Code::Denied, what, next));
            }
            self.report.result = run.replay().result(&model, false).map_err(|why| {
                let what = format!("{name} sent a result that does not follow: {why}");
                Failure::new(Code::Peer, what, "do not use it; speak to its operator and to the other sites")
            })?;
        }
        self.report.model = Some(model);
        self.countersign(finished, line).await
    }

    /// Signs the coordinator's result where it is what this site came to itself, and sends the signature ([RES-3]). Its ledger knows
    /// of it first. A result that does not follow is not signed: this site then keeps its own.
    pub(super) async fn countersign(&mut self, finished: &Finished, line: &mut Line) -> Result<(), Failure> {
        let openings = self.run.as_ref().and_then(RunState::openings);
        let (Some(own), Some(model), Some(run)) = (&mut self.report.result, &self.report.model, self.site.run()) else {
            return Ok(());
        };
        own.openings = openings.map(Into::into);
        if finished.result.is_empty() {
            return Ok(());
        }
        let writer = self.config.party.writer();
        let about = writer.about();
        let known = serde_json::to_value(&*own).unwrap_or_default();
        let ours = about.fields(known, Some(&run), &model.to_bytes());
        let signed = Signed::from_coordinator(&about, &finished.result, &finished.signature);
        let signed = signed.ok_or("it is not signed".to_owned());
        let domain = self.config.party.federation.work.domain()?;
        let mut signed = match signed.and_then(|signed| about.follows(&signed.text, &ours, &domain).map(|()| signed)) {
            Ok(signed) => signed,
            Err(why) => {
                let name = self.config.party.name_of(self.aggregator);
                tracing::warn!("{name} sent a result that this site does not sign: {}", clean(&why));
                return Ok(());
            }
        };
        let ledger = self.keeper.with(|ledger| ledger.head()).link;
        let site = PartyId::Site(self.site.number());
        own.signed = Some((run, signed.clone()));
        let signature = signed.sign(&about, &writer.identity, site, Some(&ledger));
        let message = Countersigned { ledger, signature };
        let frame = app_messages::frame(&writer.identity, &self.session, Kind::Countersigned, &message);
        let frame = match self.write_down(Arc::new(frame), Disclosure::Acknowledgement) {
            // The result is this site's all the same, and is written once there is space.
            Err(failure) if failure.code == Code::Storage => {
                tracing::warn!("{}; this site takes the result and does not sign it", failure.message);
                return Ok(());
            }
            written => written?,
        };
        if let Some(own) = &mut self.report.result {
            own.signed = Some((run, signed));
        }
        self.report.traffic.sent(&self.config.party.name_of(site), frame.bytes());
        line.send(&frame).await;
        Ok(())
    }

    /// A model that is sound in itself and is one of this very plan.
    pub(super) fn read_model(&self, bytes: &[u8]) -> Result<Model, String> {
        let mut model: Model = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        model.check()?;
        if let Some(early) = &mut model.ended_early {
            early.reason = clean(&early.reason);
            if !early
                .lost
                .iter()
                .chain(&early.refused)
                .all(|lost| self.config.party.federation.roster.members().any(|member| member.name == *lost))
            {
                return Err("it names somebody who is not on the roster".into());
            }
        }
        let centres = model.working_centres()?;
        let ours =
            Model::new(&self.config.party.federation.work, &self.config.party.federation.terms.hash(), &centres, None)
                .map_err(|e| e.to_string())?;
        let same = (&ours.method, ours.m.to_bits(), &ours.columns, &ours.categorical, ours.scaling, &ours.plan)
            == (&model.method, model.m.to_bits(), &model.columns, &model.categorical, model.scaling, &model.plan);
        if !same || model.standardisation.is_some() != self.config.party.federation.work.recipe.prepares() {
            return Err("it is not one of this plan".into());
        }
        self.config.party.federation.work.admits_centres(&centres)?;
        Ok(model)
    }
}
