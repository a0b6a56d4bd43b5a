//! The live page: how a party stands, for a browser on the same machine. The server writes all of it, charts too, so that it is whole
//! without a script; a few lines of script put the newest in the place of the old.

use veilsum_charts::{
    Chart, Page, Plot,
    page::style,
    text::{escaped, number},
};
use veilsum_node::{
    method_session::Judged,
    role::{
        progress::size,
        status::{Course, Peer, Phase, Status},
    },
};

use crate::screen::ago;

/// What the party says of itself, nothing if none runs, or why it cannot be asked.
pub(super) type Seen = Result<Option<Status>, String>;

/// Parties that the table shows before the rest is folded up.
const SHOWN: usize = 40;

/// Puts the newest `main` in the place of the old, once a second; leaves it where somebody marks text, and keeps what is unfolded.
const SCRIPT: &str = "(function(){var m=document.querySelector('main'),n=document.getElementById('note');\
function ask(){var c=new AbortController(),t=setTimeout(function(){c.abort()},4000);\
fetch('/main',{cache:'no-store',signal:c.signal}).then(function(r){if(!r.ok)throw 0;return r.text()}).then(function(h){\
n.textContent='';if(!getSelection().isCollapsed)return;var o=[];m.querySelectorAll('details[open]').forEach(function(d){o.push(d.id)});\
m.innerHTML=h;o.forEach(function(i){var d=document.getElementById(i);if(d)d.open=true})})\
.catch(function(){n.textContent='This page gets no answer now. Below is the last that it showed.'})\
.then(function(){clearTimeout(t);setTimeout(ask,1000)})}setTimeout(ask,1000)})();";

/// What the page may do: its own style and script, by a word that is another each time, and requests to itself.
pub(super) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
}

/// The whole page.
pub(super) fn page(seen: &Seen, nonce: &str) -> String {
    let status = seen.as_ref().ok().and_then(Option::as_ref);
    let title = status.map_or("Veilsum".into(), |status| format!("{} {}", status.party, status.role));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title><noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>\n<style nonce=\"{nonce}\">{}#note:empty{{display:none}}</style>\
         </head>\n<body><p id=\"note\" role=\"alert\" class=\"says\"></p><main>\n{}</main><footer>Shown on this machine alone. The page asks \
         nobody else for anything.</footer><script nonce=\"{nonce}\">{SCRIPT}</script></body></html>\n",
        escaped(title.trim()),
        style(),
        main(seen),
    )
}

/// What changes.
pub(super) fn main(seen: &Seen) -> String {
    let nobody = |says: &str| {
        let mut page = Page::new("Veilsum");
        page.says(says);
        page.body().to_owned()
    };
    let status = match seen {
        Ok(Some(status)) => status,
        Ok(None) => return nobody("No party runs here now. Once it starts, it is shown here."),
        Err(why) => return nobody(&format!("The party cannot be asked: {why}.")),
    };
    let role = if status.role.is_empty() { String::new() } else { format!(", {}", status.role) };
    let mut page = Page::new(&format!("{}{role}", status.party));
    page.says(&sentence(status));
    facts(status, &mut page);
    course(status, &mut page);
    indices(status, &mut page);
    parties(status, &mut page);
    page.body().to_owned()
}

fn sentence(status: &Status) -> String {
    let of = |number: u32, most: u32| format!("question {number} of at most {most}");
    match (&status.phase, &status.open, &status.round) {
        (Phase::Lobby | Phase::StandingBy, ..) => "No run is going on.".into(),
        (Phase::Ended, _, Some(round)) => format!("The run has ended, after {}.", of(round.number, round.of)),
        (Phase::Ended, ..) => "The run has ended.".into(),
        (_, Some(open), last) => {
            let most = last.as_ref().map_or(open.number, |round| round.of.max(open.number));
            format!("Running: {} is open, because {}.", of(open.number, most), open.why)
        }
        (Phase::Waiting, ..) => "Waiting for the others.".into(),
        (Phase::Running, None, Some(round)) => format!("Running: {} is answered.", of(round.number, round.of)),
        (Phase::Running, None, None) => "Running: keys are exchanged.".into(),
    }
}

fn facts(status: &Status, page: &mut Page) {
    let since = |at: u64| ago(status.now.saturating_sub(at));
    let answers = status.open.as_ref().and_then(|open| open.answers);
    let round = status.round.as_ref();
    let trouble = status.trouble.as_ref();
    let known = [
        ("federation", status.federation.clone()),
        ("plan", status.plan.clone()),
        ("this process runs for", Some(since(status.started))),
        ("this state lasts for", Some(since(status.since))),
        ("sites that have answered", answers.map(|(arrived, of)| format!("{arrived} of {of}"))),
        ("sites in the last total", round.and_then(|round| round.sites).map(|sites| sites.to_string())),
        ("last question answered", round.map(|round| format!("{} ago", since(round.at)))),
        ("centres moved by", status.shift().map(|shift| format!("{shift:.1e}"))),
        ("time left, at most", status.left.map(ago)),
        ("sent and received", Some(format!("{} and {}", size(status.bytes.0), size(status.bytes.1)))),
        ("last trouble", trouble.map(|trouble| format!("{} ago: {}", since(trouble.at), trouble.what))),
    ];
    page.table(&["what", "now"], known.into_iter().filter_map(|(what, value)| Some([what.to_owned(), value?])));
}

