//! The rules of the specification (`protocol/spec.md`, `door.md`, `documents.md`) in the order in which it lays them down.
//! `cargo test --workspace --test protocol write_the_rules -- --ignored` writes the list anew; a test compares it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

macro_rules! rules {
    ($($rule:ident $name:literal $section:literal)*) => {
        /// A rule of the specification, in its order. Its text, in files and on the wire, is its name there,
        /// for example `KEX-3`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("[", $name, "], section ", $section, ".")] $rule,)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Rule] = &[$(Rule::$rule),*];

            /// Its name in the specification.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
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
    Enc1 "ENC-1" "3"
    Enc2 "ENC-2" "3"
    Enc4 "ENC-4" "3"
    Key1 "KEY-1" "5"
    Key2 "KEY-2" "5"
    Ros1 "ROS-1" "5"
    Ros2 "ROS-2" "5"
    Ros4 "ROS-4" "5"
    Ros6 "ROS-6" "5"
    Ros7 "ROS-7" "5"
    Ros8 "ROS-8" "5"
    Ros9 "ROS-9" "5"
    Ses1 "SES-1" "5"
    Pln1 "PLN-1" "6"
    Pln2 "PLN-2" "6"
    Pln7 "PLN-7" "6"
    Thr1 "THR-1" "6"
    Thr2 "THR-2" "6"
    Fix1 "FIX-1" "7"
    Fix2 "FIX-2" "7"
    Fix3 "FIX-3" "7"
    Fix4 "FIX-4" "7"
    Kex1 "KEX-1" "8.1"
    Kex2 "KEX-2" "8.1"
    Kex9 "KEX-9" "8.1"
    Kex3 "KEX-3" "8.2"
    Kex5 "KEX-5" "8.2"
    Kex16 "KEX-16" "8.2"
    Kex17 "KEX-17" "8.2"
    Kex7 "KEX-7" "8.2"
    Kex8 "KEX-8" "8.2"
    Sha2 "SHA-2" "8.3"
    Shr1 "SHR-1" "8.3"
    Shr2 "SHR-2" "8.3"
    Shr3 "SHR-3" "8.3"
    Shr4 "SHR-4" "8.3"
    Shr8 "SHR-8" "8.3"
    Kex11 "KEX-11" "8.4"
    Kex12 "KEX-12" "8.4"
    Kex13 "KEX-13" "8.4"
    Shr7 "SHR-7" "8.4"
    Rnd1 "RND-1" "9.3"
    Rnd2 "RND-2" "9.3"
    Rnd4 "RND-4" "9.3"
    Rnd5 "RND-5" "9.3"
    Rnd6 "RND-6" "9.3"
    Rnd7 "RND-7" "9.3"
    Rnd8 "RND-8" "9.3"
    Rnd10 "RND-10" "9.3"
    Msk1 "MSK-1" "9.4"
    Msk3 "MSK-3" "9.4"
    Msk4 "MSK-4" "9.4"
    Inp1 "INP-1" "9.5"
    Inp2 "INP-2" "9.5"
    Inp3 "INP-3" "9.5"
    Inp4 "INP-4" "9.5"
    Sur2 "SUR-2" "9.6"
    Sur3 "SUR-3" "9.6"
    Sur4 "SUR-4" "9.6"
    Sur5 "SUR-5" "9.6"
    Con2 "CON-2" "9.6"
    Con3 "CON-3" "9.6"
    Unm1 "UNM-1" "9.7"
    Unm2 "UNM-2" "9.7"
    Unm3 "UNM-3" "9.7"
    Unm5 "UNM-5" "9.7"
    Unm6 "UNM-6" "9.7"
    Opn1 "OPN-1" "9.8"
    Opn2 "OPN-2" "9.8"
    Opn3 "OPN-3" "9.8"
    Opn4 "OPN-4" "9.8"
    Opn5 "OPN-5" "9.8"
    Opn6 "OPN-6" "9.8"
    Opn7 "OPN-7" "9.8"
    Opn8 "OPN-8" "9.8"
    Opn9 "OPN-9" "9.8"
    Frm1 "FRM-1" "10.1"
    Frm3 "FRM-3" "10.1"
    Frm4 "FRM-4" "10.1"
    Frm5 "FRM-5" "10.1"
    Frm6 "FRM-6" "10.1"
    Frm7 "FRM-7" "10.1"
    Jrn1 "JRN-1" "12"
    Jrn2 "JRN-2" "12"
    Jrn3 "JRN-3" "12"
    Jrn4 "JRN-4" "12"
    Jrn5 "JRN-5" "12"
    Pol1 "POL-1" "11"
    Pol2 "POL-2" "11"
    Pol3 "POL-3" "11"
    Pol4 "POL-4" "11"
    Pol8 "POL-8" "11"
    Pol9 "POL-9" "11"
    Led1 "LED-1" "11.2"
    Led2 "LED-2" "11.2"
    Led3 "LED-3" "11.2"
    Led4 "LED-4" "11.2"
    Led5 "LED-5" "11.2"
    Led6 "LED-6" "11.2"
    Led7 "LED-7" "11.2"
    Led8 "LED-8" "11.2"
    Led9 "LED-9" "11.2"
    Led10 "LED-10" "11.2"
    Led11 "LED-11" "11.2"
    Rel1 "REL-1" "11.3"
    Rel2 "REL-2" "11.3"
    Rel3 "REL-3" "11.3"
    Rel4 "REL-4" "11.3"
    Rel5 "REL-5" "11.3"
    Rel6 "REL-6" "11.3"
    Rel7 "REL-7" "11.3"
    Rel8 "REL-8" "11.3"
    App1 "APP-1" "13"
    App9 "APP-9" "13"
    App2 "APP-2" "13"
    App3 "APP-3" "13"
    App4 "APP-4" "13"
    App5 "APP-5" "13"
    App6 "APP-6" "13"
    App8 "APP-8" "13"
    Qry1 "QRY-1" "13.2"
    Qry2 "QRY-2" "13.2"
    Qry3 "QRY-3" "13.3"
    Qry4 "QRY-4" "13.4"
    Qry5 "QRY-5" "13.4"
    Qry6 "QRY-6" "13.4"
    Qry7 "QRY-7" "13.6"
    Qry8 "QRY-8" "13.6"
    Qry9 "QRY-9" "13.7"
    Noi1 "NOI-1" "17.1"
    Noi2 "NOI-2" "17.1"
    Noi3 "NOI-3" "17.2"
    Noi4 "NOI-4" "17.2"
    Noi5 "NOI-5" "17.3"
    Noi8 "NOI-8" "17.3"
    Noi9 "NOI-9" "17.3"
    Noi6 "NOI-6" "17.4"
    Noi7 "NOI-7" "17.5"
    Sum1 "SUM-1" "21"
    Sum2 "SUM-2" "21"
    Joi1 "JOI-1" "18"
    Joi2 "JOI-2" "18"
    Joi3 "JOI-3" "18"
    Joi4 "JOI-4" "18"
    Joi5 "JOI-5" "18"
    Joi6 "JOI-6" "18"
    Joi7 "JOI-7" "18"
    Joi8 "JOI-8" "18"
    Pro1 "PRO-1" "19"
    Pro2 "PRO-2" "19"
    Pro3 "PRO-3" "19"
    Pro4 "PRO-4" "19"
    Res1 "RES-1" "22"
    Res2 "RES-2" "22"
    Res3 "RES-3" "22"
    Res4 "RES-4" "22"
    Res5 "RES-5" "22"
    Res6 "RES-6" "22"
    Res8 "RES-8" "22"
}
