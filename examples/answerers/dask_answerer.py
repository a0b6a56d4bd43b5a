#!/usr/bin/env python3
"""An answerer for Dask: `dask_answerer.py 'rows/*.parquet' [SCHEDULER]`.

The kernel runs in the workers (docs/src/engines.md), which need the Python package veilsum. Without the address of a scheduler
(`tcp://HOST:8786`) the workers are threads of this process: the kernel holds no lock of Python's.
"""

import sys

import dask.dataframe
import veilsum.dask
from veilsum.answerer import serve
from veilsum.engines import InParts


def main(files, scheduler=None):
    if scheduler is not None:
        from dask.distributed import Client

        Client(scheduler)
    read = dask.dataframe.read_csv if files.endswith(".csv") else dask.dataframe.read_parquet
    serve(InParts(veilsum.dask.Parts(read(files).persist()), "dask_answerer.py"))


if __name__ == "__main__":
    main(*sys.argv[1:])
