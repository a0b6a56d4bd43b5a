//! What a site demands whatever a plan says (`site.toml`), and what an account promises.

use serde::{Deserialize, Serialize};
use veilsum_proto::{plan::Sites, policy::Floor};

/// A site's whole policy. A site without a policy file has the default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The floor for the protocol itself.
    pub floor: Floor,
    /// Methods that a plan may name; `None` allows any.
    pub methods: Option<Vec<String>>,
    /// Columns that a plan may name; `None` allows any.
    pub columns: Option<Vec<String>>,
    /// What the account may spend at most, by this site's own noise alone, in 10^-9 of rho, where that is less than the account's cap
    /// ([POL-8]).
    pub nano_rho: Option<u64>,
    /// Whether the operator may agree to a plan without noise ([POL-9]).
    pub exact: Exact,
    /// Which plans are answered without a further word, as to the sites of a total ([POL-10]).
    pub sites: Sites,
    /// Which plans the operator agrees to ([POL-10]).
    pub ask: Ask,
    /// Rows that this site holds at most, far above those that it has, and no secret: a plan with noise leaves room for as many
    /// ([POL-4]).
    pub max_rows: u64,
    /// What the site says that one row, or one person, is ([POL-4]).
    pub unit: Unit,
}

/// What comes or goes where one speaks of privacy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// One row.
    Row,
    /// A person, of whom so many rows count at most.
    Person(u64),
}

impl Unit {
    /// Rows that come or go together at most.
    pub(crate) fn rows(self) -> u64 {
        match self {
            Unit::Row => 1,
            Unit::Person(rows) => rows.max(1),
        }
    }
}

/// What a site makes of plans without noise ([POL-9]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exact {
    /// The operator agrees to each of them by its hash.
    ByAgreement,
    /// None is answered.
    Never,
}

/// Which plans a site's operator agrees to ([POL-10]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Those that need it.
    WhenNeeded,
    /// All.
    Always,
}

/// Rows that a site holds at most whose policy says nothing: about a million.
pub const DEFAULT_MAX_ROWS: u64 = 1 << 20;

/// Sites that make a plan's noise: if as many keep theirs secret, an answer says so many times less than by one site's noise alone.
pub const HONEST: usize = 2;

/// The usual cap of an account: [`HONEST`] times rho = 1.
pub const DEFAULT_NANO_RHO: u64 = HONEST as u64 * 1_000_000_000;

/// What an account promises, as its first entry says, and a later one that its operator makes ([POL-8]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Whose part is bounded; another unit than before only as long as no run has begun.
    pub unit: Unit,
    /// Sites that keep `nano_rho` together.
    pub honest: u16,
    /// In 10^-9 of rho, for whoever sees nothing but totals with as many sites that collude with nobody.
    pub nano_rho: u64,
    /// What other state folders spent for these people before, by their site's own noise alone, in 10^-9 of rho.
    pub before: u64,
}

impl Default for Bound {
    fn default() -> Self {
        Bound::of(DEFAULT_NANO_RHO)
    }
}

impl Bound {
    /// The same for another unit: what was spent of units of fewer rows counts, of larger ones, the square of how many times as many they are.
    pub fn of_unit(self, unit: Unit) -> Bound {
        let times = unit.rows().div_ceil(self.unit.rows());
        Bound { unit, before: self.before.saturating_mul(times.saturating_mul(times)), ..self }
    }

    /// Of rows that nobody asked before, with this cap.
    pub fn of(cap: u64) -> Bound {
        Bound { unit: Unit::Row, honest: HONEST as u16, nano_rho: cap / HONEST as u64, before: 0 }
    }

    /// What all answers may spend together, by their site's own noise alone.
    pub fn cap(&self) -> u64 {
        self.nano_rho.saturating_mul(self.honest.into())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            floor: Floor::default(),
            methods: None,
            columns: None,
            nano_rho: None,
            exact: Exact::ByAgreement,
            sites: Sites::Same,
            ask: Ask::WhenNeeded,
            max_rows: DEFAULT_MAX_ROWS,
            unit: Unit::Row,
        }
    }
}

impl Policy {
    /// The cap where no account is at hand.
    pub fn usual_cap(&self) -> u64 {
        self.nano_rho.unwrap_or(DEFAULT_NANO_RHO)
    }
}
