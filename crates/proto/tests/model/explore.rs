//! Visits every state that a transcript of one slot can lead to.
//!
//! A site's next state depends on its own and on which certificates can be made, so each honest site's states and moves
//! are listed once, and a state of the federation is one number a site. States that differ only by a renaming of honest
//! sites, of colluders and of questions are visited once, where the rules do not tell them apart.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    hash::{BuildHasherDefault, Hasher},
};

use super::{
    knowledge::{View, sums},
    rules::{Local, Message, Set, Setting, everybody, has, members},
};

pub(crate) struct Edge {
    pub(crate) message: Message,
    pub(crate) next: u16,
}

pub(crate) struct Node {
    pub(crate) local: Local,
    view: View,
    pub(crate) edges: Vec<Edge>,
}

/// The states and moves of every honest site; 0 is where each begins.
pub(crate) struct Machine {
    pub(crate) setting: Setting,
    pub(crate) sites: Vec<Vec<Node>>,
    /// Bits of a site's number in a packed state.
    width: u32,
}

/// How many states there are, and how many stand for themselves and their renamings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Explored {
    pub(crate) visited: u64,
    pub(crate) with_renamings: u64,
    /// Most sums learnt in one state.
    pub(crate) most: usize,
    /// Fewest honest sites in a learnt sum.
    pub(crate) fewest: Option<usize>,
}

/// What a state's number becomes at which site under one renaming.
pub(crate) type Renaming = Vec<Vec<u64>>;

impl Machine {
    pub(crate) fn new(setting: Setting) -> Machine {
        let sites: Vec<Vec<Node>> = (0..setting.honest()).map(|me| list(&setting, me)).collect();
        let width = sites.iter().map(|nodes| nodes.len().next_power_of_two().ilog2()).max().unwrap_or(0);
        assert!(width <= 16 && width * sites.len() as u32 <= u64::BITS, "a state fits a word");
        Machine { setting, sites, width }
    }

    fn number(&self, packed: u64, site: usize) -> usize {
        (packed >> (self.width * site as u32)) as usize & ((1 << self.width) - 1)
    }

    pub(crate) fn node(&self, packed: u64, site: usize) -> &Node {
        &self.sites[site][self.number(packed, site)]
    }

    fn sums(&self, packed: u64) -> Vec<Set> {
        sums(&self.setting, &self.views(packed))
    }

    pub(crate) fn views(&self, packed: u64) -> Vec<View> {
        (0..self.sites.len()).map(|u| self.node(packed, u).view).collect()
    }

