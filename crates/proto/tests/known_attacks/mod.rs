//! The known pitfalls of secure aggregation, each as a test that bears the rule that closes it.
//!
//! | # | attack or defect | closed by | test | elsewhere, or not shown |
//! |---|---|---|---|---|
//! | 1 | both secrets of one site in one slot | UNM-1, SUR-4, CON-2 | `real_sites_answer_where_the_model_answers` in `model/conform.rs` | a site in every state, after restarts too |
//! | 2 | another story of who is missing for every site | UNM-2, SUR-4, THR-2 | `unm_2_every_story_of_three_and_four_sites` in `model/replay.rs` | larger n, and at random: the same file |
//! | 3 | short seeds, a weak generator, modulo bias | MSK-3, KEX-2 | `msk_3_short_seeds_a_weak_generator_and_modulo_bias` | known answers: `vectors.rs`; the system's generator is the caller's |
//! | 4 | a mask used twice | RND-1, RND-2, MSK-1 | `rnd_1_a_mask_used_twice` | |
//! | 5 | recovery in one round opens the past | MSK-1, CON-3 | `msk_1_recovery_in_one_round_opens_the_past` | |
//! | 6 | the late vector of a site called missing | UNM-3 | `unm_2_every_story_of_three_and_four_sites` in `model/replay.rs` | what the bytes open; an honest aggregator drops it: `bad_round.json` |
//! | 7 | late answers of a round that was tried again | POL-1, FRM-7, SUR-3 | `what_goes_astray_in_a_round_is_refused` in `vectors.rs` | |
//! | 8 | another broadcast for one victim | RND-1, SUR-5 | `rnd_1_another_broadcast_for_one_victim` | |
//! | 9 | broadcasts over two cohorts | POL-1, RND-5 | `what_goes_astray_in_a_round_is_refused` in `vectors.rs` | another roster's sites: `tests/agree.rs` |
//! | 10 | two directories, another roster, doubled members | KEX-3, KEX-7, ROS-4, ROS-6 | `kex_7_two_directories_that_are_signed_throughout` | the others: `documents` and `what_goes_astray_in_a_deck_is_refused` in `vectors.rs`; who owns a key: section 15 |
//! | 11 | a victim among neighbours of the aggregator's choice | MSK-3, SHR-8, POL-1 | `msk_3_a_victim_among_neighbours_of_the_aggregators_choice` | boxes and cohorts: `vectors.rs` |
//! | 12 | replay, reflection, another's key as one's own | FRM-4, SHR-2, SHR-4, KEX-5 | `frm_4_replay_reflection_and_anothers_key` | another's key: `known_lies.txt` |
//! | 13 | a site set back answers twice | JRN-1 to JRN-3 | `jrn_1_a_site_set_back_answers_twice` | a journal set back whole is not detected: section 15; its file: `crates/node/src/store/journal/tests.rs` |
//! | 14 | malformed, doubled, zero-index, non-canonical shares | SHA-2, UNM-3, UNM-6 | `sha_2_malformed_doubled_zero_index_and_non_canonical_shares` | malformed and not canonical: `known_lies.txt` |
//! | 15 | overflow, wrap, NaN, silent clip | FIX-1, FIX-2 | `fix_1_overflow_wrap_nan_and_silent_clip` | no float comes here; NaN and clipping: `crates/federation/src/question.rs` |
//! | 16 | another site's contribution as one's own | INP-3, FRM-4, SUR-5 | `what_goes_astray_in_a_round_is_refused` in `vectors.rs` | |
//! | 17 | timing of code that depends on secrets | section 15 | `timing_of_code_that_depends_on_secrets` | shown by types and text, not by a clock |
//! | 18 | too few sites left | POL-1, SUR-3 | `pol_1_too_few_sites_left` | an honest aggregator: `what_goes_astray_in_a_round_is_refused` in `vectors.rs` |
//! | 19 | who ends TLS forges or reads | FRM-4, KEX-3, SHR-2 | `shr_2_who_ends_tls_reads_no_share` | forged frames: `known_lies.txt`; the carrier's own keys: `crates/node/src/carrier/tests.rs` |
//! | 20 | drift and memory over hundreds of rounds | JRN-4, RND-8 | `jrn_4_drift_and_memory_over_hundreds_of_rounds` | |
//! | 21 | counts beside the mask in the clear | section 10.4 | `counts_beside_the_mask_in_the_clear` | what the whole product sends: `tests/views.rs` |
//! | 22 | one key for all, a switch that masks nothing | ROS-4, KEX-2 | `ros_4_one_key_for_all_and_a_switch_that_masks_nothing` | |

mod cohorts_and_shares;
mod masks_and_recovery;
mod outsiders_and_floors;
