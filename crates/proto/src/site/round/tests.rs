//! What a site looks at before it takes a set of sites for the next total's.

use crate::{
    codec,
    message::{self, Ask, Kind, Survivors, round_context},
    roster::PartyId,
    suite::Hash,
    testing::{Kit, Verdict, World},
};

/// [REL-4]: a cohort, or survivors, without one site of a block is refused whichever block it is, also where that leaves more
/// sites than the threshold; and the site goes on once it is shown the whole ones.
#[test]
fn sets_of_sites_that_cut_a_block_are_refused_where_they_arrive() {
    for (kind, gone) in [(Kind::Ask, 8), (Kind::Ask, 1), (Kind::Survivors, 8), (Kind::Survivors, 1)] {
        let mut w = World::new(Kit::with_blocks(9, 3, |t| (t.colluders, t.threshold) = (1, 6)), 1);
        w.answer = Box::new(|_, asked| vec![1; asked.words]);
        let (identity, roster, terms) = (w.kit.identities[0].clone(), w.kit.roster.clone(), w.kit.terms.clone());
        let session = message::session(&terms.hash(), &roster.hash(), PartyId::Coordinator);
        let (mut directory, mut cut) = (Hash::default(), false);
        w.hook = Box::new(move |wire| {
            let context = Hash(wire.bytes[8..40].try_into().unwrap());
            if wire.kind == Kind::AcceptDirectory {
                directory = context;
            }
            if cut || wire.from_site || (wire.site, wire.kind) != (0, kind) {
                return Verdict::Pass;
            }
            cut = true;
            let frame = message::verify(wire.bytes, &session, &roster.coordinator.key, &String::new).unwrap();
            let decoded = codec::decode::<Ask>("Ask", frame.rest, wire.bytes.len());
            Verdict::Replace(match (kind, decoded) {
                (Kind::Ask, Ok(mut ask)) => {
                    ask.cohort.retain(|site| *site != gone);
                    message::frame(&identity, &session, kind, &round_context(&session, &directory, &ask), &ask)
                }
                _ => {
                    let mut named: Survivors = frame.decode("Survivors").unwrap();
                    let at = named.alive.binary_search(&gone).unwrap();
                    named.alive.remove(at);
                    named.inputs.remove(at);
                    message::frame(&identity, &session, kind, &context, &named)
                }
            })
        });
        assert_eq!(w.ask(b"q", 2).unwrap().1.len(), 9, "{kind:?} without {gone}");
        let told: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule().map(|rule| rule.0))).collect();
        assert_eq!(told, [(0, Some("REL-4"))], "{kind:?} without {gone}: {:?}", w.site_errors);
    }
}
