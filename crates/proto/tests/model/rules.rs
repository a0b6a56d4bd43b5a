//! What a site does in one slot, after section 9.2 of the specification, and the same with one rule taken away.

/// Sites as bits.
pub(crate) type Set = u16;

pub(crate) fn everybody(n: usize) -> Set {
    ((1u32 << n) - 1) as Set
}

pub(crate) fn has(set: Set, site: usize) -> bool {
    set >> site & 1 == 1
}

pub(crate) fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |u| has(set, *u))
}

pub(crate) fn size(set: Set) -> usize {
    set.count_ones() as usize
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule that is not kept.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            pub(crate) const ALL: &[Fault] = &[$(Fault::$name,)*];
        }
    };
}

faults! {
    None,
    /// Seeds and shares leave in one answer, without a certificate.
    MergedReply,
    /// [SUR-2], [SUR-4]: after it signed survivors a site takes any others, also such that are not among them.
    BackToOthers,
    /// [SUR-4]: after it signed survivors a site takes the whole cohort, and releases.
    BackToCohort,
    /// [UNM-2], [CON-2]: a signature counts for whatever set it is shown.
    AnySignature,
    /// [UNM-2]: a certificate may be for a set that the site signed before its last.
    EarlierSet,
    /// [UNM-2]: t − 1 signatures are enough.
    ShortCertificate,
    /// [CON-2]: after its shares a site takes smaller survivors and gives seeds.
    SeedsAfterShares,
    /// [UNM-3]: shares of the whole cohort leave, whatever survivors were certified.
    SharesOfAll,
    /// [CON-3]: seeds towards the survivors leave too.
    SeedsOfAll,
    /// [SUR-3]: any number of survivors is enough.
    NoFloor,
    /// [UNM-2]: signers need not be among the survivors they sign.
    OutsideSigners,
    /// [SUR-2]: a site takes survivors that it is not among.
    WithoutItself,
    /// [SUR-2], [UNM-2]: both of the two before: a site signs survivors that it is not among, and that counts.
    Strangers,
    /// A variant: a site signs first, and gives seeds only against the certificate, with its shares.
    CertifiedSeeds,
}

/// Who takes part, under which rules. The last `c` sites collude.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) n: usize,
    pub(crate) c: usize,
    pub(crate) t: usize,
    /// The floor of cohort and survivors.
    pub(crate) least: usize,
    pub(crate) fault: Fault,
    /// With whom each site shares masks; everybody, in this version of the protocol.
    pub(crate) graph: Vec<Set>,
    /// The cohort of each question that the coordinator may put in this slot.
    pub(crate) questions: Vec<Set>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    Waiting,
    Masked,
    Checked(Set),
    Released(Set),
}

/// One honest site: its stage, and all that ever left it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local {
    pub(crate) stage: Stage,
    /// The question that it answered.
    pub(crate) question: Option<u8>,
    /// The sets it signed, ascending.
    pub(crate) signed: Vec<Set>,
    /// The sites towards which it gave its seed.
    pub(crate) seeds: Set,
    /// The sites of whose self-masks it gave its share.
    pub(crate) shares: Set,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Message {
    /// The site's application answers at once.
    Ask(u8),
    Survivors(Set),
    /// With as many signatures as the coordinator has.
    Certificate(Set),
}

impl Local {
    pub(crate) fn new() -> Local {
        Local { stage: Stage::Waiting, question: None, signed: Vec::new(), seeds: 0, shares: 0 }
    }
}

impl Setting {
    /// The protocol as it is, one question to everybody.
    pub(crate) fn new(n: usize, c: usize, t: usize) -> Setting {
        let all = everybody(n);
        let graph = (0..n).map(|u| all & !(1 << u)).collect();
        Setting { n, c, t, least: t, fault: Fault::None, graph, questions: vec![all] }
    }

    pub(crate) fn with(self, fault: Fault) -> Setting {
        Setting { fault, ..self }
    }

    /// Each site shares masks with its `k` nearest on each side of a ring only.
    pub(crate) fn on_a_ring(mut self, k: usize) -> Setting {
        let near = |u: usize| (1..=k).flat_map(move |d| [(u + d) % self.n, (u + self.n - d) % self.n]);
        self.graph = (0..self.n).map(|u| near(u).fold(0, |set, v| set | 1 << v)).collect();
        self
    }

    /// As many different questions as `ids` over every cohort that is large enough.
    pub(crate) fn with_questions(mut self, ids: usize) -> Setting {
        let cohorts: Vec<Set> = (0..=everybody(self.n)).rev().filter(|a| size(*a) >= self.least).collect();
        self.questions = (0..ids).flat_map(|_| cohorts.clone()).collect();
        self
    }