fn course(status: &Status, page: &mut Page) {
    let line = |course: &Course| {
        let rests = if course.rests { ", at rest" } else { "" };
        let points = course.shifts.iter().filter(|(_, shift)| *shift > 0.0);
        (format!("K = {}{rests}", course.k), points.map(|(round, shift)| (f64::from(*round), *shift)).collect())
    };
    let lines: Vec<(String, Vec<(f64, f64)>)> = status.courses.iter().map(line).collect();
    if lines.iter().any(|(_, points)| !points.is_empty()) {
        page.part("How far the centres moved");
        page.chart(
            &Chart::new("Shift of the centres in each round", "round", "shift", Plot::Lines(lines)).by_powers(),
            "",
        );
    }
}

fn indices(status: &Status, page: &mut Page) {
    let mut names: Vec<&String> = status.curve.iter().flat_map(|judged| judged.indices.keys()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return;
    }
    page.part("How well the clusters fit");
    let readable = |name: &str| name.replace('_', " ");
    if status.curve.len() > 1 {
        let chart = |name: &&String| {
            let points = status.curve.iter().filter_map(|judged| Some((judged.k.into(), *judged.indices.get(*name)?)));
            let plot = Plot::Lines(vec![(String::new(), points.collect())]);
            let chosen = status.curve.iter().find(|judged| judged.chosen);
            let chart = Chart::new(readable(name), "K", "", plot);
            chosen.map_or(chart.clone(), |judged| chart.note(judged.k.into(), "chosen"))
        };
        page.charts(&names.iter().map(chart).collect::<Vec<_>>());
    }
    let chosen = |judged: &Judged| format!("K = {}{}", judged.k, if judged.chosen { ", chosen" } else { "" });
    let heads: Vec<String> = status.curve.iter().map(chosen).collect();
    let columns: Vec<&str> = std::iter::once("index").chain(heads.iter().map(String::as_str)).collect();
    let value =
        |judged: &Judged, name: &str| judged.indices.get(name).map_or("not defined".into(), |value| number(*value));
    page.table(
        &columns,
        names.iter().map(|name| {
            std::iter::once(readable(name))
                .chain(status.curve.iter().map(|judged| value(judged, name)))
                .collect::<Vec<_>>()
        }),
    );
}

fn parties(status: &Status, page: &mut Page) {
    if status.parties.is_empty() {
        return;
    }
    let well = |peer: &&Peer| peer.over.is_some() && peer.lost.is_none();
    let here = status.parties.iter().filter(|peer| peer.over.is_some()).count();
    page.part("Who is connected").paragraph(&format!("{here} of {}.", status.parties.len()));
    let since = |at: u64| ago(status.now.saturating_sub(at));
    let row = |peer: &Peer| {
        let state = match (&peer.over, peer.since) {
            (Some(_), at) => format!("for {}", since(at.unwrap_or(status.now))),
            (None, Some(at)) => format!("away for {}", since(at)),
            (None, None) => "never connected".into(),
        };
        let heard = peer.lost.as_ref().map(|why| format!("out of the run: {why}")).or_else(|| peer.heard.clone());
        [peer.party.clone(), peer.over.clone().unwrap_or_else(|| "–".into()), state, heard.unwrap_or_default()]
    };
    // Nothing is to be said of parties that are all well.
    let quiet = status.parties.iter().all(|peer| peer.lost.is_none() && peer.heard.is_none());
    let columns = &["party", "over", "connected", "remarks"][..if quiet { 3 } else { 4 }];
    if status.parties.len() <= SHOWN {
        page.table(columns, status.parties.iter().map(row));
        return;
    }
    // Of many those first that somebody may have to do something about.
    let (fine, others): (Vec<&Peer>, Vec<&Peer>) = status.parties.iter().partition(well);
    if !others.is_empty() {
        page.table(columns, others.iter().take(SHOWN).map(|peer| row(peer)));
    }
    let rest: Vec<_> = others.iter().skip(SHOWN).chain(&fine).map(|peer| row(peer)).collect();
    page.paragraph(&format!("{} more:", rest.len())).folded("The others", |page| {
        page.table(columns, rest);
    });
}

#[cfg(test)]
mod tests {
    use veilsum_node::{
        method_session::{Judged, Moved},
        role::progress::{Awaited, Progress},
    };

    use super::*;

    const NASTY: &str = "<script>alert('x')</script>\"><img src=x onerror=y>&amp;\u{202e}\u{1b}[2J";

