use super::*;

fn bundle() -> Bundle {
    let long = |byte: u8, bytes: usize| vec![byte; bytes];
    Bundle(BTreeMap::from([
        ("roster.toml", b"roster".to_vec()),
        ("plan.toml", long(b'p', 700)),
        ("roster.bin", long(1, 512)),
        ("plan.bin", Vec::new()),
        ("result.json", long(b'r', 3000)),
        ("model.json", b"{}\n".to_vec()),
        ("openings.bin", long(9, 5000)),
    ]))
}

fn refused(bytes: &[u8]) -> String {
    let failure = Bundle::from_bytes(bytes).err().expect("it is refused");
    assert!(!failure.advice.is_empty() && failure.message.len() < 500, "{failure}");
    failure.message
}

/// An archive with a manifest and then these entries.
fn archive(entries: &[(&str, tar::EntryType, u64, &[u8])]) -> Vec<u8> {
    let manifest =
        Manifest { format: FORMAT.into(), software: String::new(), wire_version: VERSION, files: Vec::new() };
    let mut out = tar::Builder::new(Vec::new());
    let text = manifest_text(&manifest);
    let all = std::iter::once((MANIFEST, tar::EntryType::Regular, text.len() as u64, &text[..]));
    for (name, kind, size, bytes) in all.chain(entries.iter().copied()) {
        let mut header = tar::Header::new_ustar();
        // The library refuses to write such names, so they are put there by hand.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        out.append(&header, bytes).expect("memory");
    }
    out.into_inner().expect("memory")
}

/// [RES-7]: the same contents are the same bytes, and every byte counts: 10,000 random changes, and every cut.
#[test]
fn res_7_no_byte_of_a_bundle_can_be_changed() {
    let bytes = bundle().to_bytes().unwrap();
    assert!(is_bundle(&bytes) && Bundle::from_bytes(&bytes).unwrap().0 == bundle().0);
    assert_eq!(Bundle::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
    let seed = std::env::var("VEILSUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(22_u64);
    println!("VEILSUM_SEED={seed}");
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as usize
    };
    for _ in 0..10_000 {
        let (mut changed, at) = (bytes.clone(), draw(bytes.len()));
        changed[at] ^= 1 + draw(255) as u8;
        assert!(Bundle::from_bytes(&changed).is_err(), "byte {at} became {:#x}", changed[at]);
    }
    for at in (0..bytes.len()).step_by(61) {
        refused(&bytes[..at]);
    }
    refused(&[&bytes[..], &[0; 512]].concat());
}

/// [RES-7]: names that lead elsewhere, links, bombs: nothing is written to a disk, and no more is read than a bundle may hold.
#[test]
fn res_7_hostile_archives_are_refused() {
    let file = tar::EntryType::Regular;
    for name in ["../roster.toml", "/etc/passwd", "sub/../../x", "roster.toml/", "manifest.json", "\u{1b}[2J", "other"]
    {
        let message = refused(&archive(&[(name, file, 1, b"x")]));
        assert!(message.contains("no place in a bundle") || message.contains("no file"), "{message}");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
    // Out of their order, or twice.
    refused(&archive(&[("plan.toml", file, 1, b"x"), ("roster.toml", file, 1, b"x")]));
    refused(&archive(&[("plan.toml", file, 1, b"x"), ("plan.toml", file, 1, b"x")]));
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Directory, tar::EntryType::Fifo] {
        refused(&archive(&[("roster.toml", kind, 0, b"")]));
    }
    // A size that is not there, and one that no roster has.
    let bomb = refused(&archive(&[("roster.toml", file, 1 << 40, b"")]));
    assert!(bomb.contains("more than"), "{bomb}");
    refused(&archive(&[("roster.toml", file, 4096, b"")]));
    refused(&archive(&[]));
    refused(b"");
    refused(b"PK\x03\x04");
    let other =
        Manifest { format: "veilsum-bundle/9".into(), software: String::new(), wire_version: 9, files: Vec::new() };
    let later = pack(&manifest_text(&other), std::iter::empty()).unwrap();
    let failure = Bundle::from_bytes(&later).err().unwrap();
    assert!(failure.message.contains("veilsum-bundle/9") && failure.advice.contains("version"), "{failure}");
    let unknown = pack(b"{\"format\":\"veilsum-bundle/1\",\"more\":1}\n", std::iter::empty()).unwrap();
    assert!(refused(&unknown).contains("more"));
}