    pub(crate) fn honest(&self) -> usize {
        self.n - self.c
    }

    /// What becomes of a site by a message, or nothing where it refuses. The same state again means that it repeats
    /// itself. `certified`: whether the coordinator can show enough signatures for the set of a certificate.
    pub(crate) fn answer(&self, me: usize, site: &Local, message: Message, certified: bool) -> Option<Local> {
        match message {
            Message::Ask(question) => self.ask(me, site, question),
            Message::Survivors(alive) => self.survivors(me, site, alive),
            Message::Certificate(alive) => self.certificate(me, site, alive, certified),
        }
    }

    fn ask(&self, me: usize, site: &Local, question: u8) -> Option<Local> {
        let cohort = self.questions[usize::from(question)];
        if site.stage != Stage::Waiting {
            return (site.question == Some(question)).then(|| site.clone());
        }
        let fits = has(cohort, me) && size(cohort) >= self.least;
        fits.then(|| Local { stage: Stage::Masked, question: Some(question), ..site.clone() })
    }

    fn cohort(&self, site: &Local) -> Set {
        site.question.map_or(0, |q| self.questions[usize::from(q)])
    }

    fn survivors(&self, me: usize, site: &Local, alive: Set) -> Option<Local> {
        let cohort = self.cohort(site);
        let within = match site.stage {
            Stage::Waiting => return None,
            Stage::Masked => cohort,
            Stage::Checked(_) if self.fault == Fault::BackToOthers && alive != cohort => cohort,
            Stage::Checked(_) if self.fault == Fault::BackToCohort && alive == cohort => cohort,
            Stage::Checked(last) => last,
            Stage::Released(last) if alive == last => return Some(site.clone()),
            Stage::Released(last) if self.fault == Fault::SeedsAfterShares => last,
            Stage::Released(_) => return None,
        };
        let least = if self.fault == Fault::NoFloor { 1 } else { self.least };
        let itself = has(alive, me) || matches!(self.fault, Fault::WithoutItself | Fault::Strangers);
        if alive & !within != 0 || !itself || size(alive) < least {
            return None;
        }
        if alive == cohort {
            return Some(self.release(me, site, alive));
        }
        let mut next = site.clone();
        if let Err(place) = next.signed.binary_search(&alive) {
            next.signed.insert(place, alive);
        }
        next.stage = match site.stage {
            Stage::Released(_) => Stage::Released(alive),
            _ => Stage::Checked(alive),
        };
        next.seeds |= match self.fault {
            Fault::SeedsOfAll => cohort & self.graph[me],
            Fault::CertifiedSeeds => 0,
            _ => cohort & !alive & self.graph[me],
        };
        Some(if self.fault == Fault::MergedReply { self.release(me, &next, alive) } else { next })
    }

    fn certificate(&self, me: usize, site: &Local, alive: Set, certified: bool) -> Option<Local> {
        match site.stage {
            Stage::Released(last) if alive == last => return Some(site.clone()),
            Stage::Checked(last) if alive == last => {}
            Stage::Checked(_) if self.fault == Fault::EarlierSet && site.signed.contains(&alive) => {}
            _ => return None,
        }
        certified.then(|| self.release(me, site, alive))
    }

    fn release(&self, me: usize, site: &Local, alive: Set) -> Local {
        let cohort = self.cohort(site);
        let shares = if self.fault == Fault::SharesOfAll { cohort } else { alive };
        let late = if self.fault == Fault::CertifiedSeeds { cohort & !alive & self.graph[me] } else { 0 };
        let (seeds, shares) = (site.seeds | late, site.shares | shares);
        Local { stage: Stage::Released(alive), seeds, shares, ..site.clone() }
    }

    /// Whether the coordinator can show a certificate for `alive` to a site that was put `question`. Colluders sign
    /// whatever is wanted.
    pub(crate) fn certified<'a>(&self, question: Option<u8>, alive: Set, site: impl Fn(usize) -> &'a Local) -> bool {
        let signed = |u: &usize| {
            *u >= self.honest() || {
                let signer = site(*u);
                let any = self.fault == Fault::AnySignature && !signer.signed.is_empty();
                signer.question == question && (any || signer.signed.binary_search(&alive).is_ok())
            }
        };
        let outside = matches!(self.fault, Fault::OutsideSigners | Fault::Strangers);
        let may_sign = if outside { everybody(self.n) } else { alive };
        let enough = self.t - usize::from(self.fault == Fault::ShortCertificate);
        members(may_sign).filter(signed).count() >= enough
    }
}