    /// Every move that is possible now: the site, the message and the state after it.
    pub(crate) fn moves<'a>(&'a self, packed: u64) -> impl Iterator<Item = (usize, Message, u64)> + 'a {
        let possible = move |site: usize, edge: &Edge| match edge.message {
            Message::Certificate(alive) => {
                let question = self.node(packed, site).local.question;
                self.setting.certified(question, alive, |u| &self.node(packed, u).local)
            }
            _ => true,
        };
        (0..self.sites.len()).flat_map(move |site| {
            let shift = self.width * site as u32;
            let others = packed & !(((1 << self.width) - 1) << shift);
            let edges = self.node(packed, site).edges.iter().filter(move |edge| possible(site, edge));
            edges.map(move |edge| (site, edge.message, others | u64::from(edge.next) << shift))
        })
    }

    /// Visits every reachable state once, up to renaming where `rename` says so, until `visit` says stop.
    pub(crate) fn explore(&self, rename: bool, mut visit: impl FnMut(u64, &[Set])) -> Explored {
        let group = if rename { self.renamings() } else { Vec::new() };
        let mut out = Explored::default();
        let mut seen: HashSet<u64, BuildHasherDefault<Mix>> = HashSet::default();
        seen.insert(0);
        let mut left = vec![0u64];
        while let Some(packed) = left.pop() {
            let sums = self.sums(packed);
            out.visited += 1;
            out.with_renamings += self.renamed(&group, packed);
            out.most = out.most.max(sums.len());
            let smallest = sums.iter().map(|s| s.count_ones() as usize).min();
            out.fewest = out.fewest.into_iter().chain(smallest).min();
            visit(packed, &sums);
            for (_, _, next) in self.moves(packed) {
                let next = self.least_name(&group, next);
                if seen.insert(next) {
                    left.push(next);
                }
            }
        }
        out
    }

    pub(crate) fn apply(&self, renaming: &Renaming, packed: u64) -> u64 {
        renaming.iter().enumerate().fold(0, |key, (site, to)| key | to[self.number(packed, site)])
    }

    fn least_name(&self, group: &[Renaming], packed: u64) -> u64 {
        group.iter().map(|r| self.apply(r, packed)).min().unwrap_or(packed)
    }

    /// How many states are renamings of this one.
    fn renamed(&self, group: &[Renaming], packed: u64) -> u64 {
        let fixed = group.iter().filter(|r| self.apply(r, packed) == packed).count();
        group.len().checked_div(fixed).unwrap_or(1) as u64
    }

    /// Every renaming of honest sites among themselves, of colluders, and of questions over one cohort, as tables.
    pub(crate) fn renamings(&self) -> Vec<Renaming> {
        let (n, honest) = (self.setting.n, self.setting.honest());
        let index: Vec<HashMap<&Local, usize>> =
            self.sites.iter().map(|nodes| nodes.iter().enumerate().map(|(k, n)| (&n.local, k)).collect()).collect();
        let cohorts: BTreeSet<Set> = self.setting.questions.iter().copied().collect();
        let ids = self.setting.questions.len() / cohorts.len();
        let mut out = Vec::new();
        for own in permutations(honest) {
            for rest in permutations(n - honest) {
                let names: Vec<usize> = own.iter().copied().chain(rest.iter().map(|v| honest + v)).collect();
                let graph = &self.setting.graph;
                if (0..n).any(|u| rename_set(graph[u], &names) != graph[names[u]]) {
                    continue;
                }
                for of_ids in permutations(ids) {
                    let question = |q: u8| self.renamed_question(q, &names, &of_ids);
                    let table = (0..honest).map(|u| {
                        let to = names[u];
                        let place = |node: &Node| index[to][&rename(&node.local, &names, question)] as u64;
                        self.sites[u].iter().map(|node| place(node) << (self.width * to as u32)).collect()
                    });
                    out.push(table.collect());
                }
            }
        }
        out
    }

    /// Questions stand in `Setting` by id, and under each id by cohort.
    fn renamed_question(&self, question: u8, names: &[usize], of_ids: &[usize]) -> u8 {
        let questions = &self.setting.questions;
        let each = questions.len() / of_ids.len();
        let (id, cohort) = (usize::from(question) / each, rename_set(questions[usize::from(question)], names));
        let place = questions[..each].iter().position(|c| *c == cohort).expect("every cohort of a size is asked");
        (of_ids[id] * each + place) as u8
    }

    /// The shortest transcript that ends in a state whose sums are `wanted`.
    pub(crate) fn find(&self, wanted: impl Fn(&[Set]) -> bool) -> Option<Attack<'_>> {
        let group = self.renamings();
        let mut before: HashMap<u64, u64> = HashMap::new();
        let mut left = VecDeque::from([0u64]);
        while let Some(packed) = left.pop_front() {
            if wanted(&self.sums(packed)) {
                let path = std::iter::successors(Some(packed), |at| before.get(at).copied().filter(|_| *at != 0));
                let mut path: Vec<u64> = path.collect();
                path.reverse();
                return Some(self.under_one_naming(&group, &path));
            }
            for (_, _, next) in self.moves(packed) {
                let next = self.least_name(&group, next);
                before.entry(next).or_insert_with(|| {
                    left.push_back(next);
                    packed
                });
            }
        }
        None
    }

    /// Each state of the path was renamed on its own; the same moves with the names kept.
    fn under_one_naming(&self, group: &[Renaming], path: &[u64]) -> Attack<'_> {
        let mut at = 0;
        let step = |next: &u64| {
            let mut moves = self.moves(at);
            let here = moves.find(|(_, _, after)| self.least_name(group, *after) == *next);
            let (site, message, after) = here.expect("renaming keeps all moves");
            at = after;
            (site, message)
        };
        let script: Vec<_> = path[1..].iter().map(step).collect();
        self.play(&script).expect("each is a move")
    }

    /// Tells the sites just this; `None` where one of them refuses.
    pub(crate) fn play(&self, script: &[(usize, Message)]) -> Option<Attack<'_>> {
        let mut attack = Attack { machine: self, steps: Vec::new(), learnt: Vec::new() };
        let mut at = 0;
        for (site, message) in script {
            let (_, _, after) = self.moves(at).find(|(s, m, _)| s == site && m == message)?;
            attack.steps.push((at, *site, *message, after));
            at = after;
        }
        attack.learnt = self.sums(at);
        Some(attack)
    }
}

