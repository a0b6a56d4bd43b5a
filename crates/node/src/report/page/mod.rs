//! The report of a run: one page for a browser and for paper, from the result and what lies beside it.
//!
//! It says no more than the result does, so whoever may have the one may have the other. The page with a site's own rows is another
//! one: it is made only where it is asked for, says on its top that it must not leave, and only its owner can read it.

mod centres;
mod cite;
mod course;
mod described;
mod found;
mod own;
mod parties;
mod reported;

use std::path::{Path, PathBuf};

use veilsum_charts::Page;

use crate::{
    agreed::Federation,
    app_messages::clean,
    error::Failure,
    files::{self, Existing},
};

pub use own::Own;
pub use reported::Reported;

/// The page.
pub fn page(all: &Reported, own: Option<&Own>) -> Page {
    let told = &all.told;
    let name = title(all);
    let mut page = Page::new(&match own {
        Some(_) => format!("{name}, with this site's own rows"),
        None => name,
    });
    if own.is_some() {
        page.beware(own::BEWARE);
    }
    if let Some(Err(why)) = &all.holds {
        page.beware(&format!("Do not use this page. The result that it was made from does not hold: {why}."));
    }
    if let Some(why) = all.unchecked {
        page.beware(&format!(
            "Whether the result is as it was signed could not be checked when this page was made: {why}. veilsum verify says what can be said of it."
        ));
    }
    page.says(&all.says());
    if let Some(beware) = found::beware(told) {
        page.beware(&beware);
    }
    page.list([found::why(all), found::how_good(told)].into_iter().flatten());
    let doubts: Vec<String> =
        told.warnings.iter().chain(told.findings.iter().map(|finding| &finding.text)).map(|text| clean(text)).collect();
    if !doubts.is_empty() {
        page.part("What to doubt").list(&doubts);
    }
    if told.description.is_some() {
        described::columns(&mut page, told);
    } else {
        let columns = centres::Columns::of(all);
        if let Some(own) = own {
            own::section(&mut page, all, own, &columns);
        }
        centres::at_a_glance(&mut page, told, &columns);
        centres::centres(&mut page, all, &columns, own.is_none());
        course::choice_of_k(&mut page, told);
        course::convergence(&mut page, told);
    }
    page.part("To cite").paragraph(&cite::methods(all));
    page.aside("What stands below was needed for it, and is folded up.");
    page.folded("All numbers", |page| course::in_numbers(page, all));
    page.folded("Parties and traffic", |page| {
        parties::who(page, all);
        parties::traffic(page, told);
    });
    page.folded("Privacy", |page| parties::privacy(page, all));
    page.folded("Documents and signatures", |page| parties::documents(page, all));
    page
}

/// The federation, what was computed, and the day of the file.
fn title(all: &Reported) -> String {
    let told = &all.told;
    let roster = all.federation.as_ref().map(|of| of.roster.name.clone());
    let federation = roster.or_else(|| all.text("federation")).unwrap_or("A run".to_owned());
    let what = match told.method.as_str() {
        "describe" => "columns described".to_owned(),
        method => format!("{} with K = {}", clean(method), told.k),
    };
    let day = all.day.as_ref().map_or_else(String::new, |day| format!(", {day}"));
    format!("{federation}: {what}{day}")
}

/// Writes the report at the end of a run beside its result, and says where. A run has its result whether or not there is a page of it: what
/// stands against it is logged.
pub fn kept_beside(result: &Path, federation: &Federation) -> Option<PathBuf> {
    let written = Reported::read(result).and_then(|all| all.under(federation.clone())).and_then(|all| {
        let place = all.place();
        files::write_atomic(&place, page(&all, None).html().as_bytes())?;
        Ok(place)
    });
    written
        .map_err(|failure| tracing::warn!("the report was not written: {}; veilsum report makes it", failure.message))
        .ok()
}

/// Writes a page with a site's own rows: only its owner can read it.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn write_own(all: &Reported, own: &Own, place: &Path) -> Result<(), Failure> {
    files::write_private(place, page(all, Some(own)).html().as_bytes(), Existing::Replace)
}

#[cfg(test)]
mod tests;
