//! A party that writes a result, and signs it ([RES-2], [RES-4]).

use std::sync::Arc;

use serde_json::Value;
use veilsum_proto::{identity::Identity, roster::PartyId, suite::Hash};

use crate::{
    agreed::Federation,
    error::Failure,
    model::Model,
    result::RunResult,
    signed::{About, Signed},
};

/// Who writes a result, and under which documents it signs it ([RES-4]).
#[derive(Clone)]
pub struct Writer {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// What was agreed on.
    pub federation: Federation,
}

/// The bytes of a model's file; none where there is no model.
pub fn model_bytes(model: Option<&Model>) -> Vec<u8> {
    model.map_or_else(Vec::new, Model::to_bytes)
}

impl Writer {
    /// The documents of a result.
    pub fn about(&self) -> About<'_> {
        About { roster: &self.federation.roster, terms: &self.federation.terms }
    }

    fn id(&self) -> Result<PartyId, Failure> {
        self.federation.whoami(&self.identity)
    }

    /// Signs what all parties sign of a result: the coordinator, before it tells the sites ([RES-2]).
    ///
    /// # Errors
    /// A [`Failure`] where this party is none of the roster's.
    pub fn sign(&self, result: &RunResult, run: &Hash) -> Result<Signed, Failure> {
        let fields = self.about().fields(result.to_json(), Some(run), &model_bytes(result.model.as_ref()));
        let mut signed = Signed::new(&fields);
        signed.sign(&self.about(), &self.identity, self.id()?, None);
        Ok(signed)
    }

    /// The bytes of `result.json`: of a text that others signed too, where there is one, else of what this party `knows` itself.
    ///
    /// # Errors
    /// As [`Writer::sign`].
    pub fn file(&self, known: Value, model: &[u8], signed: Option<&(Hash, Signed)>) -> Result<Vec<u8>, Failure> {
        let (about, id) = (self.about(), self.id()?);
        let fields = about.fields(known, signed.map(|(run, _)| run), model);
        match signed {
            Some((_, signed)) => signed.file(&about, &fields, &self.identity, id),
            None => Signed::new(&fields).file(&about, &fields, &self.identity, id),
        }
    }
}
