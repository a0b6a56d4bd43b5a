//! The names that most tests of the protocol use, in one line: `use veilsum_testkit::prelude::*`. Inputs, outputs and events are twofold,
//! so they are named by their module: `site::Event`, `aggregator::Event`.

pub use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

pub use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
pub use veilsum_proto::{
    Error, Rule,
    aggregator::{self, Aggregator, AggregatorConfig, Loss, Millis, Timing},
    codec,
    identity::{Identity, PublicKey, Signature},
    journal::{Record, RecordKind},
    message::{Disclosure, Kind, kind_of, session},
    plan::Terms,
    policy::{Asked, Floor},
    recompute::Documents,
    roster::PartyId,
    site::{self, Site, SiteConfig},
    standing::{Answered, Member, Standing, set_of_sites},
    suite::{self, Hash},
    vectors_api as api,
};

pub use crate::{federation::*, hub::*, secrets::*, wire::*};
