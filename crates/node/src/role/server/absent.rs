//! Sites that are not there: who, since when, and why.

use veilsum_proto::{aggregator::Loss, roster::PartyId};

use super::Run;
use crate::{
    app_messages::clean,
    cost::some_of,
    error::{Code, Failure},
    result::Departure,
};

/// Too few sites: what took each of those away that were here.
pub(crate) fn with_reasons<T: AsRef<str>>(failure: Failure, reasons: &[T]) -> Failure {
    if failure.code != Code::Quorum || reasons.is_empty() {
        return failure;
    }
    Failure { message: format!("{}; {}", failure.message, some_of(reasons, "; ")), ..failure }
}

impl Run<'_> {
    /// Too few sites for a first deck: who is not there, by name.
    pub(super) fn with_the_absent(&self, failure: Failure) -> Failure {
        let sites = 0..self.config.party.federation.roster.sites.len() as u16;
        let absent: Vec<u16> = sites.filter(|site| !self.hub.is_connected(PartyId::Site(*site))).collect();
        if failure.code != Code::Quorum || absent.is_empty() {
            return failure;
        }
        let awaited = |site: u16| self.hub.awaited(PartyId::Site(site)).to_string();
        let absent: Vec<String> = absent.into_iter().map(awaited).collect();
        Failure { message: format!("{}; not there: {}", failure.message, some_of(&absent, ", ")), ..failure }
    }

    /// Too few sites: what took each of those away that were here, so that nobody has to search for it above.
    pub(super) fn with_the_reasons(&mut self, failure: Failure) -> Failure {
        self.said_why |= failure.code == Code::Quorum;
        let of_sites = self.told.iter().filter(|(site, _)| site.is_some());
        with_reasons(failure, &of_sites.map(|(_, line)| line.as_str()).collect::<Vec<_>>())
    }

    /// Notes why a site went, where it is not noted yet.
    pub(super) fn note(&mut self, site: u16, why: &Loss) {
        let told = match (why, self.hub.absence(PartyId::Site(site))) {
            (Loss::Gone | Loss::Silent, Some(heard)) => format!("{why}; {heard}"),
            _ => why.to_string(),
        };
        self.reasons.entry(site).or_insert_with(|| clean(&told));
    }

    /// What is known of each departure, for the result. A process before this one may have known more.
    pub(super) fn give_reasons(&self, departures: &mut [Departure]) {
        let sites = &self.config.party.federation.roster.sites;
        let unknown = || self.hub.begun.then(|| "it went before this coordinator was started again".to_owned());
        for departure in departures {
            let site = sites.iter().position(|member| member.name == departure.site).unwrap_or_default() as u16;
            // Who never took part went before nobody.
            let noted = self.reasons.get(&site).cloned().or_else(|| unknown().filter(|_| departure.question > 1));
            departure.why = noted.or_else(|| self.hub.absence(PartyId::Site(site)).map(|why| clean(&why)));
        }
    }
}
