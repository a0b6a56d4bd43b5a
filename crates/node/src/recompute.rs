//! A run from its folder: somebody who holds roster, plan, result, model and openings recomputes every total and every centre
//! ([RES-8]).

use veilsum_proto::{
    identity::from_hex,
    message::{Kind, kind_of},
    recompute::Documents,
    suite::Hash,
};

use crate::{
    agreed::Federation,
    error::Failure,
    model::Model,
    question::Question,
    replay::Replay,
    signed::{About, Checked, model_digest},
    store::{Said, openings_from_bytes},
};

/// Bytes of the openings of a long run.
pub const MAX_OPENINGS: usize = 512 << 20;

/// What came out.
pub struct Recomputed {
    /// Totals that were recomputed from what the sites signed.
    pub totals: u32,
    /// Whether the result, its indices and weights too, was recomputed from them: not where the intermediary judged.
    pub result: bool,
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::input(why, "take result.json, model.json and openings.bin of one run, as it wrote them")
}

/// Recomputes a result, whose signatures were checked, from the bytes of its model and its openings.
///
/// # Errors
/// A [`Failure`] with what does not hold.
pub fn recompute(agreed: &Federation, checked: &Checked, model: &[u8], openings: &[u8]) -> Result<Recomputed, Failure> {
    let said = openings_from_bytes(openings).ok_or_else(|| refused("its openings cannot be read to their end"))?;
    let (replay, totals) = follow(agreed, &said)?;
    let model_of = Model::from_bytes(model).map_err(|why| refused(format!("its model {why}")))?;
    let own = replay.result(&model_of, true).map_err(|why| refused(format!("its model does not follow: {why}")))?;
    let run = checked.fields.get("run").and_then(|run| run.as_str()).and_then(from_hex);
    let run = run.and_then(|run| run.try_into().ok()).map(Hash);
    if let Some(own) = &own {
        let about = About { roster: &agreed.roster, terms: &agreed.terms };
        let known = serde_json::to_value(own).unwrap_or_default();
        let domain = agreed.work.domain()?;
        let follows = about.follows(&checked.text, &about.fields(known, run.as_ref(), model), &domain);
        follows.map_err(|why| refused(format!("its result does not follow from its openings: {why}")))?;
    }
    Ok(Recomputed { totals, result: own.is_some() })
}

/// Whether a model's file is the one that a result names.
///
/// # Errors
/// A [`Failure`] without the file's name.
pub fn check_model(checked: &Checked, model: &[u8]) -> Result<(), Failure> {
    let said = checked.fields.get("model_digest").and_then(|digest| digest.as_str());
    if said == Some(&model_digest(model).to_string()) {
        return Ok(());
    }
    Err(refused("the model is not the one of this result: a byte was changed, or it is of another run"))
}

/// Recomputes all totals from what their sites signed, and follows the method with them: its copy at the end, and how many.
fn follow(federation: &Federation, said: &[Said]) -> Result<(Replay, u32), Failure> {
    let documents = Documents { roster: &federation.roster, terms: &federation.terms };
    let mut replay = Replay::new(federation.clone())?;
    let (mut asked, mut last, mut totals): (Option<&Said>, Option<(Hash, Hash)>, u32) = (None, None, 0);
    for said in said {
        let at = |why: String| refused(format!("its openings, after {totals} totals: {why}"));
        // Whoever has the file may have changed it: a signature that does not hold accuses nobody.
        let unsound = |_: veilsum_proto::Error| {
            at("a frame is not what the coordinator signed for this run: the file was changed, or is another run's"
                .into())
        };
        if kind_of(&said.frame) == Some(Kind::Ask) {
            let question = documents.asked(&said.directory, &said.frame).map_err(unsound)?.ask;
            if let Some((context, name)) = &last
                && (question.previous_context != *context || question.previous_total != *name)
            {
                return Err(at("a question does not follow the opening before it [OPN-7]".into()));
            }
            let parsed =
                Question::from_bytes(&question.query).map_err(|_| at("what was asked is no question".into()))?;
            replay.ask(&parsed).map_err(|why| at(format!("{why} [OPN-9]")))?;
            asked = Some(said);
            continue;
        }
        let ask = asked.take().ok_or_else(|| at("an opening has no question before it".into()))?;
        if ask.directory != said.directory {
            return Err(at("an opening stands under another deck than its question".into()));
        }
        let opened = documents.opened(&ask.directory, &ask.frame, &said.frame).map_err(unsound)?;
        let opened = opened.map_err(|blame| at(format!("{} [{}]", blame.what, blame.rule)))?;
        replay.session.take(&opened.values, &opened.cohort)?;
        last = Some((opened.asked.context, opened.name));
        totals += 1;
    }
    Ok((replay, totals))
}
