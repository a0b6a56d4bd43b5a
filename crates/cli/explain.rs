//! `veilsum explain`: what an exit code means, or a rule that an error names.

use clap::Args;
use serde_json::json;
use veilsum_node::error::{Code, Failure, after_refusal};
use veilsum_proto::Rule;

use crate::{
    screen::folded,
    verb::{self, Verb},
};

/// Where the rules stand.
const SPECIFICATION: [&str; 3] = [
    include_str!("../../protocol/spec.md"),
    include_str!("../../protocol/door.md"),
    include_str!("../../protocol/documents.md"),
];

/// Of each exit code: what it means, whose fault that is, and what to do.
const EXITS: [(u8, &str, &str, &str); 13] = [
    (0, "done; of a service also: told to stop (SIGTERM)", "nobody's", "nothing"),
    (Code::Internal as u8, "a defect of veilsum", "veilsum's", "please report it, with the log"),
    (
        Code::Usage as u8,
        "wrong arguments: an option that does not exist, or a value that cannot be used, alone or beside the others",
        "of whoever typed the command",
        "see --help of the command",
    ),
    (
        Code::Input as u8,
        "a file of data, a roster, a plan or a key that cannot be used",
        "the error names the file; nothing of it was changed",
        "do what stands behind `next:`; `veilsum check` looks at all files at once",
    ),
    (
        Code::Network as u8,
        "a peer cannot be reached, or the port cannot be opened",
        "a network's, or of whoever runs the other end",
        "`veilsum check` tries every way; start the same command again",
    ),
    (
        Code::Peer as u8,
        "a peer broke a rule of the protocol; it is named",
        "the named party's: a defect there, or a lie",
        "speak to its operator before you run again; keep the log",
    ),
    (
        Code::Quorum as u8,
        "too few sites are left; nothing was revealed beyond the totals of earlier rounds",
        "of the sites that are missing, or their networks",
        "run again when they are there",
    ),
    (
        Code::Policy as u8,
        "a site's policy refuses, or its operator has yet to agree",
        "nobody's: the site keeps what it promised",
        "its own screen says why; agree on another plan, or agree to this one (`veilsum agree`)",
    ),
    (
        Code::Denied as u8,
        "the other side ended the run or did not let us in",
        "the error says why",
        "ask the other side's operator",
    ),
    (
        Code::Early as u8,
        "the run ended early; the result that is out so far was written",
        "of whoever the error names",
        "use the result, or run again",
    ),
    (
        Code::Storage as u8,
        "nothing can be written here for now: with space, the same command goes on",
        "this machine's disk",
        "make room; nothing is lost",
    ),
    (Code::Interrupted as u8, "interrupted", "of whoever pressed the keys", "start the same command again"),
    (
        Code::Terminated as u8,
        "told to stop (SIGTERM) before it was done",
        "of whoever stopped it",
        "start the same command again",
    ),
];

/// The exit codes, a line each, as `--help-all` has them.
pub(crate) fn exit_codes() -> String {
    let lines = EXITS.iter().map(|(code, means, ..)| format!("  {code:<5}{means}\n"));
    format!(
        "Exit codes (`veilsum explain CODE` says more):\n{}Errors: `error: …` and `next: …` on standard error; --json: \
         {{\"error\":{{\"code\":3,\"message\":\"…\",\"next\":\"…\"}}}} on standard output",
        lines.collect::<String>()
    )
}

/// Say what an exit code means, or a rule that an error names
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// An exit code, such as 7, or what an error has in brackets, such as POL-8 [default: all exit codes]
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl Verb for ExplainArgs {
    /// Prints the page.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let Some(asked) = &self.code else {
            return verb::print(json, &json!({ "exit_codes": EXITS.map(|(code, ..)| code) }), &exit_codes());
        };
        let bare = asked.trim_matches(['[', ']']).to_uppercase();
        let exit = EXITS.iter().find(|(code, ..)| code.to_string() == bare);
        let (name, means, whose, next) = match (exit, bare.parse::<Rule>().ok()) {
            (Some((code, means, whose, next)), _) => {
                (format!("exit code {code}"), (*means).to_owned(), Some(*whose), *next)
            }
            (None, Some(rule)) => {
                let refuses = ["POL-", "THR-", "JRN-"].iter().any(|of| rule.name().starts_with(of));
                let next = if refuses { after_refusal(rule) } else { "do what the error says behind `next:`" };
                (format!("rule {rule}"), text_of(rule), None, next)
            }
            (None, None) => {
                let what = format!("{asked}: neither an exit code nor a rule of the specification");
                return Err(Failure::usage(what, "see all exit codes: veilsum explain"));
            }
        };
        let whose = whose.map(|whose| format!("\nwhose fault: {whose}"));
        let text = format!("{name}: {means}{}\nnext: {next}", whose.unwrap_or_default());
        let lines: Vec<String> = text.lines().map(|line| folded(line, 2)).collect();
        verb::print(json, &json!({ "code": name, "means": means, "next": next }), &lines.join("\n"))
    }
}

/// What the specification says of a rule, up to the next one.
fn text_of(rule: Rule) -> String {
    let marker = format!("**[{rule}]**");
    let behind = SPECIFICATION.iter().find_map(|part| part.split_once(&*marker)).map_or("", |(_, behind)| behind);
    let end = ["\n\n**[", "\n#", "\n```"].iter().filter_map(|end| behind.find(end)).min().unwrap_or(behind.len());
    let text = behind[..end].replace("\n* ", "\n\n* ");
    let points = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    points.filter(|point| !point.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code that a command ends with has a page, and every rule its text.
    #[test]
    fn every_code_has_a_page() {
        use Code::*;
        for code in
            [Internal, Usage, Input, Network, Peer, Quorum, Policy, Denied, Early, Storage, Interrupted, Terminated]
        {
            assert!(EXITS.iter().any(|(known, ..)| *known == code as u8), "{code:?}");
        }
        for rule in Rule::ALL {
            let text = text_of(*rule);
            assert!(text.len() > 40 && !text.contains("**["), "{rule}: {text}");
        }
    }
}
