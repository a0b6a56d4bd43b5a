"""Veilsum inside Flower: Flower's messages carry the frames, and nothing of the protocol is Flower's.

The coordinator runs in the ServerApp, the intermediary and every site in the ClientApp of a node of their own organisation. What is
between two parties is TLS between their own keys, so the ServerApp, which passes frames on between sites and intermediary, reads none
of them. A party lives for the whole run: its ClientApp has to stay in one process.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import numpy as np
import veilsum
from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

#: The folder of the trial: keys, roster, plan and the rows of every site. In earnest each node has its own, with its own key alone.
FOLDER = Path(os.environ.get("VEILSUM_FOLDER", "federation"))
DOCUMENTS = {"roster": FOLDER / "roster.toml", "plan": FOLDER / "plan.toml"}
#: Seconds that a party waits at a node for something to happen, where it was asked and has nothing to say.
PATIENCE = 0.05

# ---- At a node ------------------------------------------------------------------------------------------------------------

#: The party of each node of this process.
parties: dict[int, veilsum.Site | veilsum.Intermediary] = {}


def party_of(number: int):
    if number not in parties:
        names = veilsum.Federation(**DOCUMENTS).sites
        if number == len(names):
            parties[number] = veilsum.Intermediary(FOLDER / "intermediary.key", **DOCUMENTS)
        else:
            name = names[number]
            parties[number] = veilsum.Site(FOLDER / f"{name}.key", rows=FOLDER / f"{name}.csv", **DOCUMENTS)
    return parties[number]


client_app = ClientApp()


@client_app.query()
def query(message: Message, context: Context) -> Message:
    """Hands the frames over that came, and sends those back that come of it."""
    party = party_of(int(context.node_config["partition-id"]))
    frames = party.start()
    for data in message.content["frames"]["data"]:
        frames += party.handle(data)
    if not frames and not party.done:
        frames = party.wait(PATIENCE)
    if party.done:
        party.result()  # raises what went wrong here, which Flower then reports
    record = ConfigRecord(
        {"name": party.name, "done": party.done, "to": [f.to for f in frames], "data": [f.data for f in frames]}
    )
    return Message(RecordDict({"frames": record}), reply_to=message)


# ---- At the server --------------------------------------------------------------------------------------------------------

server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Runs the coordinator, and passes frames on until everybody is done."""
    coordinator = veilsum.Coordinator(FOLDER / "coordinator.key", out=FOLDER / "result", **DOCUMENTS)
    wanted = len(veilsum.Federation(**DOCUMENTS).sites) + 1
    while len(nodes := list(grid.get_node_ids())) < wanted:
        time.sleep(0.5)
    waiting: dict[str, list[bytes]] = {}
    name_of: dict[int, str] = {}
    done: set[int] = set()

    def post(frames) -> None:
        mine = [frame for frame in frames if frame.to == coordinator.name]
        for frame in frames:
            if frame.to != coordinator.name:
                waiting.setdefault(frame.to, []).append(frame.data)
        for frame in mine:
            post(coordinator.handle(frame))

    post(coordinator.start())
    messages = 0
    while not (coordinator.done and len(done) == len(nodes)):
        asked = [node for node in nodes if node not in done]
        content = {node: ConfigRecord({"data": waiting.pop(name_of.get(node, ""), [])}) for node in asked}
        letters = [Message(RecordDict({"frames": content[node]}), node, MessageType.QUERY) for node in asked]
        messages += len(letters)
        for reply in grid.send_and_receive(letters):
            if reply.has_error():
                raise RuntimeError(f"node {reply.metadata.src_node_id}: {reply.error.reason}")
            said = reply.content["frames"]
            name_of[reply.metadata.src_node_id] = str(said["name"])
            if said["done"]:
                done.add(reply.metadata.src_node_id)
            post([veilsum.Frame(to, data) for to, data in zip(said["to"], said["data"])])
        if not waiting:
            post(coordinator.wait(0.0))
    result = coordinator.result()
    print(f"{messages} messages of Flower; {result!r}")
    print(np.round(result.centres, 3))


# ---- The trial ------------------------------------------------------------------------------------------------------------


def make(folder: Path, sites: int = 3, rows: int = 300) -> None:
    """A federation with made-up rows, all of it on this machine."""
    names = [f"clinic-{letter}" for letter in "abcdefgh"[:sites]]
    veilsum.Federation.create(
        folder, {"age": (0, 110), "bmi": (12, 60)}, sites=names, k=3, seed=3, max_rows=rows, min_total_rows=2 * rows,
        max_rounds=40, epsilon=0.001, exact=True,
    )  # fmt: skip
    # So few rows are no match for noise. Every site's operator reads the plan and agrees to its exact totals.
    documents = {"roster": folder / "roster.toml", "plan": folder / "plan.toml"}
    read = veilsum.plan.check(**documents)["fingerprint"]
    for name in names:
        veilsum.plan.agree(key=folder / f"{name}.key", fingerprint=read, **documents)
    random = np.random.default_rng(5)
    groups = np.array([[30.0, 22.0], [55.0, 36.0], [78.0, 25.0]])
    for name in names:
        own = groups[random.integers(3, size=rows)] + random.normal(0, [5.0, 2.5], (rows, 2))
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([["age", "bmi"], *np.clip(own, [0, 12], [110, 60]).tolist()])
