//! What is asked of whoever sits at a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use veilsum_node::{
    documents::{Fingerprint, Offered, WORDS},
    error::{Code, Failure},
};

/// How often somebody may type what another one reads aloud.
pub(crate) const TRIES: usize = 3;

/// Whether somebody sits at a terminal who can be asked.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for the words, without showing them: what has to be typed is what somebody else says, not what stands there.
///
/// # Errors
/// A [`Failure`] where nobody sits at a terminal, or what was typed is no fingerprint.
pub(crate) fn ask(offered: &Offered<'_>) -> Result<Fingerprint, Failure> {
    if somebody_is_there() {
        return ask_there(offered, &mut io::stdin().lock(), &mut io::stderr());
    }
    Err(offered.unheard())
}

fn ask_there(offered: &Offered<'_>, from: &mut impl BufRead, to: &mut impl Write) -> Result<Fingerprint, Failure> {
    let roster = offered.roster;
    let mut question = format!(
        "{} is a federation of {} sites, with {} as coordinator and {} as intermediary, and this party has not agreed to this \
         roster.\nIn a call with the operators of all parties, on numbers that did not come with the roster, the coordinator's reads its \
         {WORDS} words. Everybody compares them, in another window: veilsum verify roster.toml\nOnce all have said that they are the same, \
         type the words: ",
        roster.name,
        roster.sites.len(),
        roster.coordinator.name,
        roster.intermediary.name
    );
    for left in (0..TRIES).rev() {
        let line = typed(&question, from, to)?;
        question = match Fingerprint::parse(&line) {
            Ok(words) if left == 0 || words.is_of(&roster.hash()) => return Ok(words),
            Ok(_) => "This roster has other words. Listen once more, and type them: ".to_owned(),
            // Nobody types any more.
            Err(why) if left == 0 || line.is_empty() => {
                return Err(Failure::input(why, "type all words as they are read to you"));
            }
            Err(why) => format!("{why}. Type all words once more: "),
        };
    }
    Err(offered.unheard())
}

/// The line that is typed to a question.
pub(crate) fn typed(question: &str, from: &mut impl BufRead, to: &mut impl Write) -> Result<String, Failure> {
    let mut line = String::new();
    let read = to.write_all(question.as_bytes()).and_then(|()| to.flush()).and_then(|()| from.read_line(&mut line));
    read.map_err(|e| Failure::new(Code::Internal, format!("the terminal cannot be read ({e})"), "try again"))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use veilsum_node::documents::roster_fingerprint;
    use veilsum_proto::identity::Identity;

    /// [ROS-8]: what is typed is compared, and the question does not give it away.
    #[test]
    fn the_question_on_a_terminal_does_not_show_the_answer() {
        let identity = Identity::from_seed(&[3; 32]);
        let mut roster = crate::terms::roster_of_nobody(&["a", "b", "c"].map(str::to_owned)).unwrap();
        roster.coordinator.name = "hub".into();
        let (file, key) = (Path::new("roster.toml"), Path::new("a.key"));
        let offered = Offered { file, roster: &roster, key, identity: &identity };
        let mut shown = Vec::new();
        let typed = roster_fingerprint(&roster.hash()) + "\n";
        let answer = ask_there(&offered, &mut typed.as_bytes(), &mut shown).unwrap();
        assert!(answer.is_of(&roster.hash()));
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("3 sites") && shown.contains("hub") && !shown.contains(typed.trim()), "{shown}");
        for bad in ["yes\n", "y\n", "\n", "", &typed[..20]] {
            assert!(ask_there(&offered, &mut bad.as_bytes(), &mut Vec::new()).is_err(), "{bad:?}");
        }
        let other = roster_fingerprint(&veilsum_proto::suite::Hash([1; 32])) + "\n";
        let corrected = other.clone() + "yes\n" + &typed;
        let answer = ask_there(&offered, &mut corrected.as_bytes(), &mut Vec::new()).unwrap();
        assert!(answer.is_of(&roster.hash()), "asked again, in place");
        let answer = ask_there(&offered, &mut other.repeat(TRIES).as_bytes(), &mut Vec::new()).unwrap();
        assert!(offered.agree(&answer).unwrap_err().message.contains("[ROS-8]"));
    }
}
