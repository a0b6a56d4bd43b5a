//! What a site looks at before it takes a set of sites for the next total's.

use veilsum_proto::{Rule, codec, message::Kind, suite::Hash};
use veilsum_testkit::{
    federation::{Kit, Verdict, World},
    wire::{Ask, Survivors, parts, raw, round_context},
};

/// [REL-4]: a cohort, or survivors, without one site of a block is refused whichever block it is, also where that leaves more
/// sites than the threshold; and the site goes on once it is shown the whole ones.
#[test]
fn rel_4_sets_of_sites_that_cut_a_block_are_refused_where_they_arrive() {
    for (kind, gone) in [(Kind::Ask, 8), (Kind::Ask, 1), (Kind::Survivors, 8), (Kind::Survivors, 1)] {
        let mut w = World::new(Kit::with_blocks(9, 3, |t| (t.colluders, t.threshold) = (1, 6)), 1);
        w.answer = Box::new(|_, asked| vec![1; asked.words]);
        let (identity, session) = (w.kit.identities[0].clone(), w.session());
        let (mut directory, mut cut) = (Hash::default(), false);
        w.hook = Box::new(move |wire| {
            let frame = parts(wire.bytes);
            if wire.kind == Kind::AcceptDirectory {
                directory = frame.context;
            }
            if cut || wire.from_site || (wire.site, wire.kind) != (0, kind) {
                return Verdict::Pass;
            }
            cut = true;
            Verdict::Replace(if kind == Kind::Ask {
                let mut ask: Ask = frame.read();
                ask.cohort.retain(|site| *site != gone);
                raw(&identity, &session, kind, &round_context(&session, &directory, &ask), &codec::encode(&ask))
            } else {
                let mut named: Survivors = frame.read();
                let at = named.alive.binary_search(&gone).unwrap();
                named.alive.remove(at);
                named.inputs.remove(at);
                raw(&identity, &session, kind, &frame.context, &codec::encode(&named))
            })
        });
        assert_eq!(w.ask(b"q", 2).unwrap().1.len(), 9, "{kind:?} without {gone}");
        let told: Vec<_> = w.site_errors.iter().map(|(site, e)| (*site, e.rule())).collect();
        assert_eq!(told, [(0, Some(Rule::Rel4))], "{kind:?} without {gone}: {:?}", w.site_errors);
    }
}
