"""One iteration of federated fuzzy c-means with our kernel in Spark's executors, beside one of Spark's own k-means, on the same rows in the same
Spark: `python benches/python/spark.py [ROWS] [COLUMNS] [K] [MASTER] [TIMES]`. Prints seconds and their ratio; asserts nothing.

Rows are cached by Spark before anything is measured, for each side in the form that it reads: packed rows for the kernel, MLlib's vectors for
k-means. MLlib's time an iteration is that of a fit with many iterations minus that of a fit with few, divided by the difference: its start does
not count.
"""

import json
import os
import sys
import time

import numpy as np

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import veilsum.spark  # noqa: E402
from pyspark.ml.clustering import KMeans  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.sql import SparkSession, functions as f  # noqa: E402
from veilsum import questions  # noqa: E402


def main(rows=1_000_000, d=16, k=10, master="local-cluster[2,1,2048]", times=5):
    spark = (
        SparkSession.builder.master(master).appName("veilsum bench").config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false").config("spark.executor.memory", "1800m").getOrCreate()
    )  # fmt: skip
    names = [f"x{j}" for j in range(d)]
    # Overlapping groups, so that neither side stops early.
    group = [(f.rand(seed=1000) * k).cast("int").alias("g")]
    df = spark.range(0, rows, 1, 4).select("id", *group)
    df = df.select(*[((f.col("g") * (j + 3) % k) / k * 0.6 + f.rand(seed=j) * 0.4).alias(name) for j, name in enumerate(names)]).cache()
    vectors = VectorAssembler(inputCols=names, outputCol="features").transform(df).select("features").cache()
    print(f"{df.count():,} rows x {d} columns, K = {k}, {df.rdd.getNumPartitions()} partitions, {master}; as vectors {vectors.count():,}", flush=True)

    federation = veilsum.Federation.of({name: (0.0, 1.0) for name in names}, sites=["a", "b", "c"], k=k, exact=True, max_rows=rows, min_total_rows=100)
    centres = np.array(df.limit(k).collect(), float)
    question = questions.fuzzy_sums(centres)
    layout = questions.layout(federation, question)
    frame, asked = veilsum.spark.Frame(df, federation._planned), (json.dumps(question), json.dumps(layout))
    frame.open()

    def kernel():
        began = time.perf_counter()
        words = frame.words(*asked)
        return time.perf_counter() - began, words.tolist()

    def fit(iterations):
        began = time.perf_counter()
        model = KMeans(k=k, seed=1, maxIter=iterations, tol=0.0, initMode="random").fit(vectors)
        return time.perf_counter() - began, model.summary.numIter

    # Warm: as many passes over the rows on both sides.
    [kernel() for _ in range(6)], fit(6)
    ours, theirs, words = [], [], set()
    for _ in range(int(times)):
        seconds, sums = kernel()
        ours.append(seconds)
        words.add(str(sums))
        (short, few), (long, many) = fit(1), fit(6)
        theirs.append((long - short) / (many - few))
        print(f"  ours {ours[-1]:.3f} s, k-means {theirs[-1]:.3f} s ({short:.2f} s for {few}, {long:.2f} s for {many})", flush=True)
    ours_s, theirs_s = np.median(ours), np.median(theirs)
    print(f"fuzzy c-means, kernel in mapInArrow: {ours_s:.3f} s an iteration")
    print(f"Spark ML KMeans:                     {theirs_s:.3f} s an iteration")
    print(f"ratio (k-means / ours):              {theirs_s / ours_s:.2f}; {len(words)} different answer(s) in {len(ours)}")
    spark.stop()


if __name__ == "__main__":
    main(*[int(word) for word in sys.argv[1:4]], *sys.argv[4:6])
