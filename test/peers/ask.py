"""What the peers' scripts share: the questions, the rows, and the answers printed as JSON for the test that judges them.

A script gives for each question a function of no arguments that answers it once at ε 1: a list of values, in the order of the
product of the domains that it groups by, None where there is no answer. It raises Refused where the library has no private form.
"""
import importlib.metadata
import itertools
import json
import sys
import warnings

import pandas as pd

warnings.filterwarnings("ignore")
EPSILON = 1.0


class Refused(Exception):
    pass


class Question:
    def __init__(self, columns, **of):
        self.columns, self.name, self.form, self.sql = columns, of["name"], of["form"], of["sql"]
        self.column, self.share = of.get("column"), of.get("share")
        self.by, self.equal, self.between = of.get("by", []), of.get("equal"), of.get("between")

    def kept(self, rows):
        """The rows that its condition leaves."""
        if self.equal:
            return rows[rows[self.equal[0]] == self.equal[1]]
        if self.between:
            return rows[rows[self.between[0]].between(self.between[1], self.between[2])]
        return rows

    def groups(self):
        """The declared groups, each a tuple of values; one empty tuple without GROUP BY."""
        return list(itertools.product(*(self.columns[c] for c in self.by)))

    def grouped(self, rows):
        """The rows of each declared group."""
        for group in self.groups():
            here = rows
            for column, value in zip(self.by, group):
                here = here[here[column] == value]
            yield here

    def in_order(self, answer):
        """The last columns of an answer's rows, in the order of the declared groups."""
        found = {tuple(str(v) for v in row[:-1]): row[-1] for row in answer}
        return [found.get(group) for group in self.groups()]

    def ends(self):
        return tuple(self.columns[self.column])


def main(package, charged, neighbours, prepare):
    """prepare(question, rows) makes the function that answers the question once."""
    with open(sys.argv[1]) as f:
        asked = json.load(f)
    rows, runs = pd.read_csv(sys.argv[2]), int(sys.argv[3])
    said = {"version": importlib.metadata.version(package), "charged": charged, "neighbours": neighbours, "answers": {}, "refused": {}}
    for q in asked["questions"]:
        question = Question(asked["columns"], **q)
        try:
            once = prepare(question, rows)
            said["answers"][question.name] = [[None if v is None else float(v) for v in once()] for _ in range(runs)]
        except Refused as why:
            said["refused"][question.name] = str(why)
        except Exception as why:  # what a user of the library would see
            said["refused"][question.name] = f"{type(why).__name__}: {str(why).strip().splitlines()[0] if str(why).strip() else ''}"[:160]
    json.dump(said, sys.stdout)
