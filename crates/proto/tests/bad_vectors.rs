//! Every rule has a bad vector, which both implementations refuse under its name, or stands here with the reason why it has
//! none and a test that guards it.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;
use veilsum_proto::Rule;

/// Reasons, and below each its rules: the rule, the file of its test, the test.
const WITHOUT: &str = "
A rule of what a number or a name is: other bytes are another name, and good vectors pin the right one.
    ENC-4 crates/proto/tests/vectors.rs enc_4_masks_and_totals
    SES-1 crates/proto/tests/vectors.rs documents
    FIX-1 crates/proto/tests/vectors.rs fixed_point
    FIX-4 crates/proto/src/fixed.rs fix_4_a_coarser_step_keeps_the_rows_that_fit
    KEX-2 crates/proto/tests/vectors.rs the_key_schedule_of_a_deck
    SHR-1 crates/proto/tests/vectors.rs shr_1_sharing
    MSK-1 crates/proto/tests/vectors.rs secrets_beside_the_sessions
    MSK-3 crates/proto/tests/vectors.rs enc_4_masks_and_totals
    OPN-1 crates/proto/tests/vectors.rs opn_1_commitments
    NOI-2 tests/hostile_plans.rs noi_2_noise_is_new_in_every_session_of_a_plan
    NOI-4 tests/noise.rs as_the_second_implementation_has_it
    QRY-1 crates/cluster/src/scale.rs indicators_have_a_length_of_their_own
    QRY-2 crates/cluster/src/transform.rs a_transform_outside_its_domain_is_refused
    QRY-4 tests/question_vectors.rs qry_4_exponents_of_bounds
    QRY-5 tests/question_vectors.rs questions_layouts_and_answers
    QRY-6 tests/question_vectors.rs questions_layouts_and_answers
    QRY-7 tests/question_vectors.rs draws
    QRY-8 tests/methods.rs sampled_sites_are_those_that_everybody_can_compute
    SUM-1 crates/cluster/tests/exact_sums.rs sum_1_a_sweep_in_one_pass_has_the_words_of_each_question_alone
    SUM-2 crates/cluster/tests/exact_sums.rs sum_2_as_plain_loops
Bytes that break it are refused under the rule that is the narrower one of the two, which a vector names.
    SHR-2 crates/proto/tests/vectors.rs the_key_schedule_of_a_deck
    FRM-5 crates/proto/src/message.rs frm_5_a_proof_stands_for_kind_and_context
    QRY-3 tests/question_vectors.rs qry_3_questions_that_no_site_answers
    QRY-9 tests/question_vectors.rs qry_9_the_applications_part_of_a_plan
What a party does by itself or leaves undone, and in which order: the frame that shows it is sound.
    ROS-7 crates/proto/tests/lies_about_keys.rs identities_that_the_roster_does_not_give_the_role
    KEX-11 crates/proto/tests/aggregator_waits.rs kex_11_set_ups_begin_anew_a_limited_number_of_times
    KEX-12 crates/proto/tests/aggregator_waits.rs kex_12_a_deck_that_is_ready_early_waits
    RND-8 crates/proto/tests/forward_secrecy.rs all_journals_together_do_not_open_a_closed_slot
    MSK-4 crates/proto/tests/known_attacks/cohorts_and_shares.rs jrn_1_a_site_set_back_answers_twice
    UNM-1 crates/proto/tests/which_sites.rs unm_1_the_intermediary_shows_a_certificate_in_every_round
    LED-4 crates/door/src/ledger/tests.rs a_disk_that_fails_lets_nothing_leave
    LED-7 crates/door/src/ledger/tests.rs led_7_a_charge_is_for_one_frame
    JRN-1 crates/proto/tests/known_attacks/cohorts_and_shares.rs jrn_1_a_site_set_back_answers_twice
    JRN-3 crates/proto/tests/forward_secrecy.rs jrn_3_a_restart_sends_the_same_bytes_or_none_were_sent
    JRN-4 crates/proto/tests/known_attacks/outsiders_and_floors.rs jrn_4_drift_and_memory_over_hundreds_of_rounds
    JRN-5 crates/proto/tests/crashed_aggregator.rs a_journal_that_cannot_be
    JOI-1 tests/joining.rs from_nothing_to_a_result_by_a_handful_of_commands_and_one_call