    fn status(sites: usize) -> Status {
        let mut status = Status::new("lead", "coordinator");
        let others = std::iter::once(NASTY.to_owned()).chain((1..sites).map(|i| format!("site-{i}"))).collect();
        let curve = |k: u32| Judged { k, chosen: k == 3, indices: [(NASTY.to_owned(), 0.5 / f64::from(k))].into() };
        let moved = |round: u32| Progress::Moved {
            clusters: (2..5)
                .map(|k| Moved { k, round, shift: 10f64.powi(-(round as i32)), rests: round > 3 })
                .collect(),
        };
        let begins = Progress::Begins {
            party: NASTY.into(),
            role: "coordinator",
            federation: NASTY.into(),
            plan: NASTY.into(),
            others,
            of: 31,
        };
        let mut events = vec![begins, Progress::Came { party: "site-1".into(), over: "QUIC" }];
        events.extend((1..5).flat_map(|number| {
            [
                Progress::Round { number, of: 31, what: "Fuzzy", sites },
                moved(number),
                Progress::Bytes { sent: 5, received: 6 },
            ]
        }));
        events.push(Progress::Left { party: NASTY.into(), why: NASTY.into() });
        events.push(Progress::Lost { site: NASTY.into(), why: NASTY.into() });
        events.push(Progress::Judged { curve: (2..5).map(curve).collect() });
        events.push(Progress::Asked { number: 5, of: 31, what: "Fuzzy", why: "the centres have not come to rest" });
        events.iter().for_each(|event| status.fold(event, 7));
        status
    }

    /// Whatever a name or a reason is, it opens no tag, ends no attribute and moves no cursor.
    #[test]
    fn names_and_reasons_are_text() {
        let html = page(&Ok(Some(status(3))), "0123");
        for bad in ["<script>alert", "<img", "onerror=y>", "\u{202e}", "\u{1b}"] {
            assert!(!html.contains(bad), "{bad:?} in {html}");
        }
        let known: Vec<&str> = "html head meta title noscript style body main p h1 h2 div table thead tbody tr th td figure figcaption svg g path \
                                rect line text tspan polyline polygon circle ellipse use defs symbol clipPath span ul li footer script details summary !doctype"
            .split_whitespace()
            .collect();
        for tag in html.split('<').skip(1) {
            let tag = tag.trim_start_matches('/');
            let name = tag.split(|c: char| !c.is_ascii_alphanumeric() && c != '!').next().unwrap_or_default();
            assert!(known.contains(&name), "<{tag}");
        }
        // One script and one style, both ours.
        assert_eq!(html.matches("<script").count() + html.matches("<style").count(), 2);
    }

    #[test]
    fn it_asks_nobody_else_and_needs_no_script() {
        let html = page(&Ok(Some(status(3))), "0123");
        for bad in ["http:", "https:", "src=", "href=", "url(", "@import", "<link", "style=", "javascript:", "eval("] {
            // A name holds it, as text.
            let html = html.replace("img src=x", "").replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("<noscript><meta http-equiv=\"refresh\""));
        let policy = policy("0123");
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
    }

    #[test]
    fn it_shows_rounds_the_course_of_the_centres_and_the_indices() {
        let html = page(&Ok(Some(status(3))), "0123");
        for told in [
            "question 5 of at most 31 is open",
            "K = 4, at rest",
            "K = 3, chosen",
            "QUIC",
            "1.0e-4",
            "How far the centres moved",
        ] {
            assert!(html.contains(told), "{told}: {html}");
        }
        assert!(html.contains("Shift of the centres in each round"), "{html}");
        assert!(html.contains("remarks"), "somebody has gone: {html}");
        let mut well = Status::new("lead", "coordinator");
        let begins = Progress::Begins {
            party: "lead".into(),
            role: "coordinator",
            federation: "f".into(),
            plan: "p".into(),
            others: vec!["site-1".into()],
            of: 31,
        };
        [begins, Progress::Came { party: "site-1".into(), over: "QUIC" }].iter().for_each(|event| well.fold(event, 7));
        assert!(!page(&Ok(Some(well.clone())), "0").contains("remarks"), "an empty column");
        let awaited = Awaited { party: "site-1".into(), at: None, heard: "connected 9 s ago".into() };
        well.fold(&Progress::Waiting { parties: vec![awaited], seconds: 9 }, 16);
        assert!(page(&Ok(Some(well.clone())), "0").contains("waited for: it has not answered yet"));
        // Before anything has happened, too.
        assert!(page(&Ok(Some(Status::new("", ""))), "0").contains("No run is going on"));
    }

    /// A thousand sites are one page of ordinary size, with those first that are not there.
    #[test]
    fn many_sites_are_folded_up() {
        let html = page(&Ok(Some(status(1000))), "0123");
        assert!(html.len() < 1 << 18, "{}", html.len());
        assert!(html.contains("960 more:") && html.contains("<summary>The others</summary>"), "{}", &html[..2000]);
    }
}
