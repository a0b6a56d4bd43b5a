"""What SecAgg+ of Flower costs a client and the server: its own workflow and its own client code, in one process, without a network.

    python flower.py CLIENTS LENGTH MISSING [ROUNDS]

Every client gives a vector of so many numbers. So many clients are missing: after keys and shares were exchanged, half of them leave before they
send their masked vector, and half after it, as in `veilsum-lab simulate --drop`. Prints one line of JSON: processor seconds of all clients, by the
number of those that stay, and of the server, for every round, in which keys are exchanged anew, as the protocol does. Messages are handed over as objects: what they
cost on a wire is in neither, nor is the copy of each that a network would make. Shares are 51 to a client at most, as many as Flower's own example
takes; the threshold is two thirds of them.
"""

import copy
import json
import logging
import sys
import time

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.client.mod.secure_aggregation.secaggplus_mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common import recorddict_compat as compat
from flwr.server.client_proxy import ClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.server.workflow.secure_aggregation.secaggplus_workflow import SecAggPlusWorkflow
from flwr.supercore.task_identity import TaskIdentity

logging.getLogger("flwr").setLevel(logging.ERROR)
CLIENTS, LENGTH, MISSING = (int(word) for word in sys.argv[1:4])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
SHARES = min(CLIENTS, 51)


def context(node):
    return Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})


class Proxy(ClientProxy):
    """A client as the strategy names it. Messages go through the grid."""

    def __init__(self, node):
        super().__init__(str(node))
        self.node_id = node

    get_properties = get_parameters = fit = evaluate = reconnect = None


Proxy.__abstractmethods__ = frozenset()


class Everybody(FedAvg):
    """The strategy: all clients take part, and what the server is left with is kept."""

    total = None

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def configure_fit(self, server_round, parameters, client_manager):
        from flwr.common import FitIns

        return [(Proxy(node), FitIns(parameters, {})) for node in self.nodes]

    def aggregate_fit(self, server_round, results, failures):
        self.total = parameters_to_ndarrays(results[0][1].parameters)
        return ndarrays_to_parameters(self.total), {}


class Here:
    """The network: every message is given to its client at once, and what that takes of the processor is the client's."""

    #: The call in which masked vectors are asked for: keys and shares were before it, and the shares that take off masks come after it.
    MASKED = 3

    def __init__(self, vectors, missing):
        self.vectors, self.calls = vectors, 0
        # From which call on a client no longer answers.
        first = len(missing) // 2
        self.leaves = {node: self.MASKED + (i >= first) for i, node in enumerate(missing)}
        self.contexts = {node: context(node) for node in vectors}
        self.seconds = dict.fromkeys(vectors, 0.0)
        self.copies = 0.0

    def trained(self, message, ctx):
        parameters = ndarrays_to_parameters([self.vectors[ctx.node_id]])
        fitted = FitRes(Status(Code.OK, ""), parameters, 1000, {})
        return Message(compat.fitres_to_recorddict(fitted, False), reply_to=message)

    def send_and_receive(self, messages, timeout=None):
        self.calls += 1
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            if self.calls >= self.leaves.get(node, sys.maxsize):
                continue
            # Clients take out of a message what they read, and all of them were given the same one.
            begun = time.process_time()
            message.content = copy.deepcopy(message.content)
            copied = time.process_time()
            reply = secaggplus_mod(message, self.contexts[node], self.trained)
            self.seconds[node] += time.process_time() - copied
            self.copies += copied - begun
            replies.append(reply)
        return replies


def main():
    # Who sends, for messages that are made; all parties are in this process.
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 1
    random = np.random.default_rng(1)
    nodes = list(range(1, CLIENTS + 1))
    clients, server = [], []
    for number in range(ROUNDS):
        vectors = {node: random.random(LENGTH) for node in nodes}
        missing = random.choice(nodes, MISSING, replace=False).tolist()
        strategy = Everybody(nodes)
        legacy = LegacyContext(context(0), strategy=strategy)
        legacy.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: number + 1, Key.START_TIME: 0.0})
        legacy.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord([np.zeros(LENGTH)])
        grid = Here(vectors, missing)
        workflow = SecAggPlusWorkflow(num_shares=SHARES, reconstruction_threshold=2 / 3)
        begun = time.process_time()
        workflow(grid, legacy)
        whole = time.process_time() - begun
        # Whoever left after its masked vector is in the mean.
        mean = np.mean([vectors[node] for node in nodes if grid.leaves.get(node) != Here.MASKED], axis=0)
        assert strategy.total is not None, "the workflow halted"
        assert np.abs(strategy.total[0] - mean).max() < 1e-3, "another mean than that of the clients"
        spent = sum(grid.seconds.values())
        clients.append(spent / (CLIENTS - MISSING))
        server.append(whole - grid.copies - spent)
    print(json.dumps({"clients": CLIENTS, "length": LENGTH, "missing": MISSING, "shares": SHARES, "client": clients, "server": server}))


main()