The application's memory and operators decide, not the bytes alone.
    ROS-8 crates/node/src/documents/pinned.rs ros_8_what_is_written_is_read_and_damage_is_seen
    ROS-9 tests/swapped_roster.rs ros_9_one_changed_member_is_named_and_the_change_can_be_agreed_to
    OPN-9 tests/hostile_plans.rs opn_9_a_coordinator_that_places_a_centre_is_caught_by_every_site
    APP-1 tests/application_rules.rs app_1_only_a_greeting_with_the_same_documents_lets_somebody_in
    APP-2 crates/proto/tests/aggregator_waits.rs app_2_a_site_that_was_not_counted_is_in_no_deck_that_is_asked
    APP-3 tests/federation.rs app_3_one_site_vanishes
    APP-5 crates/node/src/role/hand.rs app_5_what_is_judged_was_laid_down_in_this_run
    APP-6 crates/federation/src/method_session.rs app_6_draws_begin_at_one_and_no_question_is_put_to_two_draws
    APP-8 tests/losses.rs app_8_an_early_result_of_too_few_rows_is_none
    APP-9 tests/check.rs everything_well_before_and_in_the_midst_of_a_run_which_goes_on
    PRO-1 tests/service.rs a_plan_is_answered_before_anything_is_asked
    PRO-2 crates/cli/proposal.rs pro_2_what_is_said_of_a_plan_is_the_same_for_all_rows
    PRO-3 crates/node/src/role/standby.rs only_rosters_that_leave_this_party_its_place_are_kept
    PRO-4 tests/service.rs a_plan_is_answered_before_anything_is_asked
    JOI-8 crates/proto/src/joining.rs joi_8_a_reply_is_one_partys_and_every_damage_is_seen
    JOI-3 crates/node/src/documents/guests.rs a_roster_comes_about_when_nobody_is_waited_for
    JOI-6 crates/node/src/documents/guests.rs a_roster_comes_about_when_nobody_is_waited_for
    JOI-7 crates/node/src/role/lobby.rs strangers_are_let_in_at_a_bounded_rate_and_guests_always
The application reads these documents; tests there change them.
    NOI-3 crates/door/src/guard.rs noi_3_wrong_contributions_move_the_sum_no_farther
    NOI-5 tests/noise.rs noi_5_what_no_sensitivity_is_proved_for_is_refused
    NOI-6 crates/federation/src/question/neighbour_tests.rs noi_6_a_person_moves_no_answer_farther_than_its_sensitivity
    NOI-7 tests/noisy_methods.rs noi_7_a_description_with_noise_is_near_the_exact_one
    NOI-8 crates/node/src/table/tests.rs noi_8_no_cell_decides_whether_a_site_answers
    NOI-9 crates/node/src/documents/tests.rs noi_9_rows_of_persons_are_cut
    RES-1 crates/federation/src/signed/tests.rs res_1_what_is_no_result_of_these_documents_is_refused
    RES-2 tests/signed_results.rs res_3_every_site_signs_what_it_recomputed
    RES-3 crates/federation/src/signed/tests.rs res_3_a_text_that_does_not_follow_is_not_signed
    RES-4 crates/federation/src/signed/tests.rs res_4_the_list_of_signatures_is_the_writers
    RES-5 crates/federation/src/signed/tests.rs res_5_no_byte_of_a_file_can_be_changed
    RES-6 crates/federation/src/signed/tests.rs res_6_a_file_says_who_stands_for_what
    RES-8 tests/signed_results.rs res_8_a_run_is_recomputed_by_two_implementations
";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn refused(v: &Value, into: &mut BTreeSet<Rule>) {
    match v {
        Value::Object(fields) => {
            into.extend(fields.get("rule").and_then(Value::as_str).map(|name| name.parse::<Rule>().expect(name)));
            fields.values().for_each(|v| refused(v, into));
        }
        Value::Array(list) => list.iter().for_each(|v| refused(v, into)),
        _ => {}
    }
}

#[test]
fn every_rule_has_a_bad_vector_or_a_reason_why_not() {
    let mut named = BTreeSet::new();
    for file in fs::read_dir(root().join("protocol/vectors/v4")).expect("the vectors") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        refused(&serde_json::from_str(&text).expect("JSON"), &mut named);
    }
    let listed: Vec<Vec<&str>> =
        WITHOUT.lines().filter_map(|line| Some(line.strip_prefix("    ")?.split(' ').collect())).collect();
    for rule in Rule::ALL {
        let times = listed.iter().filter(|guarded| guarded[0] == rule.name()).count();
        assert_eq!(times, usize::from(!named.contains(rule)), "{rule} needs a bad vector or one line in WITHOUT");
    }
    for guarded in &listed {
        let [rule, file, test] = guarded[..] else { panic!("rule, file, test: {guarded:?}") };
        assert!(rule.parse::<Rule>().is_ok(), "{rule} is no rule");
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{rule}: {file}: {e}"));
        assert!(text.contains(&format!("fn {test}(")), "{rule}: {file} has no test {test}");
    }
    // More vectors are welcome, fewer are not.
    assert!(named.len() >= 82, "{} of {} rules have a bad vector", named.len(), Rule::ALL.len());
}
