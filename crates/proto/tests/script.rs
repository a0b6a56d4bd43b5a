//! What a test lets become of the frames that sites send in a federation in memory.

use veilsum_testkit::prelude::*;

/// `fate` is told of every frame that a site sends, and how many of this kind the site has sent with it.
pub(crate) fn of_sites(w: &mut World, mut fate: impl FnMut(&Wire<'_>, usize) -> Verdict + 'static) {
    let mut sent: BTreeMap<(u16, Kind), usize> = BTreeMap::new();
    w.hook = Box::new(move |wire| {
        if !wire.from_site {
            return Verdict::Pass;
        }
        let nth = sent.entry((wire.site, wire.kind)).or_default();
        *nth += 1;
        fate(wire, *nth)
    });
}

/// In place of every frame of this kind these sites send what `change` makes of it, under their true signatures.
pub(crate) fn signs(
    w: &mut World,
    sites: &[u16],
    kind: Kind,
    mut change: impl FnMut(u16, &Parts) -> Vec<u8> + 'static,
) {
    let keys: BTreeMap<u16, _> = sites.iter().map(|site| (*site, w.identity(*site))).collect();
    let session = w.session();
    w.hook = Box::new(move |wire| match keys.get(&wire.site) {
        Some(key) if wire.from_site && wire.kind == kind => {
            let p = parts(wire.bytes);
            Verdict::Replace(raw(key, &session, kind, &p.context, &change(wire.site, &p)))
        }
        _ => Verdict::Pass,
    });
}

/// The same shares, of which each is another one.
pub(crate) fn wrong_shares(p: &Parts) -> Vec<u8> {
    let mut shares = p.shares();
    shares.iter_mut().for_each(|share| share[0] ^= 1);
    codec::encode(&shares)
}