/// A transcript and what it opens.
pub(crate) struct Attack<'a> {
    machine: &'a Machine,
    /// State before, site, message, state after.
    steps: Vec<(u64, usize, Message, u64)>,
    pub(crate) learnt: Vec<Set>,
}

impl Attack<'_> {
    /// Every honest site at the end.
    pub(crate) fn end(&self) -> impl Iterator<Item = &Local> {
        let end = self.steps.last().map_or(0, |(_, _, _, after)| *after);
        (0..self.machine.sites.len()).map(move |u| &self.machine.node(end, u).local)
    }

    pub(crate) fn script(&self) -> Vec<(usize, Message)> {
        self.steps.iter().map(|(_, site, message, _)| (*site, *message)).collect()
    }
}

impl fmt::Display for Attack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.machine.setting;
        let names = |set: Set| members(set).map(|u| u.to_string()).collect::<Vec<_>>().join(" ");
        writeln!(f, "n = {}, t = {}, c = {}, {:?}: {} steps", s.n, s.t, s.c, s.fault, self.steps.len())?;
        for (before, site, message, after) in &self.steps {
            let old = &self.machine.node(*before, *site).local;
            let new = &self.machine.node(*after, *site).local;
            match message {
                Message::Ask(q) => write!(f, "  site {site} answers question {q}")?,
                Message::Survivors(a) => write!(f, "  site {site} is told that {{{}}} survive", names(*a))?,
                Message::Certificate(a) => write!(f, "  site {site} is shown the certificate of {{{}}}", names(*a))?,
            }
            if new.signed != old.signed {
                write!(f, "; signs")?;
            }
            if new.seeds != old.seeds {
                write!(f, "; gives seeds towards {{{}}}", names(new.seeds & !old.seeds))?;
            }
            if new.shares != old.shares {
                write!(f, "; gives shares of {{{}}}", names(new.shares & !old.shares))?;
            }
            writeln!(f)?;
        }
        let sums: Vec<String> = self.learnt.iter().map(|s| format!("{{{}}}", names(*s))).collect();
        writeln!(f, "  learnt: the sums over {}", sums.join(" and "))
    }
}

/// All states of one site, as if every certificate could be made.
fn list(setting: &Setting, me: usize) -> Vec<Node> {
    let sets = || 1..=everybody(setting.n);
    let messages: Vec<Message> = (0..setting.questions.len() as u8)
        .map(Message::Ask)
        .chain(sets().map(Message::Survivors))
        .chain(sets().map(Message::Certificate))
        .collect();
    let mut nodes = vec![node(Local::new())];
    let mut index = HashMap::from([(Local::new(), 0)]);
    let mut k = 0;
    while k < nodes.len() {
        for message in &messages {
            let Some(next) = setting.answer(me, &nodes[k].local, *message, true) else { continue };
            let place = *index.entry(next.clone()).or_insert_with(|| {
                nodes.push(node(next));
                nodes.len() - 1
            });
            if place != k {
                nodes[k].edges.push(Edge { message: *message, next: place as u16 });
            }
        }
        k += 1;
    }
    nodes
}

fn node(local: Local) -> Node {
    Node { view: View::of(&local), local, edges: Vec::new() }
}

fn rename(local: &Local, names: &[usize], question: impl Fn(u8) -> u8) -> Local {
    use super::rules::Stage::{Checked, Masked, Released, Waiting};
    let of = |set| rename_set(set, names);
    let mut signed: Vec<Set> = local.signed.iter().map(|s| of(*s)).collect();
    signed.sort_unstable();
    Local {
        stage: match local.stage {
            Checked(a) => Checked(of(a)),
            Released(a) => Released(of(a)),
            stage @ (Waiting | Masked) => stage,
        },
        question: local.question.map(question),
        signed,
        seeds: of(local.seeds),
        shares: of(local.shares),
    }
}

fn rename_set(set: Set, names: &[usize]) -> Set {
    (0..names.len()).filter(|u| has(set, *u)).fold(0, |out, u| out | 1 << names[u])
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(n - 1);
    let insert = |p: &Vec<usize>, k: usize| [&p[..k], &[n - 1], &p[k..]].concat();
    shorter.iter().flat_map(|p| (0..n).map(move |k| insert(p, k))).collect()
}

/// A hash of packed states: they come from this file and from nobody else.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
