use veilsum_cluster::Scaling;
use veilsum_proto::plan::Terms;

use super::*;
use crate::tests as testing;

fn kit() -> (Roster, Terms, Vec<Identity>) {
    let (roster, identities) = testing::kit(3);
    let terms = testing::terms(&roster, &testing::work(2));
    (roster, terms, identities)
}

fn known() -> Value {
    json!({ "centres": [[0.1, 1.0 / 3.0], [-0.0, 1e-300]], "cohort": ["site-1", "site-2", "site-3"], "questions": 7,
        "n_total": 120, "traffic": {}, "warnings": ["a \"quoted\" one\nin two lines, ü"], "converged": true })
}

/// A file of the coordinator that two of three sites signed.
fn file(about: &About<'_>, identities: &[Identity]) -> Vec<u8> {
    let fields = about.fields(known(), Some(&Hash([5; 32])), b"model");
    let mut signed = Signed::new(&fields);
    signed.sign(about, &identities[0], PartyId::Coordinator, None);
    for site in [2u16, 0] {
        let ledger = Hash([site as u8 + 3; 32]);
        let mut own = Signed { by: Vec::new(), ..signed.clone() };
        let signature = own.sign(about, &identities[usize::from(site) + 2], PartyId::Site(site), Some(&ledger));
        let message = Countersigned { ledger, signature };
        assert!(signed.take(about, site, &message));
        assert!(!signed.take(about, site, &message), "once");
        assert!(!signed.take(about, 1, &message), "another site's");
    }
    signed.file(about, &fields, &identities[0], PartyId::Coordinator).unwrap()
}

/// [RES-5], [RES-6]: who signed is named, and who did not, and what the writer alone answers for.
#[test]
fn res_6_a_file_says_who_stands_for_what() {
    let (roster, terms, identities) = kit();
    let about = About { roster: &roster, terms: &terms };
    let bytes = file(&about, &identities);
    let checked = about.check(&bytes).unwrap();
    assert!(checked.coordinator);
    assert_eq!(checked.written_by, "hub");
    let sites: Vec<&str> = checked.sites.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((sites, checked.silent), (vec!["site-1", "site-3"], vec!["site-2".to_owned()]));
    assert_eq!(checked.own, ["n_total", "software", "traffic", "warnings"]);
    assert!(!checked.text.contains("\"n_total\"") && checked.text.contains("roster_hash"));
    assert_eq!(checked.fields["release"]["totals"], 7);
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value["centres"], known()["centres"], "it is JSON like any other");
}

/// [RES-5]: no byte of a file can be changed, dropped or added: 10,000 random changes.
#[test]
fn res_5_no_byte_of_a_file_can_be_changed() {
    let (roster, terms, identities) = kit();
    let about = About { roster: &roster, terms: &terms };
    let bytes = file(&about, &identities);
    let mut stream = veilsum_cluster::random::Stream::new(18, b"veilsum signed tests v1 ");
    let mut draw = |below: usize| stream.below(below as u64) as usize;
    for _ in 0..10_000 {
        let (mut changed, at) = (bytes.clone(), draw(bytes.len()));
        changed[at] ^= 1 + draw(255) as u8;
        assert!(about.check(&changed).is_err(), "byte {at} became {:#x}", changed[at]);
    }
    for at in 0..bytes.len() {
        assert!(about.check(&bytes[..at]).is_err(), "cut at {at}");
        // White space, capitals of hexadecimal digits: other bytes for the same meaning.
        let mut spaced = bytes.clone();
        spaced.insert(at, b' ');
        assert!(about.check(&spaced).is_err(), "a space at {at}");
        let mut capital = bytes.clone();
        capital[at].make_ascii_uppercase();
        assert!(capital == bytes || about.check(&capital).is_err(), "a capital at {at}");
    }
    assert!(about.check(&[&bytes[..], b"\n"].concat()).is_err());
}

/// [RES-4]: signatures can be neither added nor taken away by somebody else.
#[test]
fn res_4_the_list_of_signatures_is_the_writers() {
    let (roster, terms, identities) = kit();
    let about = About { roster: &roster, terms: &terms };
    let text = String::from_utf8(file(&about, &identities)).unwrap();
    let from = text.find("      {\n        \"ledger\"").unwrap();
    let to = from + text[from..].find("\n      },\n").unwrap() + 10;
    let without = format!("{}{}", &text[..from], &text[to..]);
    let why = about.check(without.as_bytes()).unwrap_err();
    assert!(why.message.contains("hub"), "{why}");
    assert!(!why.advice.is_empty());
}

/// [RES-1]: another version, other documents, no signatures: each is refused with what to do.
#[test]
fn res_1_what_is_no_result_of_these_documents_is_refused() {
    let (roster, terms, identities) = kit();
    let about = About { roster: &roster, terms: &terms };
    let bytes = file(&about, &identities);
    let other = Terms { min_total_rows: 101, ..terms.clone() };
    let with = |name: &str, value: Value| {
        let mut fields = about.fields(known(), None, b"model");
        fields.insert(name.into(), value);
        Signed::new(&fields).file(&about, &fields, &identities[0], PartyId::Coordinator).unwrap()
    };
    let (others, _) = testing::kit(4);
    for (about, bytes, says) in [
        (About { terms: &other, ..about }, bytes.clone(), "--plan"),
        (About { roster: &others, ..about }, bytes, "--roster"),
        (about, with("format", json!("veilsum-result/2")), "version"),
        (about, with("finding", json!(1)), "\"finding\""),
        (about, b"{\"centres\": []}".to_vec(), "version"),
        (about, b"{}".to_vec(), "no result"),
        (about, b"\xff".to_vec(), "UTF-8"),
    ] {
        let failure = about.check(&bytes).unwrap_err();
        assert!(failure.to_string().contains(says) && !failure.advice.is_empty(), "{says}: {failure}");
    }
}

/// [RES-3]: a site signs what it came to itself, to what sums of doubles differ by between machines, and nothing else.
#[test]
fn res_3_a_text_that_does_not_follow_is_not_signed() {
    let (roster, terms, _) = kit();
    let about = About { roster: &roster, terms: &terms };
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
    let own = about.fields(known(), Some(&Hash([5; 32])), b"model");
    let said = |change: &dyn Fn(&mut Fields)| {
        let mut fields = own.clone();
        change(&mut fields);
        about.follows(&Signed::new(&fields).text, &own, &domain)
    };
    said(&|_| {}).unwrap();
    said(&|f| f["centres"][0][0] = json!(0.1 + 1e-13)).unwrap();
    said(&|f| f["n_total"] = json!(7)).unwrap();
    assert!(said(&|f| f["centres"][0][0] = json!(0.1 + 1e-6)).unwrap_err().contains("centres"));
    assert!(said(&|f| f["centres"][0][0] = Value::Null).is_err(), "nothing is drowned in a run without noise");
    assert!(said(&|f| f["model_digest"] = json!("00")).unwrap_err().contains("model_digest"));
    assert!(said(&|f| drop(f.insert("finding".into(), json!("all is well")))).unwrap_err().contains("finding"));
    assert!(said(&|f| drop(f.remove("converged"))).unwrap_err().contains("converged"));
    assert!(about.follows("{}", &own, &domain).is_err(), "not as it is printed");
}
