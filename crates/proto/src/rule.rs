//! The rules of the specification (`protocol/spec.md`, `door.md`, `documents.md`) in the order in which it lays them down.
//! `cargo test --workspace --test protocol write_the_rules -- --ignored` writes the list anew; a test compares it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

macro_rules! rules {
    ($($section:literal: $($rule:ident $name:literal),*;)*) => {
        /// A rule of the specification, in its order. Its text, in files and on the wire, is its name there,
        /// for example `KEX-3`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = concat!("[", $name, "], section ", $section, ".")] $rule,)*)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Rule] = &[$($(Rule::$rule,)*)*];

            /// Its name in the specification.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Rule::$rule => $name,)*)*
                }
            }
        }
    };
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// No rule of the specification has this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no rule of the specification has this name")]
pub struct NoSuchRule;

impl FromStr for Rule {
    type Err = NoSuchRule;

    fn from_str(name: &str) -> Result<Rule, NoSuchRule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name).ok_or(NoSuchRule)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rule, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

rules! {
    "3": Enc1 "ENC-1", Enc2 "ENC-2", Enc4 "ENC-4";
    "5": Key1 "KEY-1", Key2 "KEY-2", Ros1 "ROS-1", Ros2 "ROS-2", Ros4 "ROS-4", Ros6 "ROS-6",
        Ros7 "ROS-7", Ros8 "ROS-8", Ros9 "ROS-9", Ses1 "SES-1";
    "6": Pln1 "PLN-1", Pln2 "PLN-2", Pln7 "PLN-7", Thr1 "THR-1", Thr2 "THR-2";
    "7": Fix1 "FIX-1", Fix2 "FIX-2", Fix3 "FIX-3", Fix4 "FIX-4";
    "8.1": Kex1 "KEX-1", Kex2 "KEX-2", Kex9 "KEX-9";
    "8.2": Kex3 "KEX-3", Kex5 "KEX-5", Kex16 "KEX-16", Kex17 "KEX-17", Kex7 "KEX-7", Kex8 "KEX-8";
    "8.3": Sha2 "SHA-2", Shr1 "SHR-1", Shr2 "SHR-2", Shr3 "SHR-3", Shr4 "SHR-4", Shr8 "SHR-8";
    "8.4": Kex11 "KEX-11", Kex12 "KEX-12", Kex13 "KEX-13", Shr7 "SHR-7";
    "9.3": Rnd1 "RND-1", Rnd2 "RND-2", Rnd4 "RND-4", Rnd5 "RND-5", Rnd6 "RND-6", Rnd7 "RND-7",
        Rnd8 "RND-8", Rnd10 "RND-10";
    "9.4": Msk1 "MSK-1", Msk3 "MSK-3", Msk4 "MSK-4";
    "9.5": Inp1 "INP-1", Inp2 "INP-2", Inp3 "INP-3", Inp4 "INP-4";
    "9.6": Sur2 "SUR-2", Sur3 "SUR-3", Sur4 "SUR-4", Sur5 "SUR-5", Con2 "CON-2", Con3 "CON-3";
    "9.7": Unm1 "UNM-1", Unm2 "UNM-2", Unm3 "UNM-3", Unm5 "UNM-5", Unm6 "UNM-6";
    "9.8": Opn1 "OPN-1", Opn2 "OPN-2", Opn3 "OPN-3", Opn4 "OPN-4", Opn5 "OPN-5", Opn6 "OPN-6",
        Opn7 "OPN-7", Opn8 "OPN-8", Opn9 "OPN-9";
    "10.1": Frm1 "FRM-1", Frm3 "FRM-3", Frm4 "FRM-4", Frm5 "FRM-5", Frm6 "FRM-6", Frm7 "FRM-7";
    "12": Jrn1 "JRN-1", Jrn2 "JRN-2", Jrn3 "JRN-3", Jrn4 "JRN-4", Jrn5 "JRN-5";
    "11": Pol1 "POL-1", Pol2 "POL-2", Pol3 "POL-3", Pol4 "POL-4", Pol8 "POL-8", Pol9 "POL-9",
        Pol10 "POL-10";
    "11.2": Led1 "LED-1", Led2 "LED-2", Led3 "LED-3", Led4 "LED-4", Led5 "LED-5", Led6 "LED-6",
        Led7 "LED-7", Led9 "LED-9", Led11 "LED-11";
    "13": App1 "APP-1", App9 "APP-9", App2 "APP-2", App3 "APP-3", App4 "APP-4", App5 "APP-5",
        App6 "APP-6", App8 "APP-8";
    "13.2": Qry1 "QRY-1", Qry2 "QRY-2";
    "13.3": Qry3 "QRY-3";
    "13.4": Qry4 "QRY-4", Qry5 "QRY-5", Qry6 "QRY-6";
    "13.6": Qry7 "QRY-7", Qry8 "QRY-8";
    "13.7": Qry9 "QRY-9";
    "17.1": Noi1 "NOI-1", Noi2 "NOI-2";
    "17.2": Noi3 "NOI-3", Noi4 "NOI-4";
    "17.3": Noi5 "NOI-5", Noi8 "NOI-8", Noi9 "NOI-9";
    "17.4": Noi6 "NOI-6";
    "17.5": Noi7 "NOI-7";
    "21": Sum1 "SUM-1", Sum2 "SUM-2";
    "18": Joi1 "JOI-1", Joi2 "JOI-2", Joi3 "JOI-3", Joi4 "JOI-4", Joi5 "JOI-5", Joi6 "JOI-6",
        Joi7 "JOI-7", Joi8 "JOI-8";
    "19": Pro1 "PRO-1", Pro2 "PRO-2", Pro3 "PRO-3", Pro4 "PRO-4";
    "22": Res1 "RES-1", Res2 "RES-2", Res3 "RES-3", Res4 "RES-4", Res5 "RES-5", Res6 "RES-6",
        Res8 "RES-8";
}
