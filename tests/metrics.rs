//! Distances of Mahalanobis and of the cosine: a run on the command line, and rows that are assigned by the same distances.

use veilsum_cluster::random::Stream;
use veilsum_testkit::program::{Folder, veilsum};

/// Two long clusters side by side.
fn table() -> String {
    let mut stream = Stream::new(5, b"veilsum rows for metrics");
    let mut text = String::from("x,y\n");
    for row in 0..240 {
        let ([a, b], side) = (stream.normal_pair(), if row % 3 == 0 { 1.0 } else { -1.0 });
        let (long, wide) = (0.1 * a, 0.015 * b + 0.06 * side);
        text += &format!("{},{}\n", 5.0 + 10.0 * (long + wide), 0.5 + long - wide);
    }
    text
}

fn demo(out: &Folder, data: &str, more: &[&str]) -> veilsum_testkit::program::Ended {
    let folder = out.path("out");
    let args = ["demo", "--exact", "--data", data, "--out", &folder];
    veilsum(&[&args[..], more].concat())
}

#[test]
fn rows_are_assigned_by_the_metric_of_their_model() {
    for metric in ["standardise=whiten", "scale=direction"] {
        let out = Folder::fresh();
        let data = out.write("rows.csv", &table());
        let args = ["--sites", "5", "--set", metric, "--method", "kmeans", "--k", "2"];
        demo(&out, &data, &args).expect(0);
        let result = out.json("out/result.json");
        assert!(result["pooled"]["max_abs_diff"].as_f64().unwrap() < 1e-9, "{metric}");
        let mut sizes: Vec<u64> = result["sizes"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let (model, labels) = (out.path("out/model.json"), out.path("labels.csv"));
        veilsum(&["assign", "--model", &model, "--data", &data, "--out", &labels]).expect(0);
        let text = std::fs::read_to_string(&labels).unwrap();
        let mut counted = [0u64; 2];
        text.lines().skip(1).for_each(|line| counted[line.rsplit(',').next().unwrap().parse::<usize>().unwrap()] += 1);
        assert_eq!(sizes, counted, "{metric}");
        sizes.sort_unstable();
        if metric == "standardise=whiten" {
            assert_eq!(sizes, [80, 160], "whitened, the clusters are apart");
            let centres: Vec<Vec<f64>> = serde_json::from_value::<Vec<Vec<f64>>>(result["centres"].clone()).unwrap();
            assert!(centres.iter().all(|c| (3.0..7.0).contains(&c[0]) && (0.3..0.7).contains(&c[1])), "{centres:?}");
        } else {
            for centre in result["centres"].as_array().unwrap() {
                let square: f64 = centre.as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
                assert!((square - 1.0).abs() < 1e-12, "{centre}");
            }
        }
    }
}

#[test]
fn what_a_metric_does_not_go_with_is_refused() {
    let out = Folder::fresh();
    let data = out.write("rows.csv", &table());
    let says = |more: &[&str], said: &str| {
        let ended = demo(&out, &data, &[&["--k", "2", "--sites", "5"], more].concat()).expect(2);
        assert!(ended.stderr.contains(said), "{said:?} is not in {}", ended.stderr);
    };
    says(&["--set", "standardise=whiten", "--method", "gmm"], "is for fcm and kmeans");
    says(&["--set", "scale=direction", "--method", "fkm"], "is for fcm and kmeans");
    says(&["--set", "scale=direction", "--set", "standardise=standard"], "nothing is standardised");
    let zeros = out.write("zeros.csv", "x,y\n1,0.5\n0,0\n2,0.5\n3,0.25\n");
    let ended = demo(&out, &zeros, &["--k", "1", "--set", "scale=direction", "--sites", "4"]).expect(3);
    assert!(ended.stderr.contains("nothing but zeros") && !ended.stderr.contains("0.5"), "{}", ended.stderr);
}
