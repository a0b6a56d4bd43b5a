//! Joining by one line, against `protocol/vectors/v4/joining.json`, which a second implementation writes: [JOI-2], [JOI-4],
//! [JOI-5].

use serde_json::{Value, json};
use veilsum_proto::{
    joining::{Code, Invitation, Meeting, Nonce, Role},
    limits::MAX_BODY,
};
use veilsum_testkit::{prelude::*, vectors::*};

fn string(v: &Value) -> String {
    v.as_str().expect("a text").to_owned()
}

fn role(v: &Value) -> Role {
    serde_json::from_value(v.clone()).expect("a role")
}

fn meeting(c: &Value) -> Meeting {
    Meeting {
        coordinator: PublicKey(array(&c["coordinator"])),
        joiner: PublicKey(array(&c["joiner"])),
        invitation: hash(&c["invitation"]),
        party: string(&c["party"]),
        role: role(&c["role"]),
        address: string(&c["address"]),
    }
}

#[test]
fn joi_2_4_5_lines_commitments_and_digits() {
    let mut refused = [0; 3];
    for c in cases("joining") {
        let nonces = || (Nonce(array(&c["joiners"])), Nonce(array(&c["coordinators"])));
        match (c["function"].as_str().expect("a name"), c.get("rule").is_some()) {
            ("invitation", false) => {
                let read = Invitation::from_bytes(&hex(&c["line"])).unwrap_or_else(|e| panic!("{e}: {c}"));
                let token = codec::decode("token", &hex(&c["token"]), MAX_BODY).expect("a token");
                let made = Invitation {
                    federation: string(&c["federation"]),
                    party: string(&c["party"]),
                    role: role(&c["role"]),
                    address: string(&c["address"]),
                    coordinator: PublicKey(array(&c["coordinator"])),
                    expires: number(&c["expires"]),
                    token,
                };
                assert!(read == made && made.to_bytes() == hex(&c["line"]), "{c}");
            }
            ("invitation", true) => {
                assert_eq!(c["rule"], json!(Rule::Joi2));
                assert!(Invitation::from_bytes(&hex(&c["line"])).is_err(), "{c}");
                refused[0] += 1;
            }
            ("meeting", false) => {
                let (joiners, coordinators) = nonces();
                assert_eq!(meeting(&c).commitment(&joiners), hash(&c["commitment"]), "{c}");
                let code = meeting(&c).code(&joiners, &coordinators);
                assert_eq!(code.to_string(), string(&c["code"]), "{c}");
                assert_eq!(Code::parse(&string(&c["code"]).replace('-', " ")), Ok(code), "{c}");
            }
            ("shown", true) => {
                assert_eq!(c["rule"], json!(Rule::Joi4));
                assert_ne!(meeting(&c).commitment(&nonces().0), hash(&c["commitment"]), "{c}");
                refused[1] += 1;
            }
            ("said", true) => {
                assert_eq!(c["rule"], json!(Rule::Joi5));
                let (joiners, coordinators) = nonces();
                assert_ne!(Code::parse(&string(&c["said"])), Ok(meeting(&c).code(&joiners, &coordinators)), "{c}");
                refused[2] += 1;
            }
            other => panic!("a function that this test does not know: {other:?}"),
        }
    }
    assert!(refused[0] > 10 && refused[1] > 4 && refused[2] > 10, "{refused:?}");
}
