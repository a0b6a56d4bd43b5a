//! Every limit of the protocol with its unit, its reason and what it costs at worst (spec section 2).

/// The largest number of sites in a roster. In the worst case the coordinator holds one share of 32 bytes for every
/// ordered pair and slot in flight.
pub const MAX_SITES: usize = 1_000;

/// The smallest number of sites in a roster. Between two sites every total shows each of them the other's part.
pub const MIN_SITES: usize = 3;

/// Words of 8 bytes in one masked vector: 8 MiB a site. A sweep of ten K at K = 100, d = 100 needs 0.1 of it.
pub const MAX_WORDS: usize = 1 << 20;

/// Bytes of one query (the broadcast): centres as doubles, the same size as the largest vector plus a little.
pub const MAX_QUERY: usize = 9 << 20;

/// Slots (rounds) of one deck. A site holds 32 bytes a slot and member; 256 slots with 1,000 members are 8 MiB. At both
/// maxima the coordinator relays 17 GB of boxes and commitments in one set-up: with many sites, plan fewer slots.
pub const MAX_SLOTS: u16 = 256;

/// Bytes of one frame body: 1,000 sealed boxes of 8 KiB, and as much again.
pub const MAX_BODY: usize = 16 << 20;

/// Bytes of the body of a delivery: 1,000 boxes and 1,000 lists of commitments of 8 KiB each, and room to
/// spare.
pub const MAX_DELIVERY_BODY: usize = 18 << 20;

/// Bytes of the body of a directory: 1,433 bytes for each of `MAX_SITES` members, most of them the ML-KEM key. Or of its certificate: a
/// proof of 96 bytes and a ciphertext of 1,090 for each.
pub const MAX_DIRECTORY_BODY: usize = 3 << 19;

/// Bytes of the body of a frame that carries only short keys, signatures or control texts for at most `MAX_SITES` sites.
pub const MAX_LIST_BODY: usize = 256 << 10;

/// Bytes of the body of a frame of fixed small size.
pub const MAX_SMALL_BODY: usize = 4 << 10;

/// Bytes of the opening of a round: ten for each word, 260 for each site, and 32 for every pair of a survivor and a
/// missing site. 1,000 sites with 2t > n + c have at most 222,000 such pairs.
pub const MAX_OPENING: usize = 10 * MAX_WORDS + (8 << 20);

/// Bytes of a name of a party, federation or column: long enough for a legal name, short enough for a log line.
pub const MAX_NAME: usize = 64;

/// Bytes of an address: a host name has at most 253.
pub const MAX_ADDRESS: usize = 262;

/// Bytes of a signed roster: 1,002 members of at most 374 bytes.
pub const MAX_ROSTER: usize = 1 << 19;

/// Bytes of the application's part of a plan (method, columns, boxes).
pub const MAX_APPLICATION: usize = 1 << 20;

/// Fractional bits below an entry's bound that a plan must leave; with fewer, rounding would show in the centres.
pub const MIN_PRECISION_BITS: u32 = 20;

/// The finest step of a total, as a part of what one row can change an entry by at most: finer ones would be below the rounding of
/// a row's own contribution, and up to here a contribution is rounded to a step without loss ([FIX-1], [SUM-1]).
pub const MAX_STEP_BITS: u32 = 50;

/// Decks that may be set up anew in a row because a member vanished during the set-up, before the run gives up.
pub const MAX_DECK_ATTEMPTS: u32 = 8;
