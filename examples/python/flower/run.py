"""A simulation of Flower with four nodes: three clinics and the intermediary. Needs `pip install "flwr[simulation]" veilsum`.

    python examples/python/flower/run.py
"""

import os
import sys
import tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
# Ray's processes find the app, too.
os.environ["PYTHONPATH"] = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
with tempfile.TemporaryDirectory() as folder:
    os.environ["VEILSUM_FOLDER"] = folder
    import app
    from flwr.simulation import run_simulation

    app.make(Path(folder))
    # One process for all nodes of this machine: parties live there between messages.
    one = {"init_args": {"num_cpus": 1, "include_dashboard": False}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(app.server_app, app.client_app, num_supernodes=4, backend_config=one)
    if not (Path(folder) / "result" / "result.json").exists():
        sys.exit("there is no result")
