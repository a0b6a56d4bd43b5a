"""Changes what the result of a run says, and asks whether `recompute.py` sees it: nothing that it compares may be changed unnoticed.

    changed_result.py FOLDER

Every number, word and null is changed, made longer and left out in turn, and a question is put that does not follow. It prints as JSON
how many changes of each member it tried.
"""

import json
import math
import sys

from codec import Refused
from recompute import CLOSE, audited


def others(value):
    """What is said in the place of a value; small changes are relative, because a column's unit may be small."""
    if isinstance(value, list):
        return [value + [0.0]]
    if isinstance(value, dict):
        return [{**value, "?": 0.0}]
    if isinstance(value, str):
        return [value + "?"]
    if value is None:
        return [1.0]
    return [None, math.nan, value + 1 if isinstance(value, int) else value * (1 + 1e-4) or 1e-4]


class Control:
    def __init__(self, path):
        self.auditor, result = audited(path)
        self.fields, self.tried = result.fields, {}

    def seen(self, name, what):
        self.tried[name] = self.tried.get(name, 0) + 1
        try:
            assert not self.auditor.apart(self.fields) <= CLOSE, what
        except KeyError:
            pass

    def change(self, name, of, key):
        value = of[key]
        if isinstance(value, (dict, list)):
            for inner in list(value) if isinstance(value, dict) else range(len(value)):
                self.change(name, value, inner)
        for of[key] in others(value):
            self.seen(name, (key, value, of[key]))
        del of[key]
        self.seen(name, (key, value))
        of.update({key: value}) if isinstance(of, dict) else of.insert(key, value)

    def result(self):
        apart = self.auditor.apart(self.fields)
        if apart is None:
            return
        assert apart <= CLOSE
        whole = "description" if "description" in self.fields else "centres"
        self.change(whole, self.fields, whole)

    def question(self):
        for step in self.auditor.steps[-1:]:
            assert self.auditor.follows(step.after)
            self.tried["questions"] = 1
            try:
                self.auditor.follows([[x + 1e-6 for x in one] for one in step.after])
            except Refused:
                return
            raise AssertionError("a question that follows from no total was taken")


if __name__ == "__main__":
    control = Control(sys.argv[1])
    control.result()
    control.question()
    print(json.dumps(control.tried))
