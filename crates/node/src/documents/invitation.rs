//! `vs1:…`: an invitation as one line of text ([JOI-2]), and `va1:…`: the answer to it where no network is between the two ([JOI-8]).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use veilsum_proto::joining::{Invitation, Reply};
use zeroize::Zeroizing;

use crate::error::Failure;

/// What the line begins with; the number is the version of what follows.
const PREFIX: &str = "vs1:";
/// What an answer begins with.
const ANSWER: &str = "va1:";
/// Characters of a line at most: three names and two secrets.
const MAX_LINE: usize = 1024;
const NEXT: &str = "copy the whole line from `vs1:` on once more; if it was whole, this program and the coordinator's are not of the same release: \
                    bring both to it, and ask for a new invitation";

/// The line of an invitation. It holds the invitation's secret.
pub fn invitation_line(invitation: &Invitation) -> Zeroizing<String> {
    let bytes = Zeroizing::new(invitation.to_bytes());
    Zeroizing::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes[..])))
}

/// The invitation of a line. White space around it is no part of it.
///
/// # Errors
/// A [`Failure`] that says what is wrong and quotes nothing of the line but one character.
pub fn parse_invitation(line: &str) -> Result<Invitation, Failure> {
    let bad = |why: String| Failure::input(why, NEXT);
    let line = line.trim_matches([' ', '\t', '\r', '\n']);
    if line.len() > MAX_LINE {
        return Err(bad(format!("this is no invitation: it has {} bytes, and one has {MAX_LINE} at most", line.len())));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
    if let Some((at, c)) = line.chars().enumerate().find(|(_, c)| !plain(*c)) {
        let what = if c.is_ascii_graphic() { format!("the character {c:?}") } else { unseen(c) };
        return Err(bad(format!("the invitation holds {what} at place {}, which does not belong there", at + 1)));
    }
    let text = behind(PREFIX, "invitation", line)?;
    let text = text.ok_or_else(|| bad("this is no invitation: it does not begin with `vs1:`".into()))?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| bad("the invitation is damaged: it was cut, or a character is another".into()))?;
    let invitation = Invitation::from_bytes(&bytes).map_err(bad)?;
    super::check_address(&invitation.address)?;
    Ok(invitation)
}

/// The line of an answer. It holds the invitation's secret.
pub fn answer_line(reply: &Reply) -> Zeroizing<String> {
    let bytes = Zeroizing::new(reply.to_bytes());
    Zeroizing::new(format!("{ANSWER}{}", URL_SAFE_NO_PAD.encode(&bytes[..])))
}

/// The answer of a line; nothing where it is none.
///
/// # Errors
/// A [`Failure`] where it is a damaged one.
pub fn parse_answer(line: &str) -> Result<Option<Reply>, Failure> {
    let Some(text) = behind(ANSWER, "answer", line.trim())? else { return Ok(None) };
    let bytes = URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new).ok();
    let reply = bytes.and_then(|bytes| Reply::from_bytes(&bytes)).ok_or_else(|| {
        let next = "copy the whole line from `va1:` on once more, as `veilsum join LINE --offline` printed it";
        Failure::input("the answer is damaged: it was cut, or a character is another", next)
    })?;
    super::check_address(&reply.address)?;
    Ok(Some(reply))
}

/// What follows a prefix; nothing where the line begins otherwise.
///
/// # Errors
/// A [`Failure`] where only the number of its version is another.
fn behind<'a>(prefix: &str, what: &str, line: &'a str) -> Result<Option<&'a str>, Failure> {
    if let Some(text) = line.strip_prefix(prefix) {
        return Ok(Some(text));
    }
    let known = prefix.trim_end_matches(':');
    let version = line.strip_prefix(&known[..2]).and_then(|rest| rest.split_once(':')).map(|(version, _)| version);
    match version.filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
        Some(n) => Err(Failure::input(
            format!("the {what} is of version {}{n}, and this program knows {known}", &known[..2]),
            "bring this program and the coordinator's to the same release",
        )),
        None => Ok(None),
    }
}

fn unseen(c: char) -> String {
    match c {
        ' ' | '\n' | '\r' | '\t' => "a space or a line break".into(),
        c => format!("a character that is invisible or not of this alphabet (U+{:04X})", u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veilsum_proto::{
        identity::Identity,
        joining::{Role, Token},
    };

    use super::*;

    fn line() -> String {
        let invitation = Invitation {
            federation: "three-hospitals".into(),
            party: "hospital-a".into(),
            role: Role::Site,
            address: "hub.example.org:443".into(),
            coordinator: Identity::from_seed(&[1; 32]).public(),
            expires: 1_800_000_000,
            token: Token::generate(&mut crate::random::system_rng()),
        };
        invitation_line(&invitation).to_string()
    }

    fn refused(line: &str) -> String {
        parse_invitation(line).err().unwrap_or_else(|| panic!("{line:?}")).message
    }

    /// [JOI-2]: what a copy may lose or win on its way is noticed, in words.
    #[test]
    fn a_line_survives_copying_or_says_why_not() {
        let line = line();
        assert!(line.len() < 200 && line.starts_with("vs1:"), "{}", line.len());
        let read = parse_invitation(&format!("  {line}\r\n")).unwrap();
        assert_eq!((read.party.as_str(), read.address.as_str()), ("hospital-a", "hub.example.org:443"));
        let at = |n: usize, c: &str| format!("{}{c}{}", &line[..n], &line[n..]);
        for invisible in ["\u{200b}", "\u{feff}", "\u{ad}", "\u{202e}", "\u{0}"] {
            for n in [0, 4, 40, line.len()] {
                assert!(refused(&at(n, invisible)).contains("invisible"), "{invisible:?} at {n}");
            }
        }
        assert!(refused(&at(76, "\r\n")).contains("line break"));
        assert!(refused(&at(30, "=")).contains("'='"));
        for n in 4..line.len() {
            let was = line.as_bytes()[n];
            let other = if was == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &line[..n], &line[n + 1..]);
            assert!(refused(&changed).contains("damaged"), "{n}");
            assert!(refused(&line[..n]).contains("damaged"), "{n}");
        }
        assert!(refused(&line.replacen("vs1:", "vs2:", 1)).contains("vs2"));
        assert!(refused(&line.replacen("vs1:", "VS1:", 1)).contains("does not begin"));
        assert!(parse_answer("va2:AAAA").err().is_some_and(|e| e.message.contains("va2")));
        assert!(refused("hospital-a").contains("does not begin"));
        assert!(refused(&line.repeat(9)).contains("at most"));
    }

    proptest! {
        /// [JOI-2]: whatever is pasted, and whatever a line holds, there is an answer.
        #[test]
        fn no_line_makes_reading_panic(text in ".{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let line = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes));
            let refused = [&text, &line].map(|line| parse_invitation(line).is_err());
            prop_assert_eq!(refused, [true, true]);
            let _ = Invitation::from_bytes(&bytes);
        }
    }
}
